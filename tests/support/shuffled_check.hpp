// A case (kernel_cases.hpp) run on shuffled blocks, in two orders: both give the host's results, and the same bits. How far
// they may differ from the host's: as in interpreted_check.hpp.
#pragma once

#include "kernel_cases.hpp"
#include "shuffled_block.hpp"

#include <doctest/doctest.h>

namespace neap::testing {

template <class Case>
void check_shuffled(Case const& run, dtype t, case_extents e) {
  host_backend host(1);
  case_memory expected(e, random_stream{7}), first(e, random_stream{7}), second(e, random_stream{7});
  run(host, expected, t, e);
  shuffled_backend a(3), b(4);
  run(a, first, t, e), run(b, second, t, e);
  CHECK(first_difference(first, expected, Case::same_order ? 0 : 8 * neap_test::tolerance(t)) == -1);
  CHECK(first_difference(second, first, 0) == -1);
}

}  // namespace neap::testing
