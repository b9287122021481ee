// Groups of ops of a program, each of which becomes one fused operator: how they are found without a cycle, and how the
// program is written with them (train/fuse.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/train/program_copy.hpp>
#include <neap/train/program_places.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct fused_graph {
  op_graph program;
  table<value_id, value_id> value;  // of the graph that was given -> of the program; nothing<value_id>: in an operator
  std::vector<std::vector<op_id>> groups;  // which ops became one, in order, by their ids in the graph that was given
};

namespace detail {

/// Each group becomes an operator with results of its own. It is made where its last op was; what reads its other results
/// waits until there.
class operator_groups {
 public:
  /// Throws neap::error, beginning with `who`, for a graph with parts or a cycle.
  operator_groups(op_graph const& g, operator_facets const& fused, std::string_view who);

  /// The program with its groups as operators. O(ops + edges), and for each op that waits the ops until it runs.
  fused_graph write() const;

 protected:
  struct group {
    op::fused op;
    plain_vector<op_id> ops;  // in order; the last one's place is the operator's
    plain_vector<value_id> in, out;
  };

  bool is_in_group(op_id o) const { return group_[o] != none; }
  /// Whether an op may become a part of another one: it is in no group, and each result is dense and in memory of its
  /// own.
  bool may_join(op_id o) const;
  /// What makes v, if v has no reader but one, is not kept, and its maker may join.
  op_id alone_behind(value_id v) const;
  /// Makes ops one, unless another op must run after one of them and before another one; whether they are.
  bool join(group made);
  /// Ops by their places.
  void sort(plain_vector<op_id>& ops) const;

  op_graph const& g_;
  program_places places_;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Whether no other op must run between these, by way of what is made together already.
  bool may_be_one(std::span<op_id const> ops);
  /// f(op) for the ops that are made together with o.
  template <class F>
  void each_member(op_id o, F const& f) const {
    if (group_[o] == none) return f(o);
    for (auto m : groups_[group_[o]].ops) f(m);
  }
  /// f(op) for what must run before an op.
  template <class F>
  void each_before(op_id o, F const& f) const {
    for (auto v : g_.inputs(o))
      if (auto const p = g_.producer(v); p != nothing<op_id>) f(p);
    for (auto b : g_.order_after(o)) f(b);
  }
  void put(program_copy& copy, op_id o, fused_graph& out) const;

  operator_facets const& fused_;
  table<op_id, std::size_t> group_;   // an index into groups_
  table<op_id, std::uint32_t> seen_;  // the last search that has met an op
  std::uint32_t search_ = 0;
  std::vector<group> groups_;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/operator_groups.ipp>
#endif
