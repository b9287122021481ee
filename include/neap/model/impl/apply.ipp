// The bodies of <neap/model/apply.hpp>.
#pragma once

#include <neap/model/apply.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

/// Runs an operator's kernel on the data of `in` and of the node's outputs; layouts: of inputs, then of outputs.
NEAP_FUNC void run_kernel(operator_view op, std::span<tensor const> in, plain_vector<tensor_layout> const& layouts,
                          std::span<output_rule const> rules, tensor_node& n, std::source_location at) {
  auto& context = eager_context::current();
  auto const all = span_of(layouts);
  plain_vector<tensor_ref> refs;
  refs.reserve(all.size());
  with_place(at, op.facets->name, [&] {
    for (auto const& t : in) refs.push_back(tensor_ref::place(t.storage()->data(), t.layout()));
    for (auto const& o : n.out) refs.push_back(tensor_ref::place(o.storage->data(), o.layout));
    void* scratch = nullptr;
    if (op.facets->workspace)
      if (auto const bytes = op.facets->workspace(op.bytes, {all.first(in.size()), all.subspan(in.size())}); bytes > 0)
        scratch = context.workspace(bytes);
    auto const r = span_of(refs);
    auto const kernel = host_kernel(*op.facets);
    if (!kernel) throw_error({op.facets->name, ": the host has no kernel for it"});
    for (std::size_t j = 0; j < rules.size(); ++j)
      if (rules[j].alias == alias_kind::update) {
        if (auto* l = computation_listener::active()) l->overwrites(*n.out[j].storage);
        n.out[j].storage->keep_for_readers();
      }
    reporting_failure([&] {
      kernel(context.backend(), op.bytes, {r.first(in.size()), r.subspan(in.size()), scratch});
    });
  });
}

/// Keeps in the node what its gradient needs, if a gradient may be wanted.
NEAP_FUNC void keep_for_gradient(operator_view op, std::span<tensor const> in, std::span<output_rule const> rules,
                                 plain_vector<std::uint32_t>&& versions, tensor_node& n, std::source_location at) {
  if (!context_access::is_recording()) return;
  bool slopes = false;  // whole numbers and truth values have none
  for (auto const& r : rules) slopes = slopes || is_floating(r.layout.type.element);
  if (!slopes) return;
  bool wanted = false;
  for (auto const& t : in) {
    n.of_gradient = n.of_gradient || t.node()->of_gradient;
    n.of_compiled = n.of_compiled || t.node()->of_compiled;
    wanted = wanted || t.wants_gradient();
  }
  if (!wanted) return;  // operators without a gradient too: grad reports them
  n.wants_gradient = true;
  n.facets = op.facets;
  n.order = context_access::next_order();
  n.place = context_access::place(at);
  n.attributes.append(static_cast<std::byte const*>(op.bytes), op.facets->size);
  n.in.assign(in.begin(), in.end());
  n.in_version = std::move(versions);
  bool updates = false;
  for (auto const& r : rules) updates = updates || r.alias == alias_kind::update;
  for (std::size_t i = 0; !updates && i < in.size(); ++i)
    if (auto const& s = in[i].storage(); s->role() == role::buffer) {
      n.in_data.resize(in.size());
      n.in_data[i] = s->reader();
    }
}

NEAP_FUNC std::vector<tensor> run_eagerly(operator_view op, std::span<tensor const> in, std::source_location at) {
  plain_vector<tensor_layout> layouts;
  layouts.reserve(in.size() + 3);
  for (auto const& t : in) {
    if (t.is_empty()) no_input(op.facets->name, static_cast<std::size_t>(&t - in.data()), at);
    if (t.is_traced()) no_trace(at);
    layouts.push_back(t.layout());
  }
  shape_context shapes(op.facets->name, span_of(layouts));
  auto const who = op.facets->name;
  with_place(at, who, [&] {
    op.facets->infer(op.bytes, shapes);
    shapes.require_updates_apart([&](int i, int j) {
      return in[static_cast<std::size_t>(i)].storage() == in[static_cast<std::size_t>(j)].storage();
    });
  });
  if (auto const takes = op.facets->takes; takes != layouts::any) {
    std::uint64_t bits = 0;
    with_place(at, who, [&] { bits = shapes.misfits([&](tensor_layout const& l) { return fits(takes, l); }); });
    if (bits) {
      std::vector<tensor> dense(in.begin(), in.end());
      for (std::size_t i = 0; i < dense.size(); ++i)
        if (i < 64 && bits >> i & 1) dense[i] = run_eagerly(view_of(op::copy{}), span_of(&in[i], 1), at).front();
      return run_eagerly(op, span_of(dense), at);
    }
  }
  auto const rules = shapes.outputs();

  auto n = std::make_shared<tensor_node>();
  n->out.reserve(rules.size());
  plain_vector<std::uint32_t> versions;
  for (auto const& t : in) versions.push_back(t.storage()->version());
  bool computes = false;
  for (auto const& r : rules) {
    std::shared_ptr<tensor_storage> s;
    if (r.alias == alias_kind::fresh) {
      with_place(at, [&] { s = std::make_shared<tensor_storage>(r.layout.type, initialiser{}, role::activation); });
    } else {
      s = r.of >= 0 ? in[static_cast<std::size_t>(r.of)].storage()
                    : n->out[static_cast<std::size_t>(-2 - r.of)].storage;
    }
    computes = computes || r.alias != alias_kind::view;
    n->out.push_back({r.layout, std::move(s), nothing<value_id>, 0});
    layouts.push_back(r.layout);
  }
  if (computes) {
    bool const runs = computation_listener::computes();
    if (runs) run_kernel(op, in, layouts, rules, *n, at);
    for (std::size_t j = 0; j < rules.size(); ++j)
      if (rules[j].alias == alias_kind::update) {
        if (!runs) n->out[j].storage->keep_for_readers();
        n->out[j].storage->written();
      }
  }
  for (auto& o : n->out) o.version = o.storage->version();
  keep_for_gradient(op, in, rules, std::move(versions), *n, at);
  std::vector<tensor> out;
  out.reserve(rules.size());
  for (std::size_t j = 0; j < rules.size(); ++j) out.emplace_back(n, static_cast<std::uint32_t>(j));
  if (auto* l = computation_listener::active()) {
    l->ran(op, in, span_of(out), rules, at);
  } else {
    for (auto const& t : in) recording_watch::uses(*t.storage());
  }
  return out;
}

NEAP_FUNC tensor cast_in(precision_scope& p, tensor const& t, dtype to, std::source_location at) {
  bool const is_heard = computation_listener::active();  // a recording makes its own casts
  if (!is_heard)
    if (tensor known = p.find(t, to); !known.is_empty()) return known;
  tensor made = apply_as_given(view_of(op::cast{to}), span_of(&t, 1), at).front();
  if (!is_heard) p.keep(t, made);
  return made;
}

NEAP_FUNC std::vector<tensor> apply_in(precision_scope& p, operator_view op, std::span<tensor const> in,
                                       std::source_location at) {
  dtype const low = p.low();
  auto const rule = op.facets->precision;
  auto use = rule.use;
  using enum precision_use;
  if (low == dtype::f32 && (use == common || use == reduced || use == rows)) use = full;
  auto const is_free = [&](std::size_t i) { return !in[i].is_empty() && (i >= 32 || !(rule.kept >> i & 1)); };
  bool any_low = false;
  for (std::size_t i = 0; i < in.size(); ++i) any_low = any_low || (is_free(i) && is_low(in[i].element()));
  auto const target = [&](std::size_t i) {
    dtype const t = in[i].element();
    if (t != dtype::f32 && !is_low(t)) return t;
    switch (use) {
      case reduced: return t == dtype::f32 ? low : t;
      case common: return any_low && t == dtype::f32 ? low : t;
      case full: return dtype::f32;
      case of_first: {
        dtype const first = in[0].is_empty() ? t : in[0].element();
        return first == dtype::f32 || is_low(first) ? first : t;
      }
      default: return t;
    }
  };
  std::vector<tensor> changed;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_free(i)) continue;
    dtype const to = target(i);
    if (to == in[i].element()) continue;
    if (changed.empty()) changed.assign(in.begin(), in.end());
    changed[i] = cast_in(p, in[i], to, at);
  }
  auto out = apply_as_given(op, changed.empty() ? in : span_of(changed), at);
  if (use == rows)
    for (auto& t : out)
      if (t.element() == dtype::f32) t = cast_in(p, t, low, at);
  return out;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::vector<tensor> apply_as_given(operator_view op, std::span<tensor const> in, std::source_location at) {
  if (auto* t = tracer::active()) {
    // Where graphs begin without a table they cannot see it themselves.
    if (kernels_by_operator && op.facets->standard_row < 0 && is_standard_name(op.facets->name))
      throw_error(context_access::place(at), {op.facets->name, ": another operator in the graph has this name"});
    return t->emit(op, in, at);
  }
  return run_eagerly(op, in, at);
}

NEAP_FUNC std::vector<tensor> apply_view(operator_view op, std::span<tensor const> in, std::source_location at) {
  if (auto* p = context_access::precision()) return apply_in(*p, op, in, at);
  return apply_as_given(op, in, at);
}

NEAP_FUNC tensor in_full(tensor const& x, std::source_location at) {
  auto* const p = context_access::precision();
  return p && !x.is_empty() && is_low(x.element()) ? cast_in(*p, x, dtype::f32, at) : x;
}

NEAP_FUNC bool may_meet(dtype a, dtype b) {
  auto const either = [](dtype t) { return t == dtype::f32 || is_low(t); };
  return a == b || (context_access::precision() && either(a) && either(b));
}

}  // namespace detail
}}  // namespace neap::v0
