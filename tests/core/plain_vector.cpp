#include <neap/core/plain_vector.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <vector>

using namespace neap;

namespace {
struct item {
  std::uint32_t a = 7;
  std::uint64_t b = 8;
  friend bool operator==(item const&, item const&) = default;
};
bool same(plain_vector<item> const& x, std::vector<item> const& y) {
  return x.size() == y.size() && x.empty() == y.empty() && std::equal(x.begin(), x.end(), y.begin());
}

constexpr int in_a_constant() {
  plain_vector<int> v{3, 1, 2};
  v.insert(v.begin() + 1, 9);         // 3 9 1 2
  v.erase(v.begin(), v.begin() + 1);  // 9 1 2
  v.push_back(v.front());             // 9 1 2 9
  std::sort(v.begin(), v.end());
  v.append(v.begin() + 1, 2);  // 1 2 9 9 2 9
  plain_vector<int> const copy = v;
  int n = 0;
  for (int x : copy) n = 10 * n + x;
  return n;
}
static_assert(in_a_constant() == 129929);
}  // namespace

TEST_CASE("a plain vector does what std::vector does, over random calls") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    random_stream draw(seed);
    plain_vector<item> x;
    std::vector<item> y;
    auto const some = [&] { return item{draw.below(10), draw()}; };
    for (int step = 0; step < 200; ++step) {
      auto const at = draw.below(static_cast<std::uint32_t>(y.size()) + 1);
      auto const n = draw.below(20);
      item const value = some();
      switch (draw.below(15)) {
        case 0: x.resize(n), y.resize(n); break;
        case 1: x.resize(n, value), y.resize(n, value); break;
        case 2: x.assign(n, value), y.assign(n, value); break;
        case 3: x.insert(x.begin() + at, value), y.insert(y.begin() + at, value); break;
        case 4: {
          auto const end = at + draw.below(static_cast<std::uint32_t>(y.size()) - at + 1);
          x.erase(x.begin() + at, x.begin() + end), y.erase(y.begin() + at, y.begin() + end);
          break;
        }
        case 5: {
          auto const odd = [](item const& i) { return i.a % 2 == 1; };
          x.erase_if(odd), std::erase_if(y, odd);
          break;
        }
        case 6: {  // a copy, and what it is copied to
          plain_vector<item> z(n, value);
          z = x;
          x = plain_vector<item>(z);
          break;
        }
        case 7: {
          plain_vector<item> z = static_cast<plain_vector<item>&&>(x);
          REQUIRE(x.empty());
          x.push_back(value);
          x = static_cast<plain_vector<item>&&>(z);
          break;
        }
        case 8:
          if (!y.empty()) x.pop_back(), y.pop_back();
          break;
        case 9: {  // an element of its own, while it grows
          if (y.empty()) break;
          auto const k = draw.below(static_cast<std::uint32_t>(y.size()));
          for (int i = 0; i < 5; ++i) x.push_back(x[k]), y.push_back(item(y[k]));
          x.insert(x.begin(), x[k]), y.insert(y.begin(), item(y[k]));
          break;
        }
        case 10: {
          std::vector<item> more(n, value);
          x.append(more.data(), more.size()), y.insert(y.end(), more.begin(), more.end());
          break;
        }
        case 11: x.reserve(n); break;
        case 12: {  // some of its own elements
          auto const size = static_cast<std::uint32_t>(y.size());
          auto const of = draw.below(size + 1), count = draw.below(size - of + 1);
          if (size > 1000) break;
          std::vector<item> const own(y.begin() + of, y.begin() + of + count);
          x.append(x.begin() + of, count), y.insert(y.end(), own.begin(), own.end());
          break;
        }
        case 13: {
          auto const size = static_cast<std::uint32_t>(y.size());
          x.resize_for_overwrite(size + n), y.resize(size + n);
          for (std::uint32_t i = size; i < size + n; ++i) x[i] = y[i] = value;
          break;
        }
        default:
          for (std::uint32_t i = 0; i < n; ++i) x.push_back(value), y.push_back(value);
      }
      REQUIRE(same(x, y));
      plain_vector<item> z = x;
      REQUIRE(z == x);
      z.push_back(value);
      REQUIRE(z != x);
      z.pop_back();
      if (!y.empty()) {
        ++z.back().b;
        REQUIRE(z != x);
      }
      if (!y.empty()) REQUIRE((x.front() == y.front() && x.back() == y.back()));
    }
  }
}

TEST_CASE("more elements than addresses are refused, and what there was stays") {
  plain_vector<item> x{{1, 2}, {3, 4}};
  CHECK_THROWS_AS(x.resize(static_cast<std::size_t>(-1) / sizeof(item) + 2), std::bad_alloc);
  CHECK(x == plain_vector<item>{{1, 2}, {3, 4}});
}
