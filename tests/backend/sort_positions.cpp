#include <neap/backend/kernels/sort_positions.hpp>

#include "testing.hpp"

#include <thrust/system/tbb/execution_policy.h>

#include <doctest/doctest.h>

#include <vector>

using namespace neap;
using namespace neap_test;

namespace {

struct sorted {
  std::vector<std::int64_t> begin, position;
  bool operator==(sorted const&) const = default;
};

template <class Sort>
sorted run(std::vector<std::int64_t> const& index, std::int64_t rows, Sort const& sort) {
  auto const n = static_cast<std::int64_t>(index.size());
  sorted s{std::vector<std::int64_t>(static_cast<std::size_t>(rows) + 1, -1),
           std::vector<std::int64_t>(index.size(), -1)};
  // Exactly what embedding_backward has for it.
  bytes_t const bytes = embedding_backward_workspace(rows, n) - (rows + 1 + n) * 8;
  std::vector<std::byte> scratch(static_cast<std::size_t>(bytes));
  sort(position_order{index.data(), n, rows, s.begin.data(), s.position.data(), scratch.data(), bytes});
  return s;
}

}  // namespace

TEST_CASE("positions sorted on every policy are those of the counting sort") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 120; ++round) {
    auto const rows = 1 + std::int64_t{r.below(round % 3 ? 60 : 60000)};
    std::size_t const n = round == 0 ? 0 : r.below(round % 4 ? 200 : 20000);
    std::vector<std::int64_t> index(n);
    // Some spread, some crowded, the ends among them.
    for (auto& i : index)
      i = round % 2 ? r.below(static_cast<std::uint32_t>(rows))
                    : std::min<std::int64_t>(rows - 1, r.below(3) * r.below(40));
    auto const expected = run(index, rows, [&](position_order const& o) { counting_sort{}(one, o); });
    for (host_backend* b : {&one, &many}) {
      CHECK(run(index, rows, [&](position_order const& o) { position_sort<host_backend>{}(*b, o); }) == expected);
      CHECK(run(index, rows, [&](position_order const& o) { sort_positions(*b, thrust::cpp::par, o); }) == expected);
      CHECK(run(index, rows, [&](position_order const& o) { sort_positions(*b, thrust::tbb::par, o); }) == expected);
    }
  }
}

TEST_CASE("the gradient of an embedding has the same bits, however positions are sorted") {
  random_stream r{2};
  host_backend one{1}, many{3};
  for (int round = 0; round < 40; ++round) {
    dtype const t = floating_types[round % 4];
    std::int64_t const rows = 1 + r.below(300), columns = 1 + r.below(40), n = r.below(round % 4 ? 100 : 5000);
    owned index{dtype::i64, {n}};
    randomize(index, r, 0, static_cast<double>(rows));
    auto dy = random_view(t, {n, columns}, r, true);
    std::vector<std::byte> work(static_cast<std::size_t>(embedding_backward_workspace(rows, n)));
    owned a{t, {rows, columns}}, b{t, {rows, columns}}, c{t, {rows, columns}};
    embedding_backward(one, a, dy, index, work.data());
    embedding_backward(one, b, dy, index, work.data(), position_sort<host_backend>{});
    embedding_backward(many, c, dy, index, work.data(), position_sort<host_backend>{});
    CHECK(same_bits(a, b));
    CHECK(same_bits(a, c));
  }
}

TEST_CASE("keys of 64 bits are sorted where 32 do not suffice") {
  // Rows are not stored, so that many can be asked for: begin is what would be long, and begins after all numbers here.
  host_backend b{1};
  std::vector<std::int64_t> index{7, 3, 7, 0, 3};
  std::vector<std::int64_t> key(5), position(5), begin(9);
  b.launch(1, detail::number_positions<std::int64_t>{index.data(), key.data(), position.data(), 5});
  thrust::stable_sort_by_key(thrust::cpp::par, key.data(), key.data() + 5, position.data());
  b.launch(1, detail::segment_starts<std::int64_t>{key.data(), begin.data(), 5, 8});
  CHECK(position == std::vector<std::int64_t>{3, 1, 4, 0, 2});
  CHECK(begin == std::vector<std::int64_t>{0, 1, 1, 1, 3, 3, 3, 3, 5});
}
