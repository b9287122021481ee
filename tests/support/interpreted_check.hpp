// A case (kernel_cases.hpp) run by the interpreter of PTX and by the host: without a fault, every output written, and with
// the host's results. Bits are the host's where a case says so; elsewhere results differ from the host's by at most 8 times
// the rounding that tests of the host allow: partial sums are other ones, products and sums are fused, and exponentials are
// the device's.
#pragma once

#include "interpreted_backend.hpp"
#include "kernel_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace neap::testing {

/// The same for any case, so that it is compiled once.
inline void check_interpreted(interpreted_module& kernels,
                              std::function<void(host_backend&, case_memory&)> const& on_host,
                              std::function<void(interpreted_backend&, case_memory&)> const& on_device, bool same_order,
                              dtype t, case_extents e, interpreted_layout layout) {
  CAPTURE(name_of(t));
  CAPTURE(e.rows);
  CAPTURE(e.columns);
  CAPTURE(e.shift);
  CAPTURE(e.specials);
  CAPTURE(static_cast<int>(layout));
  host_backend host(1);
  case_memory expected(e, random_stream{7});
  on_host(host, expected);
  std::optional<case_memory> first;
  for (std::uint64_t seed : {0, 1}) {
    CAPTURE(seed);
    case_memory got(e, random_stream{7});
    interpreted_backend b(kernels, got, seed, layout);
    on_device(b, got);
    CHECK(b.faults == "");
    CHECK(b.badly_written() == "");
    if (first) {
      CHECK(first_difference(got, *first, 0) == -1);
      continue;
    }
    bool const equal_bits = same_order && !e.specials;  // a NaN may be another one
    CHECK(first_difference(got, expected, equal_bits ? 0 : 8 * neap_test::tolerance(t)) == -1);
    first.emplace(std::move(got));
  }
}

template <class Case>
void check_interpreted(interpreted_module& kernels, Case const& run, dtype t, case_extents e,
                       interpreted_layout layout = interpreted_layout::by_rule) {
  check_interpreted(
      kernels, [&](host_backend& b, case_memory& m) { run(b, m, t, e); },
      [&](interpreted_backend& b, case_memory& m) { run(b, m, t, e); }, Case::same_order, t, e, layout);
}

}  // namespace neap::testing
