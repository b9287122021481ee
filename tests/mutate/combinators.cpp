#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/filter.hpp>
#include <neap/mutate/from_range.hpp>
#include <neap/mutate/later.hpp>
#include <neap/mutate/sample.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>

#include <doctest/doctest.h>

#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <ranges>
#include <string>
#include <vector>

using namespace neap;

namespace {

template <int K>
struct number {
  int x = 0;
  friend bool operator==(number, number) = default;
  std::optional<edited> apply(candidate const&) const { return std::nullopt; }
  std::string describe(candidate const&) const { return std::to_string(K) + ":" + std::to_string(x); }
};

/// Yields n mutations and counts what is drawn from it.
template <int K>
struct counter {
  int n;
  int* drawn = nullptr;
  struct stream {
    int n;
    int* drawn;
    int i = 0;
    constexpr std::optional<number<K>> next() {
      if (i == n) return std::nullopt;
      if (drawn) ++*drawn;
      return number<K>{i++};
    }
  };
  constexpr stream operator()(candidate const&) const { return {n, drawn}; }
};

/// A plain function is a mutator, too: a pipeline keeps its address.
[[maybe_unused]] auto three_of_one(candidate const& c) { return counter<1>{3}(c); }
static_assert(mutator<decltype(three_of_one)> && mutator<decltype(&three_of_one)>);

struct not_a_mutator {
  int operator()(candidate const&) const { return 3; }
};

/// What it yields would be applied without leave to be impossible.
struct yields_no_mutations {
  struct certain : number<1> {
    [[maybe_unused]] friend bool operator==(certain, certain) = default;
    edited apply(candidate const&) const { return {}; }
  };
  struct stream {
    std::optional<certain> next() { return std::nullopt; }
  };
  stream operator()(candidate const&) const { return {}; }
};

static_assert(mutation<number<1>>);
static_assert(mutation_stream<yields_no_mutations::stream> && !mutator<yields_no_mutations>);
static_assert(mutator<decltype(chain(counter<1>{}, counter<2>{}))>);
static_assert(mutator<counter<1>>);
static_assert(!mutator<not_a_mutator>);
static_assert(!mutation<int>);

// Sums are flat and without duplicates; one type is itself.
template <class M>
using yields = mutation_of<stream_of<M>>;
using one = decltype(chain(counter<1>{1}, counter<1>{2}));
static_assert(std::same_as<yields<one>, number<1>>);
using two = decltype(chain(counter<1>{1}, zip(counter<2>{1}, chain(counter<1>{1}, counter<2>{1}))));
static_assert(std::same_as<yields<two>, std::variant<number<1>, number<2>>>);
using three = decltype(zip(chain(counter<3>{1}, counter<1>{1}), chain(counter<2>{1}, counter<3>{1}) | truncate(2)));
static_assert(std::same_as<yields<three>, std::variant<number<3>, number<1>, number<2>>>);

// Pipelines are constants, and run when compiling.
constexpr auto pipeline = chain(counter<1>{3} | truncate(2), zip(counter<1>{2}, counter<2>{4}) | truncate(5));
candidate const elsewhere;
constexpr int count_all() {
  auto s = pipeline(elsewhere);
  int n = 0;
  while (s.next()) ++n;
  return n;
}
static_assert(sizeof(pipeline) <= 64);

template <class M>
std::string all(M const& m) {
  candidate c;
  std::string text;
  auto s = m(c);
  while (auto x = s.next()) text += describe(*x, c) + " ";
  CHECK(!s.next());
  return text;
}

}  // namespace

TEST_CASE("chain: one after the other, associative, of one is itself") {
  CHECK(all(chain(counter<1>{2}, counter<2>{0}, counter<3>{2})) == "1:0 1:1 3:0 3:1 ");
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 4; ++c) {
        counter<1> const x{a};
        counter<2> const y{b};
        counter<3> const z{c};
        CHECK(all(chain(chain(x, y), z)) == all(chain(x, chain(y, z))));
        CHECK(all(chain(x, y, z)) == all(x) + all(y) + all(z));
        CHECK(all(chain(x)) == all(x));
        CHECK(all(zip(x)) == all(x));
      }
}

TEST_CASE("zip: round robin until all are dry") {
  CHECK(all(zip(counter<1>{3}, counter<2>{1}, counter<3>{2})) == "1:0 2:0 3:0 1:1 3:1 1:2 ");
  CHECK(all(zip(counter<1>{0}, counter<2>{2})) == "2:0 2:1 ");
  CHECK(all(zip(zip(counter<1>{2}, counter<2>{2}), counter<3>{1})) == "1:0 3:0 2:0 1:1 2:1 ");
}

TEST_CASE("truncate: the first n, and draws no more than n") {
  for (std::size_t a = 0; a < 7; ++a)
    for (std::size_t b = 0; b < 7; ++b) {
      int drawn = 0;
      CHECK(all(counter<1>{5} | truncate(a) | truncate(b)) == all(counter<1>{5} | truncate(std::min(a, b))));
      all(counter<1>{5, &drawn} | truncate(a) | truncate(b));
      CHECK(drawn == static_cast<int>(std::min({a, b, std::size_t{5}})));
    }
  CHECK(all(pipeline) == "1:0 1:1 1:0 2:0 1:1 2:1 2:2 ");
  CHECK(count_all() == 7);
}

TEST_CASE("laziness: nothing is drawn that is not asked for") {
  int first = 0, second = 0;
  candidate c;
  auto s = chain(counter<1>{3, &first}, zip(counter<2>{3, &second}, counter<1>{3, &first}))(c);
  CHECK(first + second == 0);
  s.next(), s.next();
  CHECK(first == 2);
  CHECK(second == 0);
  s.next(), s.next();
  CHECK(second == 1);
}

TEST_CASE("later: nothing at the first visit, everything from the second on, and lazily") {
  candidate c;
  int drawn = 0;
  auto const moves = chain(counter<1>{1}, counter<2>{2, &drawn} | truncate(2) | later);
  auto const draw_all = [&](auto const& m) {
    std::string s;
    auto stream = m(c);
    while (auto x = stream.next()) s += describe(*x, c) + " ";
    return s;
  };
  CHECK(draw_all(moves) == "1:0 ");
  CHECK(drawn == 0);
  c.visits = 1;
  CHECK(draw_all(moves) == "1:0 2:0 2:1 ");
  CHECK(draw_all(counter<2>{2} | later | later) == draw_all(counter<2>{2}));
}

TEST_CASE("filter keeps what holds, in order") {
  auto const even = filter([](auto const& m, auto const&) { return m.x % 2 == 0; });
  auto const always = filter([](auto const&, auto const&) { return true; });
  CHECK(all(counter<1>{5} | even) == "1:0 1:2 1:4 ");
  CHECK(all(counter<1>{5} | always) == all(counter<1>{5}));
  CHECK(all(counter<1>{9} | even | even) == all(counter<1>{9} | even));
}

TEST_CASE("sample: repeatable, in order, whole where there are fewer, every one equally likely") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(all(counter<1>{50} | sample(5, seed)) == all(counter<1>{50} | sample(5, seed)));
    CHECK(all(counter<1>{5} | sample(9, seed)) == all(counter<1>{5}));
  }
  CHECK(all(counter<1>{50} | sample(0, 1)).empty());
  int hits[10] = {};
  candidate c;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    auto s = (counter<1>{10} | sample(3, seed))(c);
    int last = -1;
    while (auto m = s.next()) {
      CHECK(m->x > last);
      last = m->x;
      ++hits[m->x];
    }
  }
  for (int h : hits) CHECK(std::abs(h - 1500) < 160);  // 5 standard deviations
}

TEST_CASE("leaves from any input range: vectors, std views, range-v3 views") {
  auto const vector = from_range([](auto const&) { return std::vector<number<1>>{{7}, {8}}; });
  auto const std_view = from_range(
      [](auto const&) { return std::views::iota(0, 3) | std::views::transform([](int i) { return number<2>{i}; }); });
  auto const v3_view = from_range([](auto const&) {
    return ranges::views::iota(4, 6) | ranges::views::transform([](int i) { return number<3>{i}; });
  });
  CHECK(all(chain(vector, std_view, v3_view)) == "1:7 1:8 2:0 2:1 2:2 3:4 3:5 ");
  CHECK(all(zip(vector, v3_view) | truncate(3)) == "1:7 3:4 1:8 ");
}

TEST_CASE("any_mutator: the same mutations, chosen at run time") {
  std::vector<any_mutator> some{pipeline, counter<3>{2}};
  CHECK(all(some[0]) == all(pipeline));
  CHECK(all(chain(some[1], some[0])) == all(counter<3>{2}) + all(pipeline));
  auto const copy = some[1];
  CHECK(all(copy) == "3:0 3:1 ");
}
