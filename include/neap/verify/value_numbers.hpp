// What every value of a graph is, as a number: two values with one number are computed by the same operators from the
// same sources, in this graph or in another one. Copies have the number of what they copy, load(wait(store(x))) has x's. With
// it the verifier compares a planned graph with the original without trusting the planner's word on which op copies which.
//
// A fused op has the number of the last of the operators that its steps stand for, and each of its results the number of
// that operator's, so that a plan may fuse what the original has not, and the other way round.
//
// A number says which elements a value has, and not where they lie: a copy may be dense and its original not. What depends
// on layouts (views, kept values) is compared by them.
//
// (Value numbering: Cocke and Schwartz 1970; here over two graphs, by 128-bit hashes under a secret key. Among n values two
// share a number by chance with n^2 / 2^129, and no plan can be made so that they do.)
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/sip_hash.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/operators/fused.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::verifying {

inline bool is_store(op_graph const& g, op_id o) { return g.as<op::store>(o) != nullptr; }
inline bool is_load(op_graph const& g, op_id o) { return g.as<op::load>(o) != nullptr; }
inline bool is_wait(op_graph const& g, op_id o) { return g.as<op::wait>(o) != nullptr; }
/// Stores, loads and waits: what moves values and computes none.
inline bool is_transfer(op_graph const& g, op_id o) { return is_store(g, o) || is_load(g, o) || is_wait(g, o); }
/// The store whose handle this is, of all the waits that hand it on; nothing if none is.
inline op_id stored_by(op_graph const& g, value_id v) {
  auto o = g.producer(v);
  for (std::size_t k = 0; o != nothing<op_id> && is_wait(g, o) && k < g.op_count(); ++k)
    o = g.inputs(o).size() == 1 ? g.producer(g.inputs(o)[0]) : nothing<op_id>;
  return o != nothing<op_id> && is_store(g, o) ? o : nothing<op_id>;
}

inline bool updates_in_place(op_graph const& g, op_id o) {
  for (auto v : g.outputs(o))
    if (g.record(v).alias == alias_kind::update) return true;
  return false;
}
/// Ops that may not run twice, nor be left out. What is pinned beside that: pins.hpp.
inline bool runs_exactly_once(op_graph const& g, op_id o) {
  auto const* x = g.as<op::opaque>(o);
  return updates_in_place(g, o) || (x && !x->pure && !x->placeholder && !g.pins(o).has(pin::run_again));
}
inline bool runs_at_most_once(op_graph const& g, op_id o) {
  auto const* x = g.as<op::opaque>(o);
  return runs_exactly_once(g, o) || (x && x->placeholder);
}

/// Whether an op makes the value that something is forbidden to.
inline bool is_pinned(op_graph const& g, value_id v) {
  auto const o = g.producer(v);
  return o != nothing<op_id> &&
         (g.pins(v) | g.pins(o)).has_any(pin::keep | pin::run_once | pin::never_in_parts | pin::never_out);
}

inline sip_hash& with_type(sip_hash& h, tensor_type const& t) {
  h.mix(static_cast<std::uint64_t>(t.element)).mix(static_cast<std::uint64_t>(t.rank()));
  for (auto n : t.dims) h.mix(static_cast<std::uint64_t>(n));
  return h;
}
inline sip_hash& with_layout(sip_hash& h, tensor_layout const& l) {
  with_type(h, l.type);
  for (auto n : l.strides) h.mix(static_cast<std::uint64_t>(n));
  return h.mix(static_cast<std::uint64_t>(l.offset));
}

/// Mixes an operator's attributes into a number.
inline void mix_attributes(sip_hash& d, std::span<attribute_field const> attributes, void const* bytes) {
  for (auto const& a : attributes) {
    auto const value = a.get(bytes);
    d.mix(value.index());
    if (auto const* e = std::get_if<extents>(&value)) {
      d.mix(static_cast<std::uint64_t>(e->rank()));
      for (auto i : *e) d.mix(static_cast<std::uint64_t>(i));
    } else if (auto const* program = std::get_if<element_program>(&value)) {
      for (auto i : program->numbers()) d.mix(static_cast<std::uint64_t>(i));
    } else if (auto const* real = std::get_if<double>(&value)) {
      d.mix(std::bit_cast<std::uint64_t>(*real));
    } else if (auto const* whole = std::get_if<std::int64_t>(&value)) {
      d.mix(static_cast<std::uint64_t>(*whole));
    } else if (auto const* truth = std::get_if<bool>(&value)) {
      d.mix(*truth ? 1u : 0u);
    } else {
      d.mix(static_cast<std::uint64_t>(std::get<dtype>(value)));
    }
  }
}

/// The operator: its kind, what a file calls it and says of it, its attributes with the random key among them. An
/// opaque op that draws random numbers or may run only once differs from its like by the original op that it stands for.
inline digest operator_number(op_graph const& g, op_id o, hash_key key) {
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
inline digest outputs_number(op_graph const& g, op_id o, hash_key key) {
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
inline digest source_number(op_graph const& g, value_id v, std::uint64_t ordinal, std::uint64_t storage, hash_key key) {
  auto const& r = g.record(v);
  sip_hash h(key);
  h.mix(0x736f75726365).mix(ordinal).mix(storage).mix(static_cast<std::uint64_t>(r.role));
  return with_layout(h, g.layout(v)).mix(static_cast<std::uint64_t>(g.bytes(r.storage))).finish();
}

/// A fused op whose steps are known; nullptr if it is none, or not a right one. Its results have memory of their own, dense.
inline op::fused const* fused_of(op_graph const& g, op_id o) {
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

/// Ops so that each comes after the makers of its inputs; shorter than the graph if these form a circle.
inline std::vector<op_id> data_order(op_graph const& g) {
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

struct numbers {
  table<value_id, digest> value;
  table<op_id, digest> op;            // of transfers: unused
  table<op_id, digest> plain, types;  // operator_number, outputs_number
  std::vector<op_id> order;
  hash_key key;

  numbers(op_graph const& g, hash_key secret)
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
  /// The numbers of one op's outputs, from those of its inputs.
  void add(op_graph const& g, op_id o) {
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
  /// f(number) for what a fused op stands for, in order: the numbers of those operators. The op has its last step's; so
  /// have the others if they have one result.
  template <class F>
  void each_step(op_graph const& g, op_id o, F const& f) const {
    numbers_inside(*fused_of(g, o), g, o, f);
  }
  void set(op_graph const& g, op_id o, digest d) {
    op[o] = d;
    std::uint64_t j = 0;
    for (auto v : g.outputs(o)) value[v] = d.mix(j++);
  }
  /// Op o is op x of a graph with these numbers.
  void set_as(op_graph const& g, op_id o, numbers const& other, op_graph const& of, op_id x) {
    op[o] = other.op[x];
    for (std::size_t j = 0; j < g.outputs(o).size(); ++j) value[g.outputs(o)[j]] = other.value[of.outputs(x)[j]];
  }

 private:
  /// The numbers of a fused op and of its outputs.
  void set_steps(op::fused const& p, op_graph const& g, op_id o) {
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
  struct inner_numbers {
    digest x, first_step, sum;  // of values: x, what the epilogue's first step makes, a product's sums
    digest anchor, last;        // of operators: the anchor, and what makes z
  };
  template <class F>
  inner_numbers numbers_inside(op::fused const& p, op_graph const& g, op_id o, F const& f) const {
    auto const in = g.inputs(o);
    auto const out = g.outputs(o);
    auto const first = static_cast<std::size_t>(p.prologue_inputs());
    auto const end = first + static_cast<std::size_t>(p.others(static_cast<int>(in.size())));
    auto const& z = g.type(out[0]);
    inner_numbers made{value[in[0]], {}, {}, {}, {}};
    auto const note = [&](digest d) { f(d), made.last = d; };
    plain_vector<digest> read;
    if (!p.prologue.empty()) {
      plain_vector<tensor_layout> layouts;
      for (auto v : in.first(first)) read.push_back(value[v]), layouts.push_back(g.layout(v));
      auto const x = p.is_reduction() ? p.x_type({layouts.data(), layouts.size()}) : z;
      steps(p.prologue, x.dims, span_of(read), p.has_anchor() ? fresh_number(x) : types[o], note);
      made.x = result(made.last);
    }
    if (!p.has_anchor()) return made;
    sip_hash types_made(key), d(key);
    mix_fresh(types_made, z);
    bool const has_sums = p.sums != product_sums::none;
    for (auto j = static_cast<std::size_t>(p.whole_results()); j < out.size() && !has_sums; ++j)
      mix_fresh(types_made, g.type(out[j]));
    p.with_anchor([&](auto const& one) { d.mix(called(view_of(one))); });
    d.mix(types_made.finish()).mix(made.x);
    for (auto v : in.subspan(first, end - first)) d.mix(value[v]);
    note(made.anchor = d.finish());
    if (!p.epilogue.empty()) {
      read.clear();
      read.push_back(result(made.anchor));
      for (auto v : in.subspan(end)) read.push_back(value[v]);
      bool begins = true;
      steps(p.epilogue, z.dims, span_of(read), fresh_number(z), [&](digest step) {
        if (std::exchange(begins, false)) made.first_step = result(step);
        note(step);
      });
    }
    if (has_sums) {  // as of what is summed itself; a graph may sum a view of it
      auto const& type = g.type(out.back());
      sip_hash sum(key);
      sum.mix(called(view_of(op::sum_to{type.dims}))).mix(fresh_number(type));
      auto const number =
          sum.mix(p.summed() >= 0 ? value[in[static_cast<std::size_t>(p.summed())]] : result(made.last)).finish();
      f(number), made.sum = result(number);
    }
    return made;
  }
  /// operator_number() of a standard operator.
  digest called(operator_view view) const {
    sip_hash d(key);
    d.mix(view.facets->name);
    mix_attributes(d, view.facets->attributes, view.bytes);
    return d.finish();
  }
  /// The value of an op with this number and one output.
  static digest result(digest number) { return number.mix(std::uint64_t{0}); }
  /// outputs_number() of an op that makes one dense value of this type.
  digest fresh_number(tensor_type const& t) const {
    sip_hash makes(key);
    mix_fresh(makes, t);
    return makes.finish();
  }
  static void mix_fresh(sip_hash& d, tensor_type const& t) {
    d.mix(static_cast<std::uint64_t>(alias_kind::fresh)).mix(std::uint64_t{70000 - 1});
    with_layout(d, tensor_layout::dense(t)).mix(static_cast<std::uint64_t>(t.bytes()));
  }
  /// The numbers of a program's steps on inputs of these numbers; `last_makes`: what the last one makes.
  template <class F>
  void steps(element_program const& p, shape const& dims, std::span<digest const> in, digest last_makes,
             F const& f) const {
    std::array<digest, element_program::max_inputs + element_program::max_steps> values;
    std::size_t made = 0;
    for (auto d : in) values[made++] = d;
    p.for_each_step([&](int k, element_step const& s, op::detail::step_operator const& what, void const* bytes) {
      sip_hash name(key), d(key);
      name.mix(what.name);
      mix_attributes(name, what.attributes, bytes);
      d.mix(name.finish()).mix(k + 1 < p.step_count ? fresh_number({s.element, dims}) : last_makes);
      for (int i = 0; i < what.arguments; ++i) d.mix(values[s.operands[static_cast<std::size_t>(i)]]);
      auto const number = d.finish();
      values[made++] = result(number);
      f(number);
    });
  }
};

/// Whether some value is computed by two ops, of which a plan may leave one out. O(ops log ops).
inline bool computes_twice(op_graph const& g) {
  numbers n(g, hash_key{});
  std::vector<digest> all;
  for (auto o : n.order) {
    n.add(g, o);
    if (!is_transfer(g, o) && !runs_exactly_once(g, o)) all.push_back(n.op[o]);
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

}}}  // namespace neap::v0::detail::verifying
