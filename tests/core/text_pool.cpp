#include <neap/core/text_pool.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;

TEST_CASE("texts come back by their numbers, from copies too, whatever is shared") {
  text_pool pool;
  std::vector<std::pair<std::uint32_t, std::string>> all;
  std::vector<std::pair<text_pool, std::size_t>> copies;
  for (std::size_t k = 0; k < 300; ++k) {
    std::string const text(1 + k * k % 977, static_cast<char>('a' + k % 26));
    all.emplace_back(pool.append(text), text);
    CHECK(all.back().first != 0);
    if (k % 7 == 0) pool.share();
    if (k % 11 == 0) copies.emplace_back(pool, all.size());
  }
  copies.emplace_back(pool, all.size());
  CHECK(pool[0].empty());
  for (auto const& [copy, n] : copies)
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(copy.contains(all[i].first));
      CHECK(copy[all[i].first] == all[i].second);
    }
  CHECK_FALSE(copies[0].first.contains(all.back().first));
  CHECK_FALSE(pool.contains(1 << 30));
  CHECK_FALSE(pool.contains(1));
}

TEST_CASE("a copy of a pool with much text is small") {
  text_pool pool;
  pool.append(std::string(1'000'000, 'x'));
  pool.share();
  CHECK(pool.own_bytes() == 0);
  auto copy = pool;
  for (int k = 0; k < 100; ++k) copy.append("a name");
  copy.share();
  CHECK(copy.own_bytes() < 2000);
}
