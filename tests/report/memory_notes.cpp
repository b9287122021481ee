#include <neap/report/memory_notes.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <map>

using namespace neap;
using namespace neap::testing;

namespace {

bytes_t sum(memory_notes const& n) {
  bytes_t all = 0;
  for (auto const& p : n.peak) all += p.bytes;
  return all;
}

/// Transfers take as long as some ten ops.
struct slow_link {
  template <class G>
  double operator()(G const& g, op_id o) const {
    return flow::stream(g, o) == op_stream::compute ? given_latencies{}(g, o) : 2e-4;
  }
};

}  // namespace

TEST_CASE("what makes the peak sums to the peak, with and without takeover, rounded or not") {
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (memory_options const options : {memory_options{}, memory_options{1, true}, memory_options{256, false}}) {
      auto const g = opaque_graph(seed);
      auto const order = given_order{}(g);
      auto const s = simulate(g, order, given_latencies{}, options);
      auto const n = notes_on(g, order, s, options);
      CHECK(sum(n) == s.peak_bytes);
      CHECK(n.peak_position == s.peak_position);
      CHECK(n.peak_op == op_label(g, order[s.peak_position]));
      CHECK(n.events.empty());
      bytes_t resident = 0;
      bool tensors = false;
      for (std::size_t i = 0; i < n.peak.size(); ++i) {
        bool const r = n.peak[i].what == peak_part::kind::resident;
        CHECK(!(r && tensors));
        if (tensors) CHECK(n.peak[i].bytes <= n.peak[i - 1].bytes);
        tensors |= !r;
        resident += r ? n.peak[i].bytes : 0;
      }
      CHECK(resident == s.resident_bytes);
    }
}

TEST_CASE("recomputed, moved and waited for: as many as the plan has, at its times, under the names of the original") {
  std::size_t recomputed = 0, moved = 0, waited = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = opaque_graph(seed, 20);
    search_options search;
    search.memory_at_most = memory_limit::of_original(0.5);
    search.iterations = 60;
    auto const found =
        optimize(g, zip(rematerialize{} | truncate(8), swap{1e9} | truncate(8)), slow_link{}, given_order{}(g), search);
    auto const& best = found.best;
    auto const n = notes_on(best.graph, best.order, best.result, search.memory);
    CHECK(sum(n) == best.result.peak_bytes);
    std::map<std::string, int> copies;
    std::size_t stores = 0, loads = 0, again = 0;
    for (auto o : best.graph.ops()) {
      stores += best.graph.as<op::store>(o) != nullptr;
      loads += best.graph.as<op::load>(o) != nullptr;
      if (flow::stream(best.graph, o) == op_stream::compute && !flow::is_view(best.graph, o))
        ++copies[std::string(best.graph.name(o))];
    }
    for (auto const& [name, count] : copies) again += static_cast<std::size_t>(count - 1);
    std::size_t told[memory_event_kinds] = {};
    std::uint32_t last = 0;
    seconds_t idle = 0;
    for (auto const& e : n.events) {
      ++told[static_cast<std::size_t>(e.what)];
      CHECK(e.position >= last);
      last = e.position;
      if (e.what == memory_event::kind::waited) {
        CHECK(e.start < e.end);
        CHECK(e.end == best.result.start[e.position]);
        CHECK(flow::stream(best.graph, best.order[e.position]) == op_stream::compute);
        idle += e.end - e.start;
        continue;
      }
      CHECK(e.start == best.result.start[e.position]);
      CHECK(e.end == best.result.end[e.position]);
      auto const o = best.order[e.position];
      if (e.what == memory_event::kind::recomputed) {
        CHECK(copies[e.name] > 1);
      } else {
        CHECK((best.graph.as<op::store>(o) || best.graph.as<op::load>(o)));
        CHECK(e.bytes > 0);
        CHECK(e.name.find("store") == e.name.npos);
      }
    }
    CHECK(told[0] == again);
    CHECK(told[1] == stores);
    CHECK(told[2] == loads);
    // All the time until the last computation has ended is one's, or a wait's.
    seconds_t busy = 0, end = 0;
    for (std::uint32_t p = 0; p < best.order.size(); ++p)
      if (flow::stream(best.graph, best.order[p]) == op_stream::compute)
        busy += best.result.end[p] - best.result.start[p], end = std::max(end, best.result.end[p]);
    CHECK(idle == doctest::Approx(end - busy).epsilon(1e-9));
    recomputed += again, moved += stores, waited += told[3];
  }
  CHECK(recomputed > 0);
  CHECK(moved > 0);
  CHECK(waited > 0);
}
