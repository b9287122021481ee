// What a search refuses: candidates that break a pin of the program (ir/pins.hpp), whichever mutation, seed or solver has
// made them. Programs without pins cost nothing.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/operators/transfer.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

class pin_guard {
 public:
  /// Of the program as it came.
  explicit pin_guard(op_graph const& program);
  /// Whether a candidate keeps every pin, and its ops still have them. O(ops + rewritten ops * pinned ones).
  bool holds(op_graph const& g) const;

 private:
  static bool may_store(op_graph const& g, value_id v);
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

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/pin_guard.ipp>
#endif
