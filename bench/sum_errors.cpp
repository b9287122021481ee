// Errors of sums of many f32 numbers, beside a bound. One CSV row a kernel and kind of values:
//
//   bench_sum_errors [--elements 10000000]
//
// case, type, values (all 0.1, or drawn from an interval), elements, error (the largest relative one, beside sums in
// double), bound. The program fails if an error is above its bound. tests/support/sum_cases.hpp has the cases.
#include "../tests/support/sum_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace neap_test;

int main(int argc, char** argv) {
  std::int64_t elements = 10'000'000;
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::string_view(argv[i]) == "--elements") elements = std::atoll(argv[i + 1]);
  neap::host_backend backend;
  int above = 0;
  std::printf("case,type,values,elements,error,bound\n");
  for (auto const& c : sum_cases())
    for (auto const v : {summed_values::equal, summed_values::positive, summed_values::signed_ones}) {
      double const error = c.run(backend, elements, v).error(), bound = 1e-6;
      std::printf("\"%s\",f32,\"%s\",%lld,%.2e,%.0e\n", c.name.c_str(), name_of(v), static_cast<long long>(elements),
                  error, bound);
      std::fflush(stdout);
      above += !(error <= bound);
    }
  return above != 0;
}
