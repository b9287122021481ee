#include <neap/optimize/search_summary.hpp>

#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

using namespace neap;

namespace {

/// An answer of 7 of 8 MiB, with a program of 16 MiB and 10 ms before.
optimized answer() {
  optimized a;
  a.fits = true;
  a.memory_limit_bytes = 8_MiB, a.lower_bound_bytes = 2_MiB;
  a.original.peak_bytes = 16_MiB, a.original.latency = 10e-3;
  a.placed.arena_bytes = 7_MiB, a.placed.peak_bytes = 7_MiB, a.placed.resident_bytes = 1_MiB;
  a.best.result.latency = 12e-3;
  a.forcing = {{op_id{0}, "matmul head #9", 2_MiB}};
  a.at_peak = {
      "matmul blocks.3.up #41", {{"gelu blocks.2.act #30", 3_MiB}, {"matmul blocks.1.up #12", 2_MiB}}, 2, 1_MiB};
  a.times = {{"matmul", 24, 7e-3}, {"gelu", 1, 3e-3}, {"add", 2, 1e-3}, {"sum", 1, 4e-4}, {"view", 9, 0}};
  a.front = {{6_MiB, 13e-3}, {7_MiB, 12e-3}, {9_MiB, 11e-3}, {16_MiB, 10e-3}};
  return a;
}
std::string printed(auto const& a) {
  std::ostringstream s;
  s << a;
  return s.str();
}

}  // namespace

TEST_CASE("the summary of a plan that fits") {
  CHECK(
      printed(answer()) ==
      "fits: 7.00 MiB of 8.00 MiB, 1.00 MiB to spare\n"
      "latency: 12 ms, 20.0 % above the original 10 ms\n"
      "time: matmul 7 ms (58.3 %, 24 ops), gelu 3 ms (25.0 %, 1 op), add 1 ms (8.3 %, 2 ops), 2 other operators 400 us; "
      "waiting for transfers 600 us (5.0 %)\n"
      "peak: 7.00 MiB at matmul blocks.3.up #41, held by gelu blocks.2.act #30 (3.00 MiB), matmul blocks.1.up #12 "
      "(2.00 MiB), 2 others (1.00 MiB); always there: 1.00 MiB\n"
      "1.00 MiB more would save about 1 ms (8.3 %)\n"
      "proved: no order, recomputation or swapping of these ops needs less than 2.00 MiB; forced by matmul head #9\n");
  auto none = answer();
  none.front.clear();
  CHECK(none.summary().find("\n1.00 MiB more would save no time that was found\n") != std::string::npos);
  auto least = answer();
  least.lower_bound_bytes = 7_MiB;
  CHECK(
      least.summary().find("proved: this is the least that any order, recomputation or swapping of these ops needs") !=
      std::string::npos);
}

TEST_CASE("the summary of a plan that misses its memory: by how much, and whether addresses alone are missing") {
  auto a = answer();
  a.fits = false;
  a.placed.arena_bytes = 9_MiB, a.placed.peak_bytes = 9_MiB;
  CHECK(a.summary().starts_with("does not fit: 9.00 MiB, 1.00 MiB above the limit of 8.00 MiB (12.5 %)\nlatency: "));
  CHECK(a.summary().find("\na limit of 9437184 bytes would fit\n") != std::string::npos);
  a.placed.peak_bytes = 8_MiB;
  CHECK(
      a.summary().starts_with("does not fit: 9.00 MiB, 1.00 MiB above the limit of 8.00 MiB (12.5 %); the peak of 8.00 "
                              "MiB fits, addresses do not\n"));
  a.reasons.assign(9, "all_reduce grads.0 runs once: it has an effect");
  auto const text = a.summary();
  CHECK(text.find("\nall_reduce grads.0 runs once: it has an effect\n") != std::string::npos);
  CHECK(text.ends_with("\n6 more reasons\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') <= 10);
}

TEST_CASE("the summary of limits of latency") {
  auto a = answer();
  a.memory_limit_bytes = INT64_MAX;
  a.latency_limit_seconds = 12.5e-3;
  CHECK(
      a.summary().starts_with("fits: 7.00 MiB, 43.8 % of the original peak\n"
                              "latency: 12 ms, 20.0 % above the original 10 ms; within the limit of 12.5 ms\n"));
  a.front = {{6_MiB, 12.6e-3}, {7_MiB, 12e-3}};
  CHECK(a.summary().find("\n1 % more time would save about 1.00 MiB\n") != std::string::npos);
  a.latency_limit_seconds = 11e-3, a.fits = false;
  CHECK(
      a.summary().starts_with("does not fit: 7.00 MiB, 43.8 % of the original peak\n"
                              "latency: 12 ms, 20.0 % above the original 10 ms; 1 ms above the limit of 11 ms\n"));
  a.memory_limit_bytes = 8_MiB;
  CHECK(a.summary().starts_with(
      "does not fit: too slow, though the memory fits: 7.00 MiB of 8.00 MiB, 1.00 MiB to spare\n"));
  a.best.result.latency = a.original.latency = 10e-3, a.latency_limit_seconds = 1e300;
  CHECK(a.summary().find("\nlatency: 10 ms, as the original\n") != std::string::npos);
}

TEST_CASE("of any answer at most ten lines; what holds the peak adds up to it") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.least_ops = 20});
    for (double const ratio : {1.0, 0.7, 0.2}) {
      search_options o;
      o.memory_at_most = memory_limit::of_original(ratio);
      o.iterations = 60;
      auto const found = optimize(g, rematerialize{} | truncate(16), o);
      auto const text = printed(found);
      CHECK(std::count(text.begin(), text.end(), '\n') <= 10);
      CHECK(text.starts_with(found.fits ? "fits: " : "does not fit: "));
      bool const only_addresses = !found.fits && found.placed.peak_bytes <= found.memory_limit_bytes;
      CHECK((text.find("; the peak of") != std::string::npos) == only_addresses);
      auto const& p = found.at_peak;
      bytes_t sum = found.placed.resident_bytes + p.other_bytes;
      for (auto const& h : p.holders) sum += h.bytes;
      CHECK(sum == found.placed.peak_bytes);
      CHECK(std::is_sorted(p.holders.begin(), p.holders.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; }));
      CHECK(text.find(p.op) != std::string::npos);
      seconds_t busy = 0;
      std::size_t ops = 0;
      for (auto const& t : found.times) busy += t.seconds, ops += t.ops;
      CHECK(busy <= found.best.result.latency * (1 + 1e-9));
      CHECK(ops == found.best.order.size());  // nothing is swapped
      CHECK(text.find("\ntime: " + found.times.front().what + " ") != std::string::npos);
    }
  }
}
