// What passes share that make one operator of several (fuse_elementwise, fuse_epilogues, fuse_rows): what they return,
// how they find and write groups of operators, and the recipe by which steps for other samples are fused, too.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/train/program_copy.hpp>
#include <neap/train/program_places.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

template <class G>
struct fused_graph {
  G program;
  table<value_id, value_id> value;  // of the graph that was given -> of the program; nothing<value_id>: in an operator
  std::vector<std::vector<op_id>> groups;  // which ops became one, in order, by their ids in the graph that was given
};

namespace detail {

/// Groups of ops of a program, each of which becomes one operator with results of its own. An operator is made where
/// its last op was; what reads its other results waits until there.
class operator_groups {
 public:
  /// Throws neap::error, beginning with `who`, for a graph with parts or a cycle.
  operator_groups(op_graph const& g, std::string_view who);

  /// The program with its groups as operators. O(ops + edges), and for each op that waits the ops until it runs.
  fused_graph<op_graph> write() const;

 protected:
  struct group {
    operator_facets const* facets;   // of the operator that it becomes
    std::shared_ptr<void const> op;  // its bytes
    plain_vector<op_id> ops;         // in order; the last one's place is the operator's
    plain_vector<value_id> in, out;
  };

  bool is_in_group(op_id o) const { return group_[o] != none; }
  /// Whether an op may become a part of another one: it is in no group, and each result is dense and in memory of its
  /// own.
  bool may_join(op_id o) const;
  /// What makes v, if v has no reader but one, is not kept, and its maker may join.
  op_id alone_behind(value_id v) const;
  /// Whether ops may be one: no other op must run after one of them and before another one, by way of what is made
  /// together already.
  bool may_be_one(std::span<op_id const> ops);
  /// Makes ops one, if they may be; whether they are.
  bool join(group made);
  template <class Op>
  static std::shared_ptr<void const> bytes_of(Op const& op) {
    return std::make_shared<Op const>(op);
  }

  op_graph const& g_;
  program_places places_;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Calls f(op) for the ops that are made together with o.
  template <class F>
  void each_member(op_id o, F const& f) const {
    if (group_[o] == none) return f(o);
    for (auto m : groups_[group_[o]].ops) f(m);
  }
  /// Calls f(op) for what must run before an op.
  template <class F>
  void each_before(op_id o, F const& f) const {
    for (auto v : g_.inputs(o))
      if (auto const p = g_.producer(v); p != nothing<op_id>) f(p);
    for (auto b : g_.order_after(o)) f(b);
  }
  void put(program_copy& copy, op_id o, fused_graph<op_graph>& out) const;

  table<op_id, std::size_t> group_;   // an index into groups_
  table<op_id, std::uint32_t> seen_;  // the last search that has met an op
  std::uint32_t search_ = 0;
  std::vector<group> groups_;
};

/// A fuser of a graph, made with the facets of the operators that its groups become.
template <class Fuser, class Ops, class... Made>
Fuser fuser_of(basic_graph<Ops> const& g, type_list<Made...>) {
  static_assert((Ops::template contains<Made> && ...),
                "neap: a pass that fuses needs the operators that it makes in the graph's set");
  return Fuser(g, facets_of<Made>...);
}

/// A program as a pass fuses it. Fuser::operators are those that its groups become; find(like) finds groups, where
/// possible those of a program of the same ops with other extents; write() gives the program.
template <class Fuser, class Ops>
fused_graph<basic_graph<Ops>> fused_by(basic_graph<Ops> const& g, std::span<std::vector<op_id> const> like = {}) {
  auto f = fuser_of<Fuser>(g, typename Fuser::operators{});
  f.find(like);
  auto made = f.write();
  return {basic_graph<Ops>(std::move(made.program)), std::move(made.value), std::move(made.groups)};
}

/// A recipe whose steps are fused as the first one was, where that is possible: a batch of another size may have values
/// of several shapes where they had one. (A trainer plans such a step anew.)
template <class Fuser, class Ops>
class fused_recipe final : public step_recipe<Ops> {
 public:
  fused_recipe(std::shared_ptr<step_recipe<Ops> const> plain, std::vector<std::vector<op_id>> groups)
      : plain_(std::move(plain)),
        groups_(std::move(groups)) {}
  model_ref model() const override { return plain_->model(); }
  training_program<Ops> for_sample(void const* sample, void const* type, training_program<Ops> const& like,
                                   std::source_location at) const override {
    return fused(plain_->for_sample(sample, type, like, at), groups_);
  }
  /// A step as the pass fuses it, steps for other samples included.
  static training_program<Ops> fused(training_program<Ops> p, std::span<std::vector<op_id> const> like = {}) {
    auto made = fused_by<Fuser>(p.program, like);
    if (!made.groups.empty()) take_rewritten(p, made);
    if (p.recipe) p.recipe = std::make_shared<fused_recipe>(p.recipe, std::move(made.groups));
    return p;
  }

 private:
  std::shared_ptr<step_recipe<Ops> const> plain_;
  std::vector<std::vector<op_id>> groups_;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fused_graph.ipp>
#endif
