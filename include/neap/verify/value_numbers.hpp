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

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

inline bool is_store(op_graph const& g, op_id o) { return g.as<op::store>(o) != nullptr; }
inline bool is_load(op_graph const& g, op_id o) { return g.as<op::load>(o) != nullptr; }
inline bool is_wait(op_graph const& g, op_id o) { return g.as<op::wait>(o) != nullptr; }
/// Stores, loads and waits: what moves values and computes none.
inline bool is_transfer(op_graph const& g, op_id o) { return is_store(g, o) || is_load(g, o) || is_wait(g, o); }
/// The store whose handle this is, of all the waits that hand it on; nothing if none is.
op_id stored_by(op_graph const& g, value_id v);

bool updates_in_place(op_graph const& g, op_id o);
/// Ops that may not run twice, nor be left out. What is pinned beside that: pins.hpp.
bool runs_exactly_once(op_graph const& g, op_id o);
bool runs_at_most_once(op_graph const& g, op_id o);

/// Whether an op makes the value that something is forbidden to.
bool is_pinned(op_graph const& g, value_id v);

sip_hash& with_type(sip_hash& h, tensor_type const& t);
sip_hash& with_layout(sip_hash& h, tensor_layout const& l);

/// Mixes an operator's attributes into a number.
void mix_attributes(sip_hash& d, std::span<attribute_field const> attributes, void const* bytes);

/// The operator: its kind, what a file calls it and says of it, its attributes with the random key among them. An
/// opaque op that draws random numbers or may run only once differs from its like by the original op that it stands for.
digest operator_number(op_graph const& g, op_id o, hash_key key);

/// A fused op whose steps are known; nullptr if it is none, or not a right one. Its results have memory of their own, dense.
op::fused const* fused_of(op_graph const& g, op_id o);

/// Ops so that each comes after the makers of its inputs; shorter than the graph if these form a circle.
std::vector<op_id> data_order(op_graph const& g);

struct value_numbering {
  table<value_id, digest> value;
  table<op_id, digest> op;            // of transfers: unused
  table<op_id, digest> plain, types;  // operator_number, outputs_number
  std::vector<op_id> order;
  hash_key key;

  value_numbering(op_graph const& g, hash_key secret);
  /// The numbers of one op's outputs, from those of its inputs.
  void add(op_graph const& g, op_id o);
  /// f(number) for what a fused op stands for, in order: the numbers of those operators. The op has its last step's; so
  /// have the others if they have one result.
  template <class F>
  void each_step(op_graph const& g, op_id o, F const& f) const {
    numbers_inside(*fused_of(g, o), g, o, f);
  }
  void set(op_graph const& g, op_id o, digest d);
  /// Op o is op x of a graph with these numbers.
  void set_as(op_graph const& g, op_id o, value_numbering const& other, op_graph const& of, op_id x) {
    op[o] = other.op[x];
    for (std::size_t j = 0; j < g.outputs(o).size(); ++j) value[g.outputs(o)[j]] = other.value[of.outputs(x)[j]];
  }

 private:
  /// The numbers of a fused op and of its outputs.
  void set_steps(op::fused const& p, op_graph const& g, op_id o);
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
  digest called(operator_view view) const;
  /// The value of an op with this number and one output.
  static digest result(digest number) { return number.mix(std::uint64_t{0}); }
  /// outputs_number() of an op that makes one dense value of this type.
  digest fresh_number(tensor_type const& t) const;
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
bool computes_twice(op_graph const& g);

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/value_numbers.ipp>
#endif
