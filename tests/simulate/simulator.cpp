#include <neap/simulate/simulator.hpp>

#include <neap/schedule/order.hpp>
#include <neap/simulate/lower_bound.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace {

using namespace neap;

/// The semantics of plan/simulation.hpp read sentence by sentence: at each position, who is there and why. Slow.
struct by_definition {
  op_graph const& g;
  schedule const& order;
  std::vector<double> seconds;  // by position
  memory_options options;
  std::vector<double> start, end;
  std::map<storage_id, storage_id> place;  // of storages that took over: whose buffer
  std::vector<bytes_t> bytes_at;

  op_stream stream(std::size_t p) const { return flow::stream(g, order[p]); }
  bool touches(std::size_t p, storage_id s) const {
    for (auto v : g.inputs(order[p]))
      if (g.storage(v) == s) return true;
    for (auto v : g.outputs(order[p]))
      if (g.storage(v) == s) return true;
    return false;
  }
  bool is_kept(storage_id s) const {
    return std::any_of(g.kept().begin(), g.kept().end(), [&](value_id v) { return g.storage(v) == s; });
  }
  std::size_t made_at(storage_id s) const {
    for (std::size_t p = 0; p < order.size(); ++p)
      if (touches(p, s)) return p;
    return order.size();
  }
  void run() {
    auto const n = order.size();
    start.resize(n), end.resize(n), bytes_at.resize(n);
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = 0; q < p; ++q) {
        bool wait = stream(q) == stream(p) || (stream(p) != op_stream::compute && stream(q) == op_stream::compute);
        for (auto v : g.inputs(order[p])) wait |= g.producer(v) == order[q];
        for (auto o : g.order_after(order[p])) wait |= o == order[q];
        if (wait) start[p] = std::max(start[p], end[q]);
      }
      end[p] = start[p] + seconds[p];
    }
    for (std::size_t p = 0; p < n; ++p) take_over(p);
    for (std::size_t p = 0; p < n; ++p) {
      std::set<storage_id> buffers;
      for (auto s : g.storages())
        if (g.is_resident(s) || alive(s, p)) buffers.insert(buffer(s));
      for (auto s : buffers) bytes_at[p] += align_up(g.bytes(s), options.alignment);
      bytes_at[p] += align_up(flow::workspace(g, order[p]), options.alignment);
    }
  }
  storage_id buffer(storage_id s) const {
    for (auto it = place.find(s); it != place.end(); it = place.find(s)) s = it->second;
    return s;
  }
  bool in_flight(storage_id s,
                 std::size_t p) const {  // some transfer of s, issued by p, is not known to have ended at p
    for (std::size_t t = 0; t <= p; ++t) {
      if (stream(t) == op_stream::compute || !touches(t, s)) continue;
      bool waited = false;
      for (std::size_t q = t + 1; q <= p; ++q) waited |= stream(q) == op_stream::compute && start[q] >= end[t];
      if (!waited) return true;
    }
    return false;
  }
  bool alive(storage_id s, std::size_t p) const {
    if (made_at(s) > p) return false;
    if (is_kept(s) || in_flight(s, p)) return true;
    for (std::size_t q = p; q < order.size(); ++q)
      if (touches(q, s)) return true;
    return false;
  }
  bool dies(storage_id s, std::size_t p) const {
    return alive(s, p) && !in_flight(s, p) && (p + 1 == order.size() ? !is_kept(s) : !alive(s, p + 1));
  }
  void take_over(std::size_t p) {
    auto const o = order[p];
    if (!options.takeover || stream(p) != op_stream::compute) return;
    std::set<storage_id> taken;
    for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
      auto const to = g.storage(g.outputs(o)[j]);
      if (g.is_resident(to) || made_at(to) != p || place.count(to) || g.bytes(to) == 0) continue;
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i) {
        auto const from = g.storage(g.inputs(o)[i]);
        bool ok = !g.is_resident(from) && dies(from, p) && !taken.count(from) &&
                  align_up(g.bytes(from), options.alignment) == align_up(g.bytes(to), options.alignment);
        for (auto v : g.outputs(o)) ok &= g.storage(v) != from;
        for (std::size_t k = 0; k < g.inputs(o).size(); ++k)
          ok &= g.storage(g.inputs(o)[k]) != from || flow::may_take_over(g, o, k, j);
        if (!ok) continue;
        place[to] = from;
        taken.insert(from);
        break;
      }
    }
  }
};

struct random_seconds {
  std::uint64_t seed;
  seconds_t operator()(op_graph const&, op_id o) const {
    return static_cast<double>(philox{seed}(index(o))[0] % 8) * 0.25;  // exact in binary
  }
};

}  // namespace

TEST_CASE("simulated bytes and times equal those by definition, on random graphs, orders and latencies") {
  std::size_t takeovers = 0, flights = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    auto const g =
        testing::random_graph(seed, {.max_ops = 30, .copies = 2, .swaps = static_cast<std::uint32_t>(seed % 5)});
    auto const order = testing::random_order(g, seed);
    memory_options const options{.alignment = seed % 3 ? 64 : 1, .takeover = seed % 4 != 0};
    random_seconds const cost{seed};
    by_definition brute{g, order, {}, options, {}, {}, {}, {}};
    for (auto o : order) brute.seconds.push_back(g.as<op::wait>(o) ? 0 : cost(g, o));  // whatever the model says
    brute.run();
    auto const s = simulate(g, order, cost, options);
    CHECK(s.start == brute.start);
    CHECK(s.end == brute.end);
    REQUIRE(s.bytes_at.size() == brute.bytes_at.size());
    CHECK(s.bytes_at == brute.bytes_at);
    CHECK(s.peak_bytes == *std::max_element(brute.bytes_at.begin(), brute.bytes_at.end()));
    CHECK(s.bytes_at[s.peak_position] == s.peak_bytes);
    CHECK(s.latency == *std::max_element(brute.end.begin(), brute.end.end()));
    for (auto t : g.storages()) {
      auto const it = brute.place.find(t);
      CHECK(s.takes_over[t] == (it == brute.place.end() ? nothing<storage_id> : it->second));
      takeovers += it != brute.place.end();
      if (g.is_resident(t)) continue;
      for (std::uint32_t p = 0; p < order.size(); ++p) {
        bool const in = !s.live[t].empty() && s.live[t].first <= p && p <= s.live[t].last;
        CHECK(in == brute.alive(t, p));
      }
    }
    for (std::size_t p = 0; p < order.size(); ++p) flights += brute.stream(p) != op_stream::compute;
  }
  CHECK(takeovers > 300);  // the cases were met at all
  CHECK(flights > 300);
}

TEST_CASE("a simulator that is used again gives the same answers, and the quick form agrees") {
  simulator again;
  flow_facts facts;
  simulation out;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const g = testing::random_graph(seed, {.copies = 1, .swaps = 2});
    auto const order = testing::random_order(g, seed);
    facts.assign(g, random_seconds{seed});
    again(facts, order, out);
    auto const fresh = simulate(g, order, random_seconds{seed});
    CHECK(out.bytes_at == fresh.bytes_at);
    CHECK(out.live == fresh.live);
    CHECK(out.takes_over == fresh.takes_over);
    auto const quick = again.judge(facts, order);
    CHECK(quick.peak_bytes == fresh.peak_bytes);
    CHECK(quick.latency == fresh.latency);
  }
}

TEST_CASE("an order of no ops costs nothing, and what is resident is counted") {
  graph_editor edit(testing::toy_operators::facets);
  edit.add_source(role::weight, {dtype::f32, {10}});
  auto const g = std::move(edit).finish();
  auto const s = simulate(g, schedule{}, no_cost{}, {.alignment = 64});
  CHECK(s.peak_bytes == 64);
  CHECK(s.latency == 0);
}

TEST_CASE("an alignment that is none is refused") {
  auto const g = testing::random_graph(1);
  auto const order = given_order{}(g);
  for (bytes_t alignment : {bytes_t{0}, bytes_t{-64}, (bytes_t{1} << 30) + 1, bytes_t{INT64_MAX}}) {
    auto const expected =
        "memory_options: the alignment must be from 1 to 2^30 bytes, not " + std::to_string(alignment);
    CHECK_THROWS_WITH_AS(simulate(g, order, no_cost{}, {.alignment = alignment}), expected.c_str(), error);
    CHECK_THROWS_WITH_AS(peak_lower_bound(g, {.alignment = alignment}), expected.c_str(), error);
  }
  CHECK(simulate(g, order, no_cost{}, {.alignment = bytes_t{1} << 30}).peak_bytes % (bytes_t{1} << 30) == 0);
  CHECK(simulate(g, order, no_cost{}, {.alignment = 1}).peak_bytes > 0);
}

TEST_CASE("a store frees at the first op that starts after it") {
  using testing::toy::unary;
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {64}});  // 256 bytes
  auto const a = edit.add(unary{}, {x})[0];
  auto const kept_away = edit.add(op::store{}, {a})[0];
  auto b = edit.add(unary{}, {x})[0];
  std::vector<value_id> others;
  for (int i = 0; i < 4; ++i) edit.keep(b = edit.add(unary{}, {b})[0], role::output);
  auto const back = edit.add(op::load{}, {kept_away})[0];
  edit.keep(edit.add(unary{}, {back})[0], role::output);
  auto const g = std::move(edit).finish();
  schedule order;
  for (auto o : g.ops()) order.order.push_back(o);
  // positions: 0 a, 1 store, 2 b, 3..6 chain (each keeps one more), 7 load, 8 last
  auto const cost = [](op_graph const& graph, op_id o) { return graph.as<op::store>(o) ? 2.5 : 1.0; };
  auto const s = simulate(g, order, cost, {.alignment = 1, .takeover = false});
  CHECK(s.start[1] == 1.0);
  CHECK(s.end[1] == 3.5);
  // compute ops start at 1, 2, 3, 4...: the first at or after 3.5 is position 5
  CHECK(s.live[g.storage(a)] == live_range{0, 4});
  CHECK(s.start[7] == 6.0);  // the load waits for the compute op issued before it
  CHECK(s.start[8] == 7.0);
}

namespace {
/// A graph of somebody else's: lists by reference, and nothing but the required traits.
struct external {
  std::vector<std::vector<value_id>> reads, makes;
  std::vector<bytes_t> sizes;  // one storage a value
};
}  // namespace

template <>
struct neap::graph_traits<external> {
  static std::size_t op_count(external const& g) { return g.reads.size(); }
  static std::size_t value_count(external const& g) { return g.sizes.size(); }
  static std::size_t storage_count(external const& g) { return g.sizes.size(); }
  static std::vector<value_id> const& inputs(external const& g, op_id o) { return g.reads[index(o)]; }
  static std::vector<value_id> outputs(external const& g, op_id o) { return g.makes[index(o)]; }
  static storage_id storage(external const&, value_id v) { return id_at<storage_id>(index(v)); }
  static bytes_t bytes(external const& g, storage_id s) { return g.sizes[index(s)]; }
};

TEST_CASE("an external graph is simulated as it is: sources stay, what nobody reads is kept, nothing is taken over") {
  auto const v = [](std::uint32_t i) { return value_id{i}; };
  // 0 (source, 100) -> op0 -> 1 (10) -> op1 -> 2 (20) -> op2 -> 3 (5); op2 reads 1 too
  external const g{{{v(0)}, {v(1)}, {v(1), v(2)}}, {{v(1)}, {v(2)}, {v(3)}}, {100, 10, 20, 5}};
  schedule const order{{op_id{0}, op_id{1}, op_id{2}}};
  auto const s = simulate(g, order, no_cost{}, {.alignment = 1});
  CHECK(s.resident_bytes == 100);
  CHECK(s.bytes_at == std::vector<bytes_t>{110, 130, 135});
  CHECK(s.peak_position == 2);
}
