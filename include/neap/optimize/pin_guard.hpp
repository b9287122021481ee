// What a search refuses: candidates that break a pin of the program (ir/pins.hpp), whichever mutation, seed or solver has
// made them. Programs without pins cost nothing.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/operators/transfer.hpp>

#include <cstdint>

namespace neap::inline v0::detail {

class pin_guard {
 public:
  /// Of the program as it came.
  NEAP_ONCE explicit pin_guard(op_graph const& program) : any_(program.has_pins()) {
    if (!any_) return;
    of_origin_.resize(program.origin_count());
    for (auto o : program.ops()) {
      auto& x = of_origin_[index(program.origin(o))];
      x.pins |= program.pins(o), ++x.runs;
    }
  }
  /// Whether a candidate keeps every pin, and its ops still have them. O(ops + rewritten ops * pinned ones).
  NEAP_ONCE bool holds(op_graph const& g) const {
    if (!any_) return true;
    plain_vector<std::uint32_t> runs;
    runs.assign(of_origin_.size(), 0);
    plain_vector<op_id> once, rewritten;
    for (auto o : g.ops()) {
      if (g.as<op::store>(o) && !g.may_swap(g.storage(g.inputs(o)[0]))) return false;
      if (!g.may_recompute(o)) once.push_back(o);
      else if (g.record(o).rewritten) rewritten.push_back(o);
      auto const i = index(g.origin(o));
      if (i >= of_origin_.size() || of_origin_[i].pins.empty()) continue;
      if (g.pins(o) != of_origin_[i].pins) return false;
      if (g.record(o).part != nothing<part_id> && !g.may_cut(o)) return false;
      ++runs[i];
    }
    for (auto o : rewritten)  // a rule that comes upon what a pinned op computes
      for (auto x : once)
        if (computes_the_same(g, o, x)) return false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      auto const& x = of_origin_[i];
      if (x.pins.has_any(pin::keep | pin::run_once) ? runs[i] != x.runs
                                                    : x.pins.has_any(pin::never_in_parts | pin::never_out) && !runs[i])
        return false;
    }
    return true;
  }

 private:
  static bool computes_the_same(op_graph const& g, op_id a, op_id b) {
    auto const x = g.inputs(a), y = g.inputs(b);
    if (&g.facets(a) != &g.facets(b) || x.size() != y.size() || !same_operator(g.view(a), g.view(b))) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const p = g.producer(x[i]), q = g.producer(y[i]);
      if (x[i] == y[i]) continue;
      if (p == nothing<op_id> || q == nothing<op_id> || g.digest(p) != g.digest(q) ||
          index(x[i]) - index(g.output(p)) != index(y[i]) - index(g.output(q)))
        return false;
    }
    return true;
  }

  struct pinned {
    pin_set pins;
    std::uint32_t runs = 0;
  };
  bool any_;
  plain_vector<pinned> of_origin_;
};

}  // namespace neap::inline v0::detail
