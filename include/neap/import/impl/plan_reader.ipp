// The bodies of <neap/import/plan_reader.hpp>.
#pragma once

#include <neap/import/plan_reader.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/file.hpp>
#include <neap/import/file_kind.hpp>
#include <neap/import/neap_graph.hpp>

#include <cmath>
#include <string_view>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

NEAP_FUNC plan_file plan_reader::read() {
  root_["format"].require(root_["format"].text() == "neap.plan", "must be \"neap.plan\"");
  auto const version = root_["version"].integer();
  root_["version"].require(version >= 1 && version <= 4, "only versions 1 to 4 are known");
  out_.version = static_cast<int>(version);
  out_.name = root_.text_or("name", "");
  out_.optimizer = root_["source"]["optimizer"].boolean();
  out_.magis = root_["source"]["magis"].text();
  if (out_.version > 2) out_.losses_apart = root_["source"]["losses_apart"].boolean();
  if (root_["source"].has("gradients_used_up")) out_.gradients_used_up = root_["source"]["gradients_used_up"].boolean();
  if (root_["source"].has("donated")) {
    auto const list = root_["source"]["donated"];
    for (std::size_t i = 0; i < list.size(); ++i) out_.donated.push_back(list[i].text());
  }
  if (root_["source"].has("pins")) {
    auto const list = root_["source"]["pins"];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].size() != 2) list[i].fail("must be a pin and a pattern");
      auto const p = pin_of(list[i][0].text());
      if (!p) list[i][0].fail("unknown pin \"" + list[i][0].text() + "\"");
      out_.pins.emplace_back(*p, list[i][1].text());
    }
  }
  root_["source"]["magis"].require(out_.magis == "magis" || out_.magis == "aliased", "must be magis or aliased");
  auto& p = out_.planned;
  p.original = fingerprint(root_["fingerprint"]);
  p.options.alignment = root_["options"]["alignment"].integer(1, 1 << 30);
  p.options.takeover = root_["options"]["takeover"].boolean();
  p.peak_bytes = root_["peak_bytes"].integer(0);
  p.arena_bytes = root_["arena_bytes"].integer(0);
  p.resident_bytes = root_["resident_bytes"].integer(0);
  p.lower_bound_bytes = root_["lower_bound_bytes"].integer(0);
  p.latency = seconds(root_, "latency_us");
  if (root_.has("limits")) {
    auto const limits = root_["limits"];
    if (limits.has("memory_bytes")) out_.memory_limit_bytes = limits["memory_bytes"].integer(0);
    if (limits.has("latency_us")) out_.latency_limit_seconds = seconds(limits, "latency_us");
  }
  if (version > 1 && root_.has("durations")) out_.durations = durations_in(root_["durations"]);
  read_graph();
  read_steps();
  read_buffers();
  auto const waits = root_["waits"];
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].size() != 2) waits[i].fail("must be a step and a transfer's step");
    p.waits.push_back({u32(waits[i][0], p.steps.size() + 1), u32(waits[i][1], p.steps.size())});
  }
  return std::move(out_);
}

NEAP_FUNC duration_source plan_reader::durations_in(json_place const& j) {
  duration_source d;
  if (j.has("table")) d.table = fingerprint(j["table"]);
  d.given = j["given"].boolean();
  auto const device = j["device"];
  auto& x = d.device;
  auto const rates = device["flops_per_s"];
  rates.require(rates.is_object(), "must be an object of rates by element type");
  for (auto const& [type, rate] : rates.raw().items()) {
    auto const place = rates[type.c_str()];
    std::size_t t = 0;
    while (t < dtype_names.size() && type != dtype_names[t]) ++t;
    if (t == dtype_names.size()) place.fail("unknown element type");
    x.flops_per_second[t] = place.number(0);
  }
  x.bytes_per_second = device["bandwidth_bytes_per_s"].number(0);
  for (auto const* key : {"launch_us", "link_latency_us"}) device[key].microseconds();  // not too long
  x.launch = seconds(device, "launch_us");
  x.half_flops = device["half_saturation_flops"].number(0);
  x.half_bytes = device["half_saturation_bytes"].number(0);
  x.to_host_bytes_per_second = device["link_bytes_per_s"]["to_host"].number(0);
  x.to_device_bytes_per_second = device["link_bytes_per_s"]["to_device"].number(0);
  x.link_latency = seconds(device, "link_latency_us");
  auto const free_ops = device["free_ops"];
  for (std::size_t i = 0; i < free_ops.size(); ++i) x.free_ops.push_back(free_ops[i].text());
  return d;
}

NEAP_FUNC seconds_t plan_reader::seconds(json_place const& j, std::string key) {
  auto const t = j[key.c_str()].number(0) * 1e-6;
  if (key.ends_with("_us")) key.resize(key.size() - 3);
  key += "_s";
  if (!j.has(key.c_str())) return t;
  auto const exactly = j[key.c_str()];
  exactly.require(std::abs(exactly.number(0) - t) <= 1e-12 * t, "is not the time in microseconds");
  return exactly.number(0);
}

NEAP_FUNC digest plan_reader::fingerprint(json_place const& j) {
  auto const d = from_hex(j.text());
  if (!d) j.fail("must be 32 hexadecimal digits");
  return *d;
}

NEAP_FUNC void plan_reader::read_graph() {
  auto const storages = root_["storages"], tensors = root_["tensors"], nodes = root_["nodes"],
             outputs = root_["outputs"];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const j = tensors[i];
    auto const storage = u32(j["buf"], storages.size());
    rows_.push_back({storage, layout_in(j)});
  }
  bytes_t total = 0;
  for (std::size_t i = 0; i < storages.size(); ++i) bytes_.push_back(storages[i]["bytes"].bytes(total));
  value_.assign(rows_.size(), nothing<value_id>);
  read_sources(storages, nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) read_node(nodes[i]);
  read_outputs(outputs);
  for (std::size_t i = 0; i < nodes.size(); ++i) add_pins_at(nodes[i], edit_, id_at<op_id>(i), pins_in(nodes[i]));
  for (std::size_t t = 0; t < rows_.size(); ++t)
    if (value_[t] != nothing<value_id>) add_pins_at(tensors[t], edit_, value_[t], pins_in(tensors[t]));
  out_.planned.graph = graph(std::move(edit_).finish());
  check_tables();
}

NEAP_FUNC void plan_reader::read_sources(json_place const& storages, json_place const& nodes) {
  std::vector<bool> by_node(rows_.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto const out = nodes[i]["out"];
    for (std::size_t k = 0; k < out.size(); ++k) by_node[u32(out[k], rows_.size())] = true;
  }
  std::vector<value_id> base(storages.size(), nothing<value_id>);
  for (std::size_t t = 0; t < rows_.size(); ++t) {
    if (by_node[t]) continue;
    auto const j = storages[rows_[t].storage];
    auto const& kind = j["kind"].text();
    role const r = kind == "param"     ? role::weight
                   : kind == "state"   ? role::state
                   : kind == "buffer"  ? role::buffer
                   : kind == "const"   ? role::constant
                   : kind == "input"   ? role::input
                   : kind == "donated" ? role::donated
                                       : role::activation;
    if (kind == "temp") j["kind"].fail("tensor " + std::to_string(t) + " lies in a temp storage, and no node makes it");
    if (r == role::activation) j["kind"].fail("unknown kind \"" + kind + "\"");
    auto& b = base[rows_[t].storage];
    value_[t] = b == nothing<value_id>
                    ? edit_.add_source_at(r, rows_[t].layout, j.text_or("name", ""), bytes_[rows_[t].storage])
                    : edit_.add_source_view(b, rows_[t].layout);
    if (b == nothing<value_id>) b = value_[t];
  }
}

NEAP_FUNC void plan_reader::read_node(json_place const& j) {
  std::vector<value_id> in;
  auto const ins = j["in"], outs = j["out"];
  for (std::size_t k = 0; k < ins.size(); ++k) {
    auto const v = value_[u32(ins[k], rows_.size())];
    if (v == nothing<value_id>) ins[k].fail("is read before it is made");
    in.push_back(v);
  }
  auto const& name = j["op"].text();
  op_id const o = id_at<op_id>(edit_.graph().op_count());
  bool const ours = out_.version > 1 ? j.has("attributes") : name.starts_with("neap.");
  if (ours && !name.starts_with("neap.")) j["op"].fail("must be an operator of neap's: it has \"attributes\"");
  if (ours) add_known(j, name.substr(5), in);
  else add_unknown(j, name, in);
  auto const made = edit_.outputs_of(o);
  if (made.size() != outs.size()) outs.fail("the operator has " + std::to_string(made.size()) + " outputs");
  for (std::size_t k = 0; k < outs.size(); ++k) {
    auto& v = value_[u32(outs[k], rows_.size())];
    if (v != nothing<value_id>) outs[k].fail("is made twice");
    v = made[k];
  }
  if (out_.version > 2 && j.has("part")) {
    auto const part = j["part"];
    part.require(part.size() >= 2 && part.size() % 2 == 0, "must be [number, how many], or several of them");
    auto row = nothing<part_id>;
    for (std::size_t k = 0; k < part.size(); k += 2) {
      auto const count = part[k + 1].integer(1);
      row = edit_.part_row({part[k].integer(0, count - 1), count, row});
    }
    edit_.set_part(o, row);
    if (out_.version > 3) read_axes(j, o);
  }
  auto const origin = j["origin"].integer(-1, INT32_MAX);
  if (origin >= 0) edit_.set_origin(o, id_at<op_id>(static_cast<std::size_t>(origin)));
}

NEAP_FUNC void plan_reader::add_unknown(json_place const& j, std::string const& name, std::vector<value_id> const& in) {
  auto const outs = j["out"];
  std::vector<output_rule> rules;
  if (j.has("alias") && j["alias"].size() != outs.size())
    j["alias"].fail("must be " + std::to_string(outs.size()) + " rows, one an output");
  for (std::size_t k = 0; k < outs.size(); ++k) {
    auto const& t = rows_[u32(outs[k], rows_.size())];
    output_rule r{t.layout, alias_kind::fresh, -1, bytes_[t.storage]};
    if (j.has("alias")) read_alias(j["alias"][k], in.size(), outs.size(), r);
    rules.push_back(r);
  }
  auto const details = out_.version > 1 ? j.text_or("details", "") : std::string();
  edit_.add_opaque(name, opaque_of(j), in, rules, j.text_or("name", ""), details);
}

NEAP_FUNC void plan_reader::read_alias(json_place const& a, std::size_t inputs, std::size_t outputs, output_rule& r) {
  if (a.size() != 2) a.fail("must be a kind and an input");
  auto const& kind = a[0].text();
  bool const over = kind == "over";
  a[0].require(kind == "fresh" || kind == "view" || kind == "update" || over, "must be fresh, over, view or update");
  r.alias = kind == "view" ? alias_kind::view : kind == "update" ? alias_kind::update : alias_kind::fresh;
  auto const last = static_cast<std::int64_t>(inputs) - 1;
  if (over) {
    r.of = static_cast<int>(a[1].integer(0, last));
  } else if (r.alias != alias_kind::fresh) {
    r.of = static_cast<int>(a[1].integer(-1 - static_cast<std::int64_t>(outputs), last));
    a[1].require(r.of != -1, "must be an input, or -2 less an output");
    r.bytes = -1;
  }
}

NEAP_FUNC void plan_reader::read_outputs(json_place const& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto const& kind = outputs[i]["kind"].text();
    if (kind != "loss" && kind != "grad" && kind != "output") outputs[i]["kind"].fail("unknown kind \"" + kind + "\"");
    auto const v = value_[u32(outputs[i]["tensor"], rows_.size())];
    if (v == nothing<value_id>) outputs[i].fail("no node makes it");
    if (edit_.graph().is_kept(v)) outputs[i]["tensor"].fail("is the tensor of two outputs");
    edit_.keep(v, outputs[i].has("role") ? role_of(outputs[i]["role"], kind, v)
                  : kind == "loss"       ? role::loss
                  : kind == "grad"       ? role::gradient
                                         : role::output);
  }
}

NEAP_FUNC role plan_reader::role_of(json_place const& j, std::string const& kind, value_id v) const {
  j.require(kind == "output" && edit_.graph().producer(v) != nothing<op_id>, "is only of an output that a node makes");
  for (auto r : {role::weight, role::state, role::buffer, role::input, role::constant, role::donated, role::activation})
    if (j.text() == name_of(r)) return r;
  j.fail("unknown role \"" + j.text() + "\"");
}

NEAP_FUNC void plan_reader::read_axes(json_place const& j, op_id o) {
  auto const& g = edit_.graph();
  auto const part = j["part"], axes = j["axes"];
  if (axes.size() != part.size() / 2)
    axes.fail("must be " + std::to_string(part.size() / 2) + " objects, one a cut of the part");
  std::vector<extents> dims, all;
  for (auto v : g.inputs(o)) dims.push_back(g.type(v).dims);
  for (auto v : g.outputs(o)) dims.push_back(g.type(v).dims);
  auto const in = g.inputs(o).size();
  for (std::size_t k = axes.size(); k-- > 0;) {  // the last cut is undone first
    auto const count = part[2 * k + 1].integer(1);
    auto const ins = axes[k]["in"], outs = axes[k]["out"];
    if (ins.size() != in) ins.fail("must be " + std::to_string(in) + " axes, one an input");
    if (outs.size() != dims.size() - in)
      outs.fail("must be " + std::to_string(dims.size() - in) + " axes, one an output");
    for (std::size_t i = 0; i < dims.size(); ++i) {
      auto const at = i < in ? ins[i] : outs[i - in];
      auto const axis = at.integer(-1, dims[i].rank() - 1);
      if (axis < 0) continue;
      auto& n = dims[i][static_cast<int>(axis)];
      at.require(n <= INT64_MAX / count, "is an axis of too many elements");
      n *= count;
    }
    all.insert(all.begin(), dims.begin(), dims.end());
  }
  edit_.state_wholes(o, span_of(all));
}

NEAP_FUNC void plan_reader::check_tables() const {
  auto const& g = out_.planned.graph;
  auto const storages = root_["storages"], tensors = root_["tensors"], nodes = root_["nodes"];
  if (storages.size() != g.storage_count())
    storages.fail("must be " + std::to_string(g.storage_count()) + " rows, one a storage of the graph");
  std::vector<storage_id> of_row(storages.size(), nothing<storage_id>);
  table<storage_id, std::uint8_t> taken(g.storage_count(), 0);
  for (std::size_t t = 0; t < rows_.size(); ++t) {
    auto const s = g.storage(value_[t]);
    auto& in_row = of_row[rows_[t].storage];
    if (in_row == nothing<storage_id> && !taken[s]) {
      auto const j = storages[rows_[t].storage];
      if (g.bytes(s) != bytes_[rows_[t].storage]) j["bytes"].fail("must be " + std::to_string(g.bytes(s)));
      if (!g.is_source(s)) j["kind"].require(j["kind"].text() == "temp", "must be temp: a node makes it");
      in_row = s;
      taken[s] = 1;
    }
    if (in_row != s) tensors[t]["buf"].fail("is not the storage that the nodes put the tensor in");
    if (!(g.layout(value_[t]) == rows_[t].layout)) tensors[t].fail("is not what its node makes");
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!g.template as<op::opaque>(id_at<op_id>(i))) continue;
    bool view = false;
    auto const flags = nodes[i]["flags"];
    for (std::size_t k = 0; k < flags.size(); ++k) view |= flags[k].text() == "view";
    if (view != flow::is_view(g, id_at<op_id>(i)))
      flags.fail(view ? "\"view\" of a node that is none" : "lacks \"view\"");
  }
}

NEAP_FUNC op::opaque plan_reader::opaque_of(json_place const& j) {
  op::opaque x;
  auto const flags = j["flags"];
  for (std::size_t k = 0; k < flags.size(); ++k) {
    auto const& f = flags[k].text();
    if (f == "pointwise") x.pointwise = true;
    else if (f == "rng") x.rng = true;
    else if (f == "placeholder") x.placeholder = true;
    else if (f == "impure") x.pure = false;
    else if (f != "view") flags[k].fail("unknown flag \"" + f + "\"");
  }
  if (x.rng) x.key = j["key"].integer();
  x.flops = j["flops"].exact_number(0);
  x.read = j["read"].exact_number(0);
  x.written = j["write"].exact_number(0);
  x.seconds = j["seconds"].exact_number();
  if (j.has("whole")) {
    x.whole_flops = j["whole"]["flops"].exact_number(0);
    x.whole_bytes = j["whole"]["bytes"].exact_number(0);
  }
  return x;
}

NEAP_FUNC element_program plan_reader::program_of(json_place const& j) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < j.size(); ++i) numbers.push_back(j[i].integer());
  auto const made = element_program::of_numbers(numbers);
  if (!made) j.fail("must be a program of elementwise steps");
  return *made;
}

NEAP_FUNC void plan_reader::add_known(json_place const& j, std::string const& name, std::vector<value_id> const& in) {
  operator_facets const* f = nullptr;
  for (auto const* row : standard_operators::facets)
    if (row->name == name) f = row;
  if (!f) j["op"].fail("unknown operator \"" + name + "\"");
  alignas(16) std::byte bytes[2048];
  if (f->size > sizeof bytes) j["op"].fail("too large");
  f->construct(bytes);
  if (out_.version > 1 || !f->attributes.empty())
    if (auto const given = j["attributes"]; !given.is_object() || given.raw().size() != f->attributes.size())
      given.fail("must be an object of " + std::to_string(f->attributes.size()));
  for (auto const& a : f->attributes) {
    auto const v = j["attributes"][std::string(a.name).c_str()];
    std::visit(
        [&](auto const& present) {
          using type = std::remove_cvref_t<decltype(present)>;
          if constexpr (std::is_same_v<type, bool>) a.set(bytes, v.boolean());
          else if constexpr (std::is_same_v<type, std::int64_t>) a.set(bytes, v.integer());
          else if constexpr (std::is_same_v<type, double>) a.set(bytes, v.any_number());
          else if constexpr (std::is_same_v<type, dtype>) a.set(bytes, dtype_of(v));
          else if constexpr (std::is_same_v<type, element_program>) a.set(bytes, program_of(v));
          else a.set(bytes, v.axes(INT64_MIN));
        },
        a.get(bytes));
  }
  try {
    edit_.emit({f, bytes}, in);
  } catch (error const& e) { j.fail(e.what()); }
  if (!j.text_or("name", "").empty()) edit_.set_name(id_at<op_id>(edit_.graph().op_count() - 1), j["name"].text());
}

NEAP_FUNC void plan_reader::read_steps() {
  auto& p = out_.planned;
  auto const steps = root_["steps"];
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto const j = steps[i];
    plan_step s;
    s.op = id_at<op_id>(u32(j["node"], p.graph.op_count()));
    s.stream = static_cast<op_stream>(u32(j["stream"], 3));
    s.start = seconds(j, "start");
    s.end = seconds(j, "end");
    if (j.has("workspace")) {
      s.workspace_bytes = j["workspace"].integer(0);
      s.workspace_offset = j["workspace_offset"].integer(0);
    }
    auto const& kind = j["kind"].text();
    char const* const kinds[] = {"compute", "store", "load"};
    if (kind != kinds[static_cast<int>(s.stream)])
      j["kind"].fail(std::string("must be ") + kinds[static_cast<int>(s.stream)] + ", as the stream is");
    auto const origin = root_["nodes"][index(s.op)]["origin"];
    bool const transfer = s.stream != op_stream::compute || p.graph.template as<op::wait>(s.op);
    if (transfer != (origin.integer(-1, INT32_MAX) < 0))
      origin.fail(transfer ? "must be -1: a transfer or a wait is no op of the original"
                           : "must be an op of the original");
    auto const took = root_["nodes"][index(s.op)]["latency_us"];
    if (std::abs(took.number(0) * 1e-6 - (s.end - s.start)) > 1e-9 * s.end + 1e-15)
      took.fail("is not the time from start to end of steps[" + std::to_string(i) + "]");
    p.steps.push_back(s);
  }
}

NEAP_FUNC void plan_reader::read_buffers() {
  auto& p = out_.planned;
  auto const list = root_["buffers"];
  auto const storage_of = [&](json_place const& j) {
    auto const v = value_[u32(j, value_.size())];
    if (v == nothing<value_id>) j.fail("no node makes it");
    return p.graph.storage(v);
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto const j = list[i];
    plan_buffer b;
    b.storage = storage_of(j["value"]);
    if (value_[u32(j["value"], value_.size())] != p.graph.record(b.storage).first)
      j["value"].fail("must be the first tensor of its storage");
    j["pool"].require(j["pool"].text() == "device", "must be device");
    b.offset = j["offset"].integer(0);
    b.bytes = j["bytes"].integer(0);
    b.first = u32(j["first"], p.steps.size() + 1);
    b.last = u32(j["last"], p.steps.size() + 1);
    b.resident = j["resident"].boolean();
    if (j.has("takes_over")) b.takes_over = storage_of(j["takes_over"]);
    p.buffers.push_back(b);
  }
  std::sort(p.buffers.begin(), p.buffers.end(),
            [](plan_buffer const& x, plan_buffer const& y) { return x.storage < y.storage; });
}

NEAP_FUNC graph without_details(graph const& g) {
  graph_editor edit(g);
  for (auto o : g.ops()) edit.set_details(o, {});
  return graph(std::move(edit).finish());
}

}  // namespace detail

NEAP_FUNC void complete(plan_file& p, graph const& original) {
  if (p.version != 1 || p.planned.original != detail::without_details(original).digest()) return;
  table<op_id, op_id> of(original.origin_count(), nothing<op_id>);
  for (auto o : original.ops()) of[original.origin(o)] = o;
  auto& g = p.planned.graph;
  graph_editor edit(g);
  for (auto o : g.ops())
    if (auto const from = g.origin(o); index(from) < of.size() && of[from] != nothing<op_id>)
      edit.set_details(o, original.details(of[from]));
  g = graph(std::move(edit).finish());
  p.planned.original = original.digest();
  p.version = 3;
}

NEAP_FUNC result<plan_file> parse_plan(std::string const& text, std::string const& path) {
  auto document = parse_document(text, path, wanted_file::plan);
  if (!document) return failure{document.message()};
  if (auto const format = document->find("format"); document_kind(*document) != "a JSON object of no known kind" &&
                                                    (format == document->end() || *format == "neap-graph"))
    return failure{path + ": " + document_kind(*document) + "; " + std::string(wanted_file::plan)};
  try {
    json_place const root(*document, path);
    root["format"].require(root["format"].text() == "neap.plan", "must be \"neap.plan\"");
    auto const at = text.rfind("\"checksum\":\"");
    if (at == text.npos || !root.has("checksum")) return failure{path + ": lacks \"checksum\""};
    auto const sum = digest{}.mix(std::string_view(text).substr(0, at));
    if (text.substr(at) != "\"checksum\":\"" + to_hex(sum) + "\"}\n")
      return failure{path + ": damaged: its checksum does not fit"};
    return detail::plan_reader(root).read();
  } catch (std::exception const& e) { return refusal(path, e); }
}

NEAP_FUNC result<plan_file> read_plan(std::string const& path) {
  auto text = read_file(path);
  if (!text) return failure{text.message()};
  return parse_plan(*text, path);
}

}}}  // namespace neap::v0::io
