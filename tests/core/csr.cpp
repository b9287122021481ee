#include <neap/core/csr.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

using namespace neap;

namespace {
using rows = csr<op_id, int>;
bool same(rows const& a, std::vector<std::vector<int>> const& b) {
  if (a.row_count() != b.size()) return false;
  for (std::size_t r = 0; r < b.size(); ++r)
    if (!std::ranges::equal(a[id_at<op_id>(r)], b[r])) return false;
  return true;
}
}  // namespace

TEST_CASE("rows keep the order of the calls; patches and appended rows agree with building anew") {
  random_stream draw(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<int>> model(1 + draw.below(12));
    std::vector<std::pair<std::uint32_t, int>> pairs;
    for (auto n = draw.below(40); n > 0; --n)
      pairs.emplace_back(draw.below(static_cast<std::uint32_t>(model.size())), static_cast<int>(draw.below(100)));
    for (auto [r, x] : pairs) model[r].push_back(x);
    rows table;
    table.build(model.size(), [&](auto&& pair) {
      for (auto [r, x] : pairs) pair(op_id{r}, x);
    });
    CHECK(same(table, model));
    CHECK(table.item_count() == pairs.size());

    model.resize(model.size() + draw.below(4));
    std::vector<op_id> changed;
    for (std::uint32_t r = 0; r < model.size(); ++r)
      if (draw.below(3) == 0) {
        changed.push_back(op_id{r});
        if (!model[r].empty() && draw.below(2)) model[r].erase(model[r].begin());
        model[r].push_back(-1);
      }
    table.patch(model.size(), changed, [&](op_id r, std::span<int const>, auto&& put) {
      for (int x : model[index(r)]) put(x);
    });
    CHECK(same(table, model));
    model.resize(model.size() + 3);
    table.add_rows(model.size());
    CHECK(same(table, model));
  }
}

TEST_CASE("an empty table") {
  rows table;
  CHECK(table.row_count() == 0);
  table.add_rows(2);
  CHECK(same(table, {{}, {}}));
  rows built;
  built.build(0, [](auto&&) {});
  CHECK(built.row_count() == 0);
}
