// Lesson 14: a leaf of a pipeline is any input range of mutations. Two range-v3 views find recomputations and swaps, and
// combinators draw from them lazily, in turn.
#include <neap/neap.hpp>

#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <cstdio>
#include <vector>

// The storages that are in memory at the peak and read again after it: a view, walked one element a draw.
auto idle_at_peak(neap::candidate const& c) {
  return ranges::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(c.graph.storage_count())) |
         ranges::views::transform([](std::uint32_t i) { return neap::storage_id{i}; }) |
         ranges::views::filter([&c](neap::storage_id s) {
           auto const live = c.result.live[s];
           auto const peak = c.result.peak_position;
           return !c.graph.is_resident(s) && live.first < peak && peak < live.last;
         });
}

// The last position before `end` at which an op makes or reads the storage.
std::uint32_t last_touch(neap::candidate const& c, neap::storage_id s, std::uint32_t end) {
  for (std::uint32_t i = end; i-- > c.result.live[s].first;)
    for (auto v : c.graph.inputs(c.order[i]))
      if (c.graph.storage(v) == s) return i;
  return c.result.live[s].first;
}

// Recompute each for its last reader.
constexpr auto recompute_idle = neap::from_range([](auto const& c) {
  return idle_at_peak(c) | ranges::views::transform([&c](neap::storage_id s) {
           return neap::recompute{.storage = s, .resume = c.result.live[s].last};
         });
});

// Or move it out, if it has at least 64 KiB, and load it for its last reader.
constexpr auto swap_idle = neap::from_range([](auto const& c) {
  return idle_at_peak(c) | ranges::views::filter([&c](neap::storage_id s) { return c.graph.bytes(s) >= 64 << 10; }) |
         ranges::views::transform([&c](neap::storage_id s) {
           auto const last = c.result.live[s].last;
           return neap::swap_out{.storage = s, .left = last_touch(c, s, last), .resume = last};
         }) |
         ranges::views::take(16);
});

struct network {
  std::vector<neap::nn::linear> layers{{64, 64}, {64, 64}, {64, 64}, {64, 64}, {64, 64}, {64, 8}};
  neap::tensor operator()(neap::tensor x) const {
    for (auto const& l : layers) x = neap::gelu(l(x));
    return x;
  }
};

int main() {
  network model;
  auto const x = neap::tensor::randn({512, 64}, 1);
  auto const step = neap::training_step(model, std::pair{x, neap::tensor::zeros({512, 8})}, neap::mse{}, neap::sgd{});

  constexpr auto moves = neap::zip(recompute_idle | neap::truncate(16), swap_idle);
  neap::search_options few;
  few.iterations = 300;
  auto const found = neap::optimize(step, moves, few, neap::memory_limit::of_original(0.7));
  std::printf("peak %.2f of the original after %zu edits\n",
              static_cast<double>(found.best.result.peak_bytes) / static_cast<double>(found.original.peak_bytes),
              found.steps.size());
  for (auto const& s : found.steps) std::printf("  %s\n", s.how.c_str());
  return found.fits && !found.steps.empty() ? 0 : 1;
}
