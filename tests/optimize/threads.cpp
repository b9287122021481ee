// A search on several threads finds what one thread finds.
#include <neap/optimize/optimize.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>

#include "../support/deep_graph.hpp"
#include "../support/message.hpp"
#include "../support/random_graph.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace neap;
using namespace neap::testing;

namespace {

struct uneven_cost {
  template <class G>
  double operator()(G const& g, op_id o) const {
    if (flow::is_view(g, o)) return 0;
    return 1e-3 * static_cast<double>(1 + index(g.origin(o)) * 7 % 5) *
           (flow::stream(g, o) == op_stream::compute ? 1 : 3);
  }
};

// Outlines, and moves that tell nothing and are built at once.
constexpr auto moves =
    chain(zip(rematerialize{} | truncate(12), neap::swap{1e6} | truncate(6)), reorder{} | truncate(6));

search_options options(double memory, double latency, std::size_t iterations, unsigned threads) {
  search_options o;
  if (memory > 0) o.memory_at_most = memory_limit::of_original(memory);
  if (latency > 0) o.latency_at_most = latency_limit::of_original(latency);
  o.iterations = iterations;
  o.time = time_budget(std::chrono::seconds(600));
  o.threads = threads;
  return o;
}

template <class A>
void check_same(A const& a, A const& b) {
  CHECK(a.best.graph == b.best.graph);
  CHECK(a.best.order == b.best.order);
  CHECK(a.best.result.latency == b.best.result.latency);
  CHECK(a.placed.buffers == b.placed.buffers);
  CHECK(a.steps == b.steps);
  CHECK(a.candidates == b.candidates);
  CHECK(a.front == b.front);
  CHECK(a.fits == b.fits);
  CHECK(a.history.size() == b.history.size());
}

/// Throws where many of its kind are judged at once.
struct bad_cost {
  template <class G>
  double operator()(G const& g, op_id) const {
    if (g.op_count() > 24) throw error("bad_cost: too many ops");
    return 1;
  }
};

}  // namespace

TEST_CASE("any number of threads give the same plan, the same steps, the same front") {
  std::size_t changed = 0, unmet = 0;
  std::uint64_t const graphs = sanitized ? 3 : 24;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    random_graph_options ro;
    ro.least_ops = 30;
    auto const g = random_graph(seed, ro);
    for (int kind = 0; kind < 4; ++kind) {
      CAPTURE(kind);
      double const memory = kind == 0 ? 0.7 : kind == 1 ? 0.3 : kind == 2 ? 0 : 0.8, latency = kind < 2 ? 0 : 1.3;
      auto const iterations = static_cast<std::size_t>(200 + 37 * seed);  // in the middle of what is looked at together
      auto const one = optimize(g, moves, options(memory, latency, iterations, 1), uneven_cost{});
      changed += !one.steps.empty(), unmet += !one.fits;
      for (unsigned threads : {2u, 4u})
        check_same(one, optimize(g, moves, options(memory, latency, iterations, threads), uneven_cost{}));
    }
  }
  CHECK(changed > graphs);
  CHECK(unmet > graphs / 4);
}

TEST_CASE("what throws on some thread throws out of the search") {
  auto const g = random_graph(5, {.least_ops = 22, .max_ops = 24});
  for (unsigned threads : {1u, 3u})
    CHECK(message_of([&] {
            (void)optimize(g, moves, options(0.5, 0, 500, threads), bad_cost{});
          }).find("bad_cost: too many ops") != std::string::npos);
}

TEST_CASE("a clock and a stop token end a search on several threads") {
  auto const g = random_graph(9, {.least_ops = 200, .max_ops = 220});
  std::stop_source stop;
  auto o = options(0.3, 0, SIZE_MAX, 3);
  o.time = time_budget(std::chrono::milliseconds(150));
  auto const timed_out = optimize(g, moves, o, uneven_cost{});
  CHECK(timed_out.candidates > 0);
  o.time = time_budget(std::chrono::seconds(600));
  o.stop = stop.get_token();
  o.progress = [&](search_progress const& p) {
    if (p.candidates > 500) stop.request_stop();
  };
  o.progress_every = 1e-6;
  CHECK(optimize(g, moves, o, uneven_cost{}).candidates >= 500);
}
