// What storing and loading a value would take, of a graph that does neither: a cost model's answer for a graph that does
// nothing else, once for each type. (Equal ops of equal types have equal costs: cost_model_for promises it.)
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/ir/editor.hpp>
#include <neap/plan/graph_edit.hpp>
#include <neap/simulate/cost_model.hpp>

#include <utility>

namespace neap { inline namespace v0 {

/// Remembers its answers: for one cost model. G is a graph of neap's.
class transfer_costs {
 public:
  struct both {
    seconds_t store = 0, load = 0;
  };
  /// For a value of g. O(types).
  template <class C>
  both const& operator()(op_graph const& g, C const& cost, value_id v) {
    auto const& type = g.type(v);
    for (auto const& k : known_)
      if (k.type == type) return k.takes;
    auto const before = work_meter::now();
    graph_editor edit{g.facet_table()};
    auto const away = edit.add(op::store{}, {edit.add_source(role::input, type)})[0];
    auto const back = edit.add(op::load{}, {away})[0];
    auto const store = edit.graph().producer(away), load = edit.graph().producer(back);
    op_graph const alone(std::move(edit).finish());
    // Each thread has a table: filling it does not count as work of the mutation that asks first.
    work_meter::reset_to(before);
    auto const time = [&](op_id o) { return detail::as_time(cost(alone, o), o, "optimize"); };
    known_.push_back({type, {time(store), time(load)}});
    return known_.back().takes;
  }
  /// Says of an outline of g what its transfers take.
  template <class C>
  void tell(op_graph const& g, C const& cost, graph_edit& outline) {
    for (auto& r : outline.runs)
      if (r.what == graph_edit::kind::store) r.seconds = (*this)(g, cost, r.moved).store;
      else if (r.what == graph_edit::kind::load) r.seconds = (*this)(g, cost, r.moved).load;
  }

 private:
  struct row {
    tensor_type type;
    both takes;
  };
  plain_vector<row> known_;
};

}}  // namespace neap::v0
