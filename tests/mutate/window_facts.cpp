#include <neap/mutate/window_facts.hpp>

#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

namespace {

/// A random order of the ops of facts that meets what they wait for.
schedule random_order_of(flow_facts const& facts, random_stream& draw) {
  schedule s;
  std::vector<bool> done(facts.op_count());
  while (s.size() < facts.op_count()) {
    std::vector<op_id> ready;
    for (auto o : id_range<op_id>(facts.op_count())) {
      bool ok = !done[index(o)];
      for (auto before : facts.after(o)) ok = ok && done[index(before)];
      if (ok) ready.push_back(o);
    }
    auto const o = ready.at(draw.below(static_cast<std::uint32_t>(ready.size())));
    done[index(o)] = true;
    s.order.push_back(o);
  }
  return s;
}

}  // namespace

TEST_CASE("in any order of a window its bytes are those of the whole but for one constant, and so is its time") {
  int moved = 0, with_workspace = 0, took_over = 0;
  window_facts window;  // one for all: it keeps nothing of what it learnt before
  simulator sim;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.max_ops = 60, .copies = static_cast<std::uint32_t>(seed % 3)});
    auto const seconds = [](op_graph const&, op_id o) { return 1.0 + static_cast<double>(index(o) % 4); };
    flow_facts const facts(g, seconds, {.alignment = 16, .takeover = seed % 2 == 0});
    auto const order = testing::random_order(g, seed);
    auto const n = static_cast<std::uint32_t>(order.size());
    if (n == 0) continue;
    random_stream draw(seed, 5);
    order_places const places(facts, order);
    for (int k = 0; k < 4; ++k) {
      auto const begin = k == 0 ? 0 : draw.below(n), end = k == 0 ? n : begin + 1 + draw.below(n - begin);
      window.assign(facts, order, places, begin, end);
      REQUIRE(window.op_count() == end - begin);
      for (int orders = 0; orders < 3; ++orders) {
        auto const inside = random_order_of(window, draw);
        auto whole = order;
        for (std::uint32_t p = begin; p < end; ++p) whole.order[p] = order[begin + index(inside[p - begin])];
        REQUIRE(check_order(facts, whole).message() == "");
        auto const a = sim(facts, whole), b = sim(window, inside);
        auto const constant = a.bytes_at[begin] - b.bytes_at[0];
        CHECK(constant >= 0);
        for (std::uint32_t p = begin; p < end; ++p) CHECK(a.bytes_at[p] - b.bytes_at[p - begin] == constant);
        CHECK(b.latency == a.end[end - 1] - a.start[begin]);
        moved += whole != order;
        took_over += std::any_of(b.takes_over.begin(), b.takes_over.end(),
                                 [](storage_id s) { return s != nothing<storage_id>; });
      }
      with_workspace += window.has_workspace();
    }
  }
  CHECK(moved > 1000);
  CHECK(with_workspace > 100);
  CHECK(took_over > 100);
}

TEST_CASE("transfers of a window stand on their streams; a window over all is the whole") {
  int transfers = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.max_ops = 40, .copies = 1, .swaps = 3});
    auto const seconds = [](op_graph const& x, op_id o) { return x.as<op::load>(o) ? 2.5 : 1.0; };
    flow_facts const facts(g, seconds);
    auto const order = testing::random_order(g, seed);
    if (order.size() == 0) continue;
    window_facts window;
    window.assign(facts, order, order_places(facts, order), 0, static_cast<std::uint32_t>(order.size()));
    schedule as_it_stands;
    for (auto o : id_range<op_id>(order.size())) as_it_stands.order.push_back(o);
    simulator sim;
    auto const a = sim.judge(facts, order), b = sim.judge(window, as_it_stands);
    // what lives through all of it is left out
    bytes_t through = facts.resident_bytes();
    for (auto s : id_range<storage_id>(facts.storage_count()))
      if (facts.is_kept(s) && facts.maker(s) == nothing<op_id>) through += facts.bytes(s);
    CHECK(a.peak_bytes == b.peak_bytes + through);
    CHECK(a.latency == b.latency);
    CHECK(window.has_transfers() == facts.has_transfers());
    transfers += facts.has_transfers();
  }
  CHECK(transfers > 50);
}
