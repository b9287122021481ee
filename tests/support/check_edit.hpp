// An edited graph in its order, judged: it is valid, so is the order, and it computes what the original computed.
#pragma once

#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>

#include "symbolic.hpp"

#include <doctest/doctest.h>

namespace neap::testing {

/// Fails the test case where the edit is wrong. `expected` is what the original gave (run_symbolically).
template <class Edited>
void require_same(Edited const& e, symbolic_result const& expected) {
  auto const valid = verify(e.graph);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  auto const ordered = check_order(e.graph, e.order);
  REQUIRE_MESSAGE(ordered.ok(), ordered.message());
  auto const got = run_symbolically(e.graph, e.order);
  REQUIRE_MESSAGE(got.error.empty(), got.error);
  REQUIRE(got == expected);
}

}  // namespace neap::testing
