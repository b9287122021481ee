// The bodies of <neap/report/plan_writer.hpp>.
#pragma once

#include <neap/report/plan_writer.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/opaque.hpp>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

namespace neap { inline namespace v0 { namespace detail {

/// A number that reads back as itself: "-0" would be an integer, and what is not finite is a text.
NEAP_FUNC std::string json_number(double x) {
  std::string const minus = std::signbit(x) ? "-" : "";
  if (x == 0) return minus + "0.0";
  if (!std::isfinite(x)) return "\"" + minus + (std::isnan(x) ? "nan" : "inf") + "\"";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};  // the shortest that does
}
/// A member that is a time in microseconds; where no such number reads back as the seconds, another one that says them:
/// start: start_s, latency_us: latency_s.
NEAP_FUNC std::string json_time(std::string key, seconds_t t) {
  auto us = t * 1e6;
  for (auto x : {std::nextafter(us, 0.0), std::nextafter(us, HUGE_VAL)})
    if (us * 1e-6 != t && x * 1e-6 == t) us = x;
  auto s = "\"" + key + "\":" + json_number(us);
  if (us * 1e-6 == t || !std::isfinite(us)) return s;
  if (key.ends_with("_us")) key.resize(key.size() - 3);
  return s + ",\"" + key + "_s\":" + json_number(t);
}
NEAP_FUNC std::string json_list(extents const& e) { return to_string(e); }

NEAP_FUNC std::string json_numbers(plain_vector<std::int64_t> const& numbers) {
  std::string t = "[";
  for (auto n : numbers) t += (t.size() > 1 ? "," : "") + std::to_string(n);
  return t + "]";
}

/// ",\"donated\":[...]", or nothing.
NEAP_FUNC std::string json_donated(std::vector<std::string> const& patterns) {
  std::string s;
  for (auto const& p : patterns) s += (s.empty() ? "" : ",") + json_text(p);
  return s.empty() ? s : ",\"donated\":[" + s + "]";
}
/// ",\"pins\":[...]", or nothing.
NEAP_FUNC std::string json_pins(pin_set pins) {
  if (pins.empty()) return {};
  std::string s;
  for (std::size_t i = 0; i < pin_names.size(); ++i)
    if (pins.has(static_cast<pin>(1u << i))) (s += s.empty() ? "\"" : ",\"") += std::string(pin_names[i]) + "\"";
  return ",\"pins\":[" + s + "]";
}
/// Rules by pattern, a row each pin; or nothing.
NEAP_FUNC std::string json_pins(pin_rules const& rules) {
  std::string s;
  for (auto const& r : rules)
    for (auto const name : pin_names)
      if (r.pins.has(*pin_of(name)))
        s += std::string(s.empty() ? "" : ",") + "[\"" + std::string(name) + "\"," + json_text(r.pattern) + "]";
  return s.empty() ? s : ",\"pins\":[" + s + "]";
}

/// Number and count of a part, behind those of the part that it is cut from, if any.
NEAP_FUNC std::string numbers_of_part(op_graph const& g, part_id p) {
  auto const& x = g.part(p);
  return (x.of == nothing<part_id> ? std::string() : numbers_of_part(g, x.of) + ",") + std::to_string(x.number) + "," +
         std::to_string(x.count);
}
NEAP_FUNC std::string axes_of_part_text(std::vector<part_axes> const& cuts) {
  auto const list = [](std::vector<std::int32_t> const& axes) {
    std::string s;
    for (auto a : axes) s += (s.empty() ? "" : ",") + std::to_string(a);
    return "[" + s + "]";
  };
  std::string s;
  for (auto const& c : cuts) s += (s.empty() ? "{\"in\":" : ",{\"in\":") + list(c.in) + ",\"out\":" + list(c.out) + "}";
  return "[" + s + "]";
}
/// Whether the axes of all parts are known.
NEAP_FUNC bool knows_axes(op_graph const& g) {
  for (auto o : g.ops())
    if (g.record(o).part != nothing<part_id> && axes_of_part(g, o).empty()) return false;
  return true;
}
NEAP_FUNC char const* storage_kind(role r) {
  switch (r) {
    case role::weight: return "param";
    case role::state: return "state";
    case role::buffer: return "buffer";
    case role::input: return "input";
    case role::donated: return "donated";
    case role::constant: return "const";
    default: return "temp";
  }
}

/// Whether a kept value has a role that neither the kind of an output nor its storage says.
NEAP_FUNC bool says_role(op_graph const& g, value_id v) {
  auto const r = g.role(v);
  return g.producer(v) != nothing<op_id> && r != role::loss && r != role::gradient && r != role::output;
}

NEAP_FUNC std::string json_durations(duration_source const& d) {
  auto const& x = d.device;
  std::string rates, free_ops;
  for (std::size_t t = 0; t < dtype_names.size(); ++t)
    if (x.flops_per_second[t] != 0)
      rates += (rates.empty() ? "" : ",") + json_text(dtype_names[t]) + ":" + json_number(x.flops_per_second[t]);
  for (auto const& name : x.free_ops) free_ops += (free_ops.empty() ? "" : ",") + json_text(name);
  return "{" + (d.table ? "\"table\":\"" + to_hex(*d.table) + "\"," : std::string()) +
         "\"given\":" + (d.given ? "true" : "false") + ",\"device\":{\"flops_per_s\":{" + rates +
         "},\"bandwidth_bytes_per_s\":" + json_number(x.bytes_per_second) + "," + json_time("launch_us", x.launch) +
         ",\"half_saturation_flops\":" + json_number(x.half_flops) +
         ",\"half_saturation_bytes\":" + json_number(x.half_bytes) +
         ",\"link_bytes_per_s\":{\"to_host\":" + json_number(x.to_host_bytes_per_second) +
         ",\"to_device\":" + json_number(x.to_device_bytes_per_second) + "}," +
         json_time("link_latency_us", x.link_latency) + ",\"free_ops\":[" + free_ops + "]}}";
}

/// The text of a plan's file.
class plan_text {
 public:
  plan_text(op_graph const& g, placed_steps const& p, digest original, plan_source const& from)
      : plan_(p),
        g_(g),
        values_(g_.sources().begin(), g_.sources().end()),
        with_axes_(knows_axes(g_)) {
    for (auto const& s : p.steps)
      for (auto v : g_.outputs(s.op)) values_.push_back(v);
    row_.resize(g_.value_count());
    for (std::size_t i = 0; i < values_.size(); ++i) row_[index(values_[i])] = i;
    put_head(original, from);
    put_rows("storages", g_.storage_count(), &plan_text::storage);
    put_rows("tensors", values_.size(), &plan_text::tensor);
    put_rows("nodes", p.steps.size(), &plan_text::node);
    put_rows("outputs", g_.kept().size(), &plan_text::output);
    put_rows("steps", p.steps.size(), &plan_text::step);
    put_rows("buffers", p.buffers.size(), &plan_text::buffer);
    put_rows("waits", p.waits.size(), &plan_text::wait);
    text_ += "\"checksum\":\"" + to_hex(digest{}.mix(std::string_view(text_))) + "\"}\n";
  }
  std::string take() { return std::move(text_); }

 private:
  void put_head(digest original, plan_source const& from) {
    auto const& p = plan_;
    text_ = std::string("{\"format\":\"neap.plan\",\"version\":") + (with_axes_ ? "4" : "3") +
            ",\"name\":" + json_text(from.name) + ",\n\"fingerprint\":\"" + to_hex(original) +
            "\",\"source\":{\"optimizer\":" + (from.optimizer ? "true" : "false") +
            ",\"magis\":" + json_text(from.magis) + ",\"losses_apart\":" + (from.losses_apart ? "true" : "false") +
            (from.gradients_used_up ? ",\"gradients_used_up\":true" : "") + json_donated(from.donated) +
            json_pins(from.pins) + "},\n\"options\":{\"alignment\":" + std::to_string(p.options.alignment) +
            ",\"takeover\":" + (p.options.takeover ? "true" : "false") + "},\n";
    text_ += "\"peak_bytes\":" + std::to_string(p.peak_bytes) + ",\"arena_bytes\":" + std::to_string(p.arena_bytes) +
             ",\"resident_bytes\":" + std::to_string(p.resident_bytes) +
             ",\"lower_bound_bytes\":" + std::to_string(p.lower_bound_bytes) + "," +
             json_time("latency_us", p.latency) + ",\n";
    bool const memory = from.memory_limit_bytes >= 0, latency = from.latency_limit_seconds >= 0;
    if (memory || latency)
      text_ += std::string("\"limits\":{") +
               (memory ? "\"memory_bytes\":" + std::to_string(from.memory_limit_bytes) : std::string()) +
               (memory && latency ? "," : "") +
               (latency ? json_time("latency_us", from.latency_limit_seconds) : std::string()) + "},\n";
    if (from.durations) text_ += "\"durations\":" + json_durations(*from.durations) + ",\n";
  }
  void put_rows(char const* key, std::size_t n, std::string (plan_text::*row)(std::size_t) const) {
    text_ += "\"" + std::string(key) + "\":[";
    for (std::size_t i = 0; i < n; ++i) text_ += (i ? ",\n" : "\n") + (this->*row)(i);
    text_ += "],\n";
  }
  std::string row_of(value_id v) const { return std::to_string(row_[index(v)]); }
  template <class Values>
  std::string rows_of(Values const& values) const {
    std::string t = "[";
    for (std::size_t k = 0; k < values.size(); ++k) t += (k ? "," : "") + row_of(values[k]);
    return t + "]";
  }

  std::string storage(std::size_t i) const {
    auto const s = id_at<storage_id>(i);
    auto const& r = g_.record(s);
    auto const role = g_.is_source(s) ? g_.role(r.first) : neap::role::activation;
    auto const name = g_.name(r.first);
    return "{\"bytes\":" + std::to_string(r.bytes) + ",\"kind\":\"" + storage_kind(role) + "\"" +
           (name.empty() || !g_.is_source(s) ? "" : ",\"name\":" + json_text(name)) + "}";
  }
  std::string tensor(std::size_t i) const {
    auto const v = values_[i];
    auto const& l = g_.layout(v);
    std::string t = "{\"buf\":" + std::to_string(index(g_.storage(v))) + ",\"dtype\":\"" +
                    (l.type.element == dtype::boolean ? "b8" : std::string(name_of(l.type.element))) +
                    "\",\"shape\":" + json_list(l.type.dims);
    if (!(l.strides == dense_strides(l.type.dims))) t += ",\"stride\":" + json_list(l.strides);
    if (l.offset) t += ",\"offset\":" + std::to_string(l.offset);
    return t + json_pins(g_.pins(v)) + "}";
  }
  std::string node(std::size_t i) const {
    op_id const o = plan_.steps[i].op;
    auto const* x = g_.as<op::opaque>(o);
    bool const transfer = plan_.steps[i].stream != op_stream::compute || g_.as<op::wait>(o);
    std::string t = "{\"name\":" + json_text(g_.name(o)) + ",\"op\":" +
                    (x ? json_text(g_.text(x->target)) : json_text("neap." + std::string(g_.facets(o).name))) +
                    ",\"in\":" + rows_of(g_.inputs(o)) + ",\"out\":" + rows_of(g_.outputs(o)) +
                    (x ? unknown(o, *x) : attributes(o));
    if (auto const at = g_.record(o).part; at != nothing<part_id>)
      t += ",\"part\":[" + numbers_of_part(g_, at) + "]" +
           (with_axes_ ? ",\"axes\":" + axes_of_part_text(axes_of_part(g_, o)) : std::string());
    t += json_pins(g_.pins(o).of_op());
    t += ",\"latency_us\":" + json_number((plan_.steps[i].end - plan_.steps[i].start) * 1e6);
    return t + ",\"origin\":" + (transfer ? std::string("-1") : std::to_string(index(g_.origin(o)))) + "}";
  }
  /// What a node has that is the graph's own operator.
  std::string unknown(op_id o, op::opaque const& x) const {
    std::string t, alias, flags;
    bool all_fresh = true;
    for (auto v : g_.outputs(o)) {
      auto const& r = g_.record(v);
      bool const over = r.alias == alias_kind::fresh && r.of >= 0;
      all_fresh &= r.alias == alias_kind::fresh && !over;
      alias += "[\"" +
               std::string(over                           ? "over"
                           : r.alias == alias_kind::fresh ? "fresh"
                           : r.alias == alias_kind::view  ? "view"
                                                          : "update") +
               "\"," + std::to_string(r.of) + "],";
    }
    if (!all_fresh) t += ",\"alias\":[" + alias.substr(0, alias.size() - 1) + "]";
    t += ",\"flags\":[";
    if (flow::is_view(g_, o)) flags += "\"view\",";
    if (x.pointwise) flags += "\"pointwise\",";
    if (x.rng) flags += "\"rng\",";
    if (x.placeholder) flags += "\"placeholder\",";
    if (!x.pure) flags += "\"impure\",";
    t += flags.substr(0, flags.empty() ? 0 : flags.size() - 1) + "]";
    if (x.rng) t += ",\"key\":" + std::to_string(x.key);
    t += ",\"flops\":" + json_number(x.flops) + ",\"read\":" + json_number(x.read) +
         ",\"write\":" + json_number(x.written) + ",\"seconds\":" + json_number(x.seconds);
    if (x.is_part())
      t += ",\"whole\":{\"flops\":" + json_number(x.whole_flops) + ",\"bytes\":" + json_number(x.whole_bytes) + "}";
    if (x.details) t += ",\"details\":" + json_text(g_.text(x.details));
    return t;
  }
  std::string attributes(op_id o) const {
    std::string t = ",\"attributes\":{";
    bool first = true;
    for (auto const& a : g_.facets(o).attributes) {
      t += (first ? "" : ",") + json_text(a.name) + ":";
      first = false;
      std::visit(
          [&](auto const& value) {
            using type = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_same_v<type, bool>) t += value ? "true" : "false";
            else if constexpr (std::is_same_v<type, std::int64_t>) t += std::to_string(value);
            else if constexpr (std::is_same_v<type, double>) t += json_number(value);
            else if constexpr (std::is_same_v<type, dtype>) t += json_text(name_of(value));
            else if constexpr (std::is_same_v<type, element_program>) t += json_numbers(value.numbers());
            else t += json_list(value);
          },
          a.get(g_.attributes(o)));
    }
    return t + "}";
  }
  std::string output(std::size_t i) const {
    auto const v = g_.kept()[i];
    auto const r = g_.role(v);
    return "{\"tensor\":" + row_of(v) + ",\"kind\":\"" +
           (r == role::loss       ? "loss"
            : r == role::gradient ? "grad"
                                  : "output") +
           "\"" + (says_role(g_, v) ? ",\"role\":" + json_text(name_of(r)) : std::string()) + "}";
  }
  std::string step(std::size_t i) const {
    auto const& x = plan_.steps[i];
    char const* const kind[] = {"compute", "store", "load"};
    std::string t = "{\"kind\":\"" + std::string(kind[static_cast<int>(x.stream)]) +
                    "\",\"node\":" + std::to_string(i) + ",\"stream\":" + std::to_string(static_cast<int>(x.stream)) +
                    "," + json_time("start", x.start) + "," + json_time("end", x.end);
    if (x.workspace_bytes)
      t += ",\"workspace\":" + std::to_string(x.workspace_bytes) +
           ",\"workspace_offset\":" + std::to_string(x.workspace_offset);
    return t + "}";
  }
  std::string buffer(std::size_t i) const {
    auto const& b = plan_.buffers[i];
    std::string t = "{\"value\":" + row_of(g_.record(b.storage).first) +
                    ",\"pool\":\"device\",\"offset\":" + std::to_string(b.offset) +
                    ",\"bytes\":" + std::to_string(b.bytes) + ",\"first\":" + std::to_string(b.first) +
                    ",\"last\":" + std::to_string(b.last) + ",\"resident\":" + (b.resident ? "true" : "false");
    if (b.takes_over != nothing<storage_id>) t += ",\"takes_over\":" + row_of(g_.record(b.takes_over).first);
    return t + "}";
  }
  std::string wait(std::size_t i) const {
    return "[" + std::to_string(plan_.waits[i].step) + "," + std::to_string(plan_.waits[i].transfer) + "]";
  }

  placed_steps const& plan_;
  op_graph const& g_;
  std::vector<value_id> values_;  // in the file's order: sources, then outputs step by step
  std::vector<std::size_t> row_;  // in it
  bool with_axes_;
  std::string text_;
};

NEAP_FUNC std::string plan_json(op_graph const& g, placed_steps const& p, digest original, plan_source const& from) {
  plan_text text(g, p, original, from);
  return text.take();
}

}}}  // namespace neap::v0::detail
