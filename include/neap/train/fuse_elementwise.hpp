// Chains of elementwise operators become one operator each (op::fused): what lies between them takes no memory and no
// pass over it. The values that stay have the same bits.
//
//   auto step = neap::fuse_elementwise(neap::training_step(model, sample, loss, optimizer));
//
// An operator joins its reader where all readers of its result are in one group, so that a group has one result and runs
// where that one was made. Then the group's inputs live until there. So an operator does not join a later group if more
// bytes would wait than its result has, unless nothing else is computed in between.
//
// Planning comes after: fission cuts a fused operator as an elementwise one, recomputation runs it again, and verify()
// compares it step by step. What is pinned stays by itself.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/train/fused_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Finds the groups and writes the graph anew.
class elementwise_fuser {
 public:
  using operators = type_list<op::fused>;

  elementwise_fuser(op_graph const& g, operator_facets const& fused);

  /// Takes the groups that it is given, if there are any that fit; else grows its own.
  void find(std::span<std::vector<op_id> const> like);
  fused_graph<op_graph> write();

 private:
  /// Grows the groups in the graph's order, each from the op that makes its result.
  void grow();
  /// Takes groups that were found in a graph of the same ops with other extents; false, and none, where the ops of one
  /// have several shapes here.
  bool take(std::span<std::vector<op_id> const> groups);
  static bool is_wide(dtype t) { return t == dtype::f64; }
  static bool is_narrow(dtype t) { return t != dtype::f64 && t != dtype::boolean; }
  static bool is_known(dtype t) { return t <= dtype::f16 || t == dtype::boolean; }

  bool can_be_step(op_id o) const;

  /// Lets one of the groups whose results a group reads join it; whether there was one.
  bool join_one(op_id o);
  /// Whether group p, whose result group o reads, may be part of o.
  bool may_join(op_id p, op_id o) const;
  /// Whether nothing is computed between the two but by them.
  bool is_next(op_id p, op_id o) const;

  /// What a group reads, each value once, in the order in which its ops read it.
  plain_vector<value_id> inputs_of(op_id sink) const;
  /// The program of a group; none if it is too large for one, or computes in f64 and in f32.
  std::optional<op::fused> program_of(op_id sink) const;

  op_graph const& g_;
  operator_facets const& fused_;
  table<op_id, op_id> group_;                 // the op whose result its group's is; nothing: it can be no step
  std::vector<plain_vector<op_id>> members_;  // of the group of this op's result, in order
  program_places places_;
  std::vector<op_id> const& order_;
  table<op_id, std::size_t> const &place_, &next_writer_;
  table<storage_id, std::size_t> last_reader_;  // its place; the number of ops: the storage stays
};

}  // namespace detail

/// The program with its chains of elementwise operators fused: those of the standard set, in f32, bf16, f16 and booleans
/// or in f64 and booleans. Throws neap::error for a graph with parts or a cycle. O(ops + edges), and for each group its
/// size times its distance from what joins it.
template <class Ops>
fused_graph<basic_graph<Ops>> fuse_elementwise(basic_graph<Ops> const& g) {
  return detail::fused_by<detail::elementwise_fuser>(g);
}

/// A training step with its chains of elementwise operators fused. Steps for samples of other sizes, which a trainer
/// makes, are fused too.
template <class Ops>
training_program<Ops> fuse_elementwise(training_program<Ops> p) {
  return detail::fused_recipe<detail::elementwise_fuser, Ops>::fused(std::move(p));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse_elementwise.ipp>
#endif
