#include <neap/backend/kernels/topk.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace neap;
using namespace neap_test;

TEST_CASE("the best of lines of any type and layout, on any number of threads") {
  random_stream r{5};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = all_types[round % 8];
    shape dims = random_shape(r, 3, 9);
    dims.push_back(1 + r.below(round % 3 ? 12 : 600));
    int const axis = static_cast<int>(r.below(static_cast<std::uint32_t>(dims.rank())));
    std::int64_t const n = dims[axis], k = 1 + r.below(static_cast<std::uint32_t>(n));
    bool const largest = r.below(2);
    // few values, so that many are equal
    auto const x = random_view(t, dims, r, false, true, 0, round % 2 ? 4 : 200);
    shape best = dims;
    best[axis] = k;
    owned values{t, best}, places{dtype::i64, best}, values2{t, best}, places2{dtype::i64, best};
    std::vector<std::byte> work(static_cast<std::size_t>(topk_workspace(dims, k, axis)));
    topk(one, values, places, x, k, axis, largest, work.data());
    topk(many, values2, places2, x, k, axis, largest, work.data());
    CHECK(same_bits(values, values2));
    CHECK(same_bits(places, places2));

    auto const xv = neap_test::values(x), pv = neap_test::values(places), vv = neap_test::values(values);
    std::int64_t inner = 1;
    for (int a = axis + 1; a < dims.rank(); ++a) inner *= dims[a];
    for (std::int64_t line = 0; line < x.ref.count() / n; ++line) {
      auto const at = [&](std::int64_t i, std::int64_t extent) {
        return static_cast<std::size_t>((line / inner * extent + i) * inner + line % inner);
      };
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return largest ? xv[at(a, n)] > xv[at(b, n)] : xv[at(a, n)] < xv[at(b, n)];
      });
      bool right = true;
      for (std::int64_t i = 0; i < k; ++i) {
        auto const place = order[static_cast<std::size_t>(i)];
        right = right && pv[at(i, k)] == static_cast<double>(place) && vv[at(i, k)] == xv[at(place, n)];
      }
      CHECK(right);
    }
  }
}
