#include <neap/backend/kernels/embedding.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

TEST_CASE("embedding picks rows, and its gradient adds them up") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 80; ++round) {
    dtype const t = floating_types[round % 4];
    std::int64_t const rows = 1 + r.below(50), columns = 1 + r.below(round % 4 ? 40 : 600);
    shape s = random_shape(r, 2, 30);
    auto table = random_view(t, {rows, columns}, r, true);
    owned index{dtype::i64, s};
    randomize(index, r, 0, static_cast<double>(rows));
    shape full = s;
    full.push_back(columns);
    owned y{t, full}, y2{t, full};
    embedding(one, y, table, index);
    embedding(many, y2, table, index);
    CHECK(same_bits(y, y2));
    auto const tv = values(table), iv = values(index), yv = values(y);
    auto dy = random_view(t, full, r, true);
    auto const gv = values(dy);
    auto const n = static_cast<std::size_t>(columns);
    std::vector<double> expected, gradient(static_cast<std::size_t>(rows) * n);
    for (std::size_t i = 0; i < iv.size(); ++i)
      for (std::size_t c = 0; c < n; ++c) {
        expected.push_back(tv[static_cast<std::size_t>(iv[i]) * n + c]);
        gradient[static_cast<std::size_t>(iv[i]) * n + c] += gv[i * n + c];
      }
    CHECK(yv == expected);
    std::vector<std::byte> work(
        static_cast<std::size_t>(embedding_backward_workspace(rows, static_cast<std::int64_t>(iv.size()))));
    owned d{t, {rows, columns}}, d2{t, {rows, columns}};
    embedding_backward(one, d, dy, index, work.data());
    embedding_backward(many, d2, dy, index, work.data());
    CHECK(same_bits(d, d2));
    CHECK(near(d, gradient, 10 * tolerance(t)));
  }
  owned table{dtype::f32, {3, 2}}, index{dtype::i64, {2}}, y{dtype::f32, {2, 2}};
  index.ref.as<std::int64_t>()[1] = 3;
  CHECK_THROWS_WITH_AS(embedding(one, y, table, index), "embedding: index 3 at place 1 is not below 3", error);
}
