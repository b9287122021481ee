// What drawing a mutation costs, by where a pipeline's leaves come from: streams written by hand, std views, range-v3 views,
// vectors. One CSV row a case; each case draws the same mutations, and their sum is checked first.
#include <neap/mutate/chain.hpp>
#include <neap/mutate/from_range.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>

#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ranges>
#include <string>
#include <vector>

namespace {

using namespace neap;

struct no_graph {};

struct number {
  int x = 0;
  bool operator==(number const&) const = default;
  std::optional<edited> apply(candidate const&) const { return std::nullopt; }
  std::string describe(candidate const&) const { return std::to_string(x); }
};

constexpr int count = 1'000'000;

struct by_hand {
  struct stream {
    int i = 0;
    std::optional<number> next() { return i < count ? std::optional(number{i++}) : std::nullopt; }
  };
  stream operator()(candidate const&) const { return {}; }
};

constexpr auto to_number = [](int i) { return number{i}; };
constexpr auto std_view =
    from_range([](auto const&) { return std::views::iota(0, count) | std::views::transform(to_number); });
constexpr auto v3_view =
    from_range([](auto const&) { return ranges::views::iota(0, count) | ranges::views::transform(to_number); });
constexpr auto vector = from_range([](auto const&) {
  std::vector<number> all;
  for (int i = 0; i < count; ++i) all.push_back({i});
  return all;
});

std::uint64_t mix(std::uint64_t sum, int x) { return (sum ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u; }

template <class M>
std::uint64_t sum_of(M const& moves) {
  candidate const c;
  std::uint64_t volatile start = 1;  // so that each round computes
  std::uint64_t sum = start;
  auto stream = moves(c);
  while (auto m = stream.next()) sum = mix(sum, m->x);
  return sum;
}

/// Nanoseconds a draw, the least of seven rounds; a wrong sum ends the program.
template <class M>
bool measure(char const* name, M const& moves, std::uint64_t expected) {
  if (sum_of(moves) != expected) return std::fprintf(stderr, "%s: another sum\n", name), false;
  double least = 1e9;
  for (int round = 0; round < 7; ++round) {
    auto const begin = std::chrono::steady_clock::now();
    std::uint64_t volatile sink = sum_of(moves);
    (void)sink;
    least = std::min(least, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("%s,%.2f\n", name, least / count);
  return true;
}

}  // namespace

int main() {
  std::uint64_t all = 1, twice = 1;
  for (int i = 0; i < count; ++i) all = mix(all, i);
  for (int i = 0; i < count / 2; ++i) twice = mix(mix(twice, i), i);
  std::puts("leaves,ns_a_draw");
  bool const right =
      measure("by hand", by_hand{}, all) && measure("std view", std_view, all) &&
      measure("range-v3 view", v3_view, all) && measure("vector", vector, all) &&
      measure("zip of two by hand", zip(by_hand{} | truncate(count / 2), by_hand{} | truncate(count / 2)), twice) &&
      measure("zip of two range-v3 views", zip(v3_view | truncate(count / 2), v3_view | truncate(count / 2)), twice);
  return right ? 0 : 1;
}
