// The bodies of <neap/verify/value_numbers.hpp>.
#pragma once

#include <neap/verify/value_numbers.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/attribute_numbers.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

NEAP_FUNC op_id stored_by(op_graph const& g, value_id v) {
  auto o = g.producer(v);
  for (std::size_t k = 0; o != nothing<op_id> && is_wait(g, o) && k < g.op_count(); ++k)
    o = g.inputs(o).size() == 1 ? g.producer(g.inputs(o)[0]) : nothing<op_id>;
  return o != nothing<op_id> && is_store(g, o) ? o : nothing<op_id>;
}

NEAP_FUNC bool updates_in_place(op_graph const& g, op_id o) {
  for (auto v : g.outputs(o))
    if (g.record(v).alias == alias_kind::update) return true;
  return false;
}

NEAP_FUNC bool runs_exactly_once(op_graph const& g, op_id o) {
  auto const* x = g.as<op::opaque>(o);
  return updates_in_place(g, o) || (x && !x->pure && !x->placeholder && !g.pins(o).has(pin::run_again));
}

NEAP_FUNC bool runs_at_most_once(op_graph const& g, op_id o) {
  auto const* x = g.as<op::opaque>(o);
  return runs_exactly_once(g, o) || (x && x->placeholder);
}

NEAP_FUNC bool is_pinned(op_graph const& g, value_id v) {
  auto const o = g.producer(v);
  return o != nothing<op_id> &&
         (g.pins(v) | g.pins(o)).has_any(pin::keep | pin::run_once | pin::never_in_parts | pin::never_out);
}

NEAP_FUNC sip_hash& with_type(sip_hash& h, tensor_type const& t) {
  h.mix(static_cast<std::uint64_t>(t.element)).mix(static_cast<std::uint64_t>(t.rank()));
  for (auto n : t.dims) h.mix(static_cast<std::uint64_t>(n));
  return h;
}

NEAP_FUNC sip_hash& with_layout(sip_hash& h, tensor_layout const& l) {
  with_type(h, l.type);
  for (auto n : l.strides) h.mix(static_cast<std::uint64_t>(n));
  return h.mix(static_cast<std::uint64_t>(l.offset));
}

NEAP_FUNC void mix_attributes(sip_hash& d, std::span<attribute_field const> attributes, void const* bytes) {
  for (auto const& a : attributes) {
    auto const value = a.get(bytes);
    d.mix(value.index());
    each_number(value, [&](std::uint64_t n) { d.mix(n); });
  }
}

NEAP_FUNC digest operator_number(op_graph const& g, op_id o, hash_key key) {
  auto const& f = g.facets(o);
  sip_hash d(key);
  d.mix(f.name);
  auto const* x = g.as<op::opaque>(o);
  if (x) {  // most ops of large graphs: their attributes one by one, without the detour below
    static_assert(op::opaque::attributes().size() == 11, "all of them are here");
    d.mix(g.text(x->target)).mix(g.text(x->details));
    if (x->rng || !x->pure || x->placeholder || updates_in_place(g, o)) d.mix(index(g.origin(o)));
    d.mix(x->pointwise + 2u * x->rng + 4u * x->pure + 8u * x->placeholder).mix(static_cast<std::uint64_t>(x->key));
    for (auto real : {x->flops, x->read, x->written, x->seconds, x->whole_flops, x->whole_bytes})
      d.mix(std::bit_cast<std::uint64_t>(real));
  }
  if (!x) mix_attributes(d, f.attributes, g.attributes(o));
  return d.finish();
}

/// What the outputs are: types, aliasing; of new storages layouts and bytes. Where views lie says what they show only
/// together with where their arguments lie (views.hpp).
NEAP_FUNC digest outputs_number(op_graph const& g, op_id o, hash_key key) {
  sip_hash d(key);
  for (auto v : g.outputs(o)) {
    auto const& r = g.record(v);
    d.mix(static_cast<std::uint64_t>(r.alias)).mix(static_cast<std::uint64_t>(r.of + 70000));
    if (r.alias == alias_kind::fresh) with_layout(d, g.layout(v)).mix(static_cast<std::uint64_t>(g.bytes(r.storage)));
    else with_type(d, g.type(v));
  }
  return d.finish();
}

/// `ordinal`: of the source; `storage`: of the first one that lies in its storage.
NEAP_FUNC digest source_number(op_graph const& g, value_id v, std::uint64_t ordinal, std::uint64_t storage,
                               hash_key key) {
  auto const& r = g.record(v);
  sip_hash h(key);
  h.mix(0x736f75726365).mix(ordinal).mix(storage).mix(static_cast<std::uint64_t>(r.role));
  return with_layout(h, g.layout(v)).mix(static_cast<std::uint64_t>(g.bytes(r.storage))).finish();
}

NEAP_FUNC op::fused const* fused_of(op_graph const& g, op_id o) {
  if (g.facets(o).standard_row != standard_row<op::fused>) return nullptr;
  auto const* p = static_cast<op::fused const*>(g.attributes(o));
  auto const arity = g.inputs(o).size();
  if (!p->fault(arity).empty()) return nullptr;
  auto const out = g.outputs(o);
  if (!p->has_anchor()) return out.size() == 1 ? p : nullptr;
  bool plain = out.size() == static_cast<std::size_t>(p->results(static_cast<int>(arity)));
  for (auto v : out) {
    auto const& r = g.record(v);
    plain = plain && r.alias == alias_kind::fresh && g.layout(v) == tensor_layout::dense(g.type(v)) &&
            g.bytes(r.storage) == g.type(v).bytes();
  }
  auto const whole = static_cast<std::size_t>(p->is_reduction() ? 1 : p->whole_results());
  for (std::size_t j = 0; plain && j < whole; ++j) plain = g.type(out[j]) == g.type(out[0]);
  return plain ? p : nullptr;
}

inline constexpr std::uint64_t stored_mark = 0x73746f726564ull;

NEAP_FUNC std::vector<op_id> data_order(op_graph const& g) {
  std::vector<std::uint32_t> missing(g.op_count()), end(g.op_count());  // end of each op's row of readers
  auto const each_edge = [&](auto&& f) {
    for (auto o : g.ops())
      for (auto v : g.inputs(o))
        if (auto const p = g.producer(v); p != nothing<op_id>) f(index(p), o);
  };
  each_edge([&](std::size_t p, op_id o) { ++missing[index(o)], ++end[p]; });
  std::uint32_t edges = 0;
  for (auto& e : end) e = std::exchange(edges, edges + e);
  std::vector<op_id> readers(edges), order;
  each_edge([&](std::size_t p, op_id o) { readers[end[p]++] = o; });
  order.reserve(g.op_count());
  for (auto o : g.ops())
    if (missing[index(o)] == 0) order.push_back(o);
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto const p = index(order[i]);
    for (auto at = p == 0 ? 0 : end[p - 1]; at < end[p]; ++at)
      if (auto const o = readers[at]; --missing[index(o)] == 0) order.push_back(o);
  }
  return order;
}

NEAP_FUNC value_numbering::value_numbering(op_graph const& g, hash_key secret)
    : value(g.value_count()),
      op(g.op_count()),
      plain(g.op_count()),
      types(g.op_count()),
      order(data_order(g)),
      key(secret) {
  std::uint64_t ordinal = 0;
  table<storage_id, std::uint64_t> first(g.storage_count(), 0);
  for (auto v : g.sources()) {
    auto& begins = first[g.storage(v)];
    if (begins == 0) begins = ordinal + 1;
    value[v] = source_number(g, v, ordinal++, begins, key);
  }
  for (auto o : g.ops()) {
    plain[o] = operator_number(g, o, key);
    types[o] = outputs_number(g, o, key);
  }
}

NEAP_FUNC void value_numbering::add(op_graph const& g, op_id o) {
  if (is_transfer(g, o) && g.inputs(o).size() == 1 && g.outputs(o).size() == 1) {
    auto const in = g.inputs(o)[0];
    auto& out = value[g.output(o)];
    if (is_store(g, o)) {
      out = value[in].mix(stored_mark);
      return;
    }
    auto const p = stored_by(g, in);
    if (is_wait(g, o)) out = value[in];
    else out = p != nothing<op_id> ? value[g.inputs(p)[0]] : value[in].mix(~stored_mark);
    return;
  }
  if (auto const* p = fused_of(g, o)) return set_steps(*p, g, o);
  sip_hash d(key);
  d.mix(plain[o]).mix(types[o]);
  for (auto v : g.inputs(o)) d.mix(value[v]);
  set(g, o, d.finish());
}

NEAP_FUNC void value_numbering::set(op_graph const& g, op_id o, digest d) {
  op[o] = d;
  std::uint64_t j = 0;
  for (auto v : g.outputs(o)) value[v] = d.mix(j++);
}

NEAP_FUNC void value_numbering::set_steps(op::fused const& p, op_graph const& g, op_id o) {
  auto const out = g.outputs(o);
  auto const inside = numbers_inside(p, g, o, [](digest) {});
  plain_vector<digest> made;  // of the other outputs
  if (p.keeps_x) made.push_back(inside.x);
  if (p.keeps_y) made.push_back(result(inside.anchor));
  if (p.keeps_step) made.push_back(inside.first_step);
  if (p.sums != product_sums::none) made.push_back(inside.sum);
  for (std::size_t j = made.size() + 1, k = 1; j < out.size(); ++j, ++k) made.push_back(inside.anchor.mix(k));
  set(g, o, inside.last);
  for (std::size_t j = 0; j < made.size(); ++j) {
    value[out[j + 1]] = made[j];
    op[o] = op[o].mix(made[j].low);
  }
}

NEAP_FUNC digest value_numbering::called(operator_view view) const {
  sip_hash d(key);
  d.mix(view.facets->name);
  mix_attributes(d, view.facets->attributes, view.bytes);
  return d.finish();
}

NEAP_FUNC digest value_numbering::fresh_number(tensor_type const& t) const {
  sip_hash makes(key);
  mix_fresh(makes, t);
  return makes.finish();
}

NEAP_FUNC bool computes_twice(op_graph const& g) {
  value_numbering n(g, hash_key{});
  std::vector<digest> all;
  for (auto o : n.order) {
    n.add(g, o);
    if (!is_transfer(g, o) && !runs_exactly_once(g, o)) all.push_back(n.op[o]);
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

}}}}  // namespace neap::v0::detail::plan_check
