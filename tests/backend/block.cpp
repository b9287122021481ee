#include <neap/backend/block.hpp>

#include "../support/sanitized.hpp"
#include "../support/sum_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace neap;
using namespace neap_test;

TEST_CASE("sums of many floats are within 1e-6, with the same bits on any number of threads") {
  host_backend one{1}, three{3};
  constexpr std::int64_t elements = neap::testing::sanitized ? 50'000 : 1'200'000;
  for (auto const& c : sum_cases())
    for (auto const v : {summed_values::equal, summed_values::positive, summed_values::signed_ones}) {
      if (neap::testing::sanitized && v != summed_values::signed_ones) continue;  // the same reads and threads
      INFO(c.name, ", ", name_of(v));
      auto const sums = c.run(one, elements, v);
      CHECK(sums.error() <= c.bound);
      if (v == summed_values::signed_ones) CHECK(c.run(three, elements, v).got == sums.got);
    }
}

TEST_CASE("a sum has the same bits element by element, in pieces and in lanes") {
  random_stream draw{3};
  std::vector<float> x(20'000);
  for (auto& v : x) v = draw.uniform();
  for (std::int64_t n : {0, 1, 33, 512, 513, 544, 1025, 8191, 8192, 8193, 8704, 16'385, 20'000}) {
    CAPTURE(n);
    auto const at = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
    float const sum = host_block{}.reduce_each(n, 0.0f, at, sum_op{});
    CHECK(host_block_in_order{}.reduce_each(n, 0.0f, at, sum_op{}) == sum);
    for (std::int64_t piece : {96, 512}) {
      host_block::pieces<float, sum_op> all(0);
      for (std::int64_t i = 0; i < n; i += piece)
        all.add_each(std::min(piece, n - i), [&](std::int64_t k) { return at(i + k); });
      CHECK(all.result() == sum);
    }
    double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) exact += static_cast<double>(at(i));
    CHECK(static_cast<double>(sum) == doctest::Approx(exact).epsilon(2e-7));
  }
}
