#include <neap/core/min_cut.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <vector>

using namespace neap;

namespace {
struct edge {
  std::uint32_t from, to;
  std::int64_t capacity;
};
std::int64_t cut_by(std::vector<edge> const& edges, std::uint32_t source_side) {
  std::int64_t sum = 0;
  for (auto const& e : edges)
    if ((source_side >> e.from & 1) && !(source_side >> e.to & 1)) sum += e.capacity;
  return sum;
}
}  // namespace

TEST_CASE("the cut of random networks is the least of all, with the fewest nodes at the source's side") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    random_stream draw(seed, 3);
    auto const n = 3 + draw.below(6);
    std::vector<edge> edges;
    for (std::uint32_t k = draw.below(4 * n); k-- > 0;)
      edges.push_back({draw.below(n), draw.below(n), draw.below(8) ? draw.below(10) : min_cut::unlimited});
    std::erase_if(edges, [](edge const& e) { return e.from == e.to; });
    min_cut network(n);
    for (auto const& e : edges) network.add_edge(e.from, e.to, e.capacity);
    network.cut(0, 1);
    std::uint32_t got = 0;
    for (std::uint32_t i = 0; i < n; ++i) got |= static_cast<std::uint32_t>(network.has_source(i)) << i;
    std::int64_t least = INT64_MAX;
    int fewest = 99;
    for (std::uint32_t side = 1; side < 1u << n; side += 2) {
      if (side & 2) continue;
      auto const c = cut_by(edges, side);
      if (c < least) least = c, fewest = 99;
      if (c == least) fewest = std::min(fewest, std::popcount(side));
    }
    CAPTURE(seed);
    if (least >= min_cut::unlimited) continue;  // nothing to cut: any answer will do
    REQUIRE((got & 3) == 1);
    CHECK(cut_by(edges, got) == least);
    CHECK(std::popcount(got) == fewest);
  }
}

TEST_CASE("networks may be as deep as a model") {
  std::uint32_t const n = 200000;
  min_cut network(n);
  for (std::uint32_t i = 2; i + 1 < n; ++i) network.add_edge(i, i + 1, 5 + (i == 777));
  network.add_edge(0, 2, 7);
  network.add_edge(n - 1, 1, 4);
  network.cut(0, 1);
  CHECK(network.has_source(n - 1));
  CHECK(!network.has_source(1));
}
