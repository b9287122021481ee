// Errors of functions and their gradients in bf16 and f16, beside bounds, in roundings: halves of a unit in the last place of
// the right element, or of the largest (tests/support/low_types.hpp has the cases). One CSV row a function, type and
// magnitude of its arguments:
//
//   bench_low_types
//
// The program fails if an error is above its bound.
#include "../tests/support/low_types.hpp"

#include <cstdio>
#include <string>

int main() {
  int above = 0;
  std::printf("function,type,scale,result,bound,gradients,bound_of_gradients,of\n");
  neap_test::low_types::each_measured_row([&](auto const& m) {
    auto const& b = m.of.within;
    above += m.result.roundings > b.result || m.slopes.roundings > b.slope;
    std::printf("%s,%s,%g,%.2f,%g,%.2f,%g,%s\n", m.of.name, std::string(neap::name_of(m.type)).c_str(), m.scale,
                m.result.roundings, b.result, m.slopes.roundings, b.slope, b.of_largest ? "largest" : "each");
  });
  return above != 0;
}
