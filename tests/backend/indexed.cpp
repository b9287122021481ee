#include <neap/backend/kernels/indexed.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

namespace {
struct plus {
  static constexpr bool integral = true;
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
}  // namespace

TEST_CASE("parts picked and added to: any type, layout and axis, on any number of threads") {
  random_stream r{6};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = all_types[round % 7];  // sums of booleans are none
    shape dims = random_shape(r, 2, 9);
    dims.push_back(1 + r.below(round % 3 ? 9 : 4000));
    int const axis = static_cast<int>(r.below(static_cast<std::uint32_t>(dims.rank())));
    std::int64_t const n = 1 + r.below(round % 2 ? 12 : 40);
    shape part = dims;
    part[axis] = n;
    auto const x = random_view(t, dims, r, false, true, 0, 9), source = random_view(t, part, r, false, true, 0, 9),
               index = random_view(dtype::i64, {n}, r, false, true, 0, static_cast<double>(dims[axis]));
    owned picked{t, part}, picked2{t, part}, sums{t, dims}, sums2{t, dims};
    index_select(one, picked, x, index, axis);
    index_select(many, picked2, x, index, axis);
    CHECK(same_bits(picked, picked2));
    std::vector<double> room(static_cast<std::size_t>(numbered_sums_workspace({t, dims}, n) / 8 + 1)), room2 = room;
    index_add(one, plus{}, sums, x, index, source, axis, room.data());
    index_add(many, plus{}, sums2, x, index, source, axis, room2.data());
    CHECK(same_bits(sums, sums2));

    auto const xv = values(x), iv = values(index), sv = values(source);
    std::vector<double> expected, total = xv;
    std::int64_t inner = 1;
    for (int a = axis + 1; a < dims.rank(); ++a) inner *= dims[a];
    for (std::size_t i = 0; i < sv.size(); ++i) {
      auto const k = static_cast<std::int64_t>(i);
      auto const number = static_cast<std::int64_t>(iv[static_cast<std::size_t>(k / inner % n)]);
      auto const at = static_cast<std::size_t>((k / inner / n * dims[axis] + number) * inner + k % inner);
      expected.push_back(xv[at]);
      total[at] += sv[i];
    }
    CHECK(values(picked) == expected);
    CHECK(near(sums, total, tolerance(t)));
  }
}

TEST_CASE("sums of many whole numbers by number are exact") {
  host_backend b{2};
  for (dtype t : {dtype::i64, dtype::i32})
    for (std::int64_t columns : {1, 40}) {
      std::int64_t const n = 50, large = (std::int64_t{1} << 24) + 1;
      owned source{t, {n, columns}}, x{t, {2, columns}}, sums{t, {2, columns}}, index{dtype::i64, {n}};
      for (std::int64_t i = 0; i < n; ++i) index.ref.as<std::int64_t>()[i] = 1;
      fill(b, source, static_cast<double>(large)), fill(b, x, 1);
      std::vector<double> room(static_cast<std::size_t>(numbered_sums_workspace({t, {2, columns}}, n) / 8 + 1));
      index_add(b, plus{}, sums, x, index, source, 0, room.data());
      std::vector<double> expected(static_cast<std::size_t>(2 * columns), 1);
      for (std::int64_t c = columns; c < 2 * columns; ++c)
        expected[static_cast<std::size_t>(c)] += static_cast<double>(n * large);
      CHECK(values(sums) == expected);
    }
}
