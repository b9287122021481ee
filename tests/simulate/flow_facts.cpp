#include <neap/simulate/flow_facts.hpp>

#include <neap/simulate/simulator.hpp>

#include "../support/engine_net.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ranges>
#include <vector>

using namespace neap;
using testing::random_graph;

namespace {

/// An op_graph that only says what it must: all else is found out or taken conservatively.
struct reticent {
  op_graph const& g;
};

struct opaque_only : operator_set<op::opaque> {};

}  // namespace

template <>
struct neap::graph_traits<reticent> {
  using all = graph_traits<op_graph>;
  static std::size_t op_count(reticent const& r) { return r.g.op_count(); }
  static std::size_t value_count(reticent const& r) { return r.g.value_count(); }
  static std::size_t storage_count(reticent const& r) { return r.g.storage_count(); }
  static auto inputs(reticent const& r, op_id o) {  // a range that does not know its size
    return r.g.inputs(o) | std::views::filter([](value_id) { return true; });
  }
  static std::vector<value_id> outputs(reticent const& r, op_id o) {
    return {r.g.outputs(o).begin(), r.g.outputs(o).end()};
  }
  static storage_id storage(reticent const& r, value_id v) { return r.g.storage(v); }
  static bytes_t bytes(reticent const& r, storage_id s) { return r.g.bytes(s); }
  static std::span<op_id const> order_after(reticent const& r, op_id o) { return r.g.order_after(o); }
  static bool may_take_over(reticent const& r, op_id o, std::size_t i, std::size_t j) {
    return all::may_take_over(r.g, o, i, j);
  }
};

namespace {

/// The facts as their descriptions say them, one at a time.
template <class G>
void check_facts(flow_facts const& facts, G const& g, memory_options options) {
  auto const makers = flow::producers(g);
  auto const residents = flow::residents(g);
  auto const kept = flow::kept(g);
  auto const bytes = [&](storage_id s) { return align_up(flow::bytes(g, s), options.alignment); };
  std::vector<op_id> maker(flow::storage_count(g), nothing<op_id>);
  bytes_t resident_bytes = 0;
  std::size_t edges = 0;
  std::vector<bool> lives_on(flow::storage_count(g));
  for (auto v : kept) lives_on[index(flow::storage(g, v))] = true;
  for (auto s : id_range<storage_id>(flow::storage_count(g))) {
    CHECK(facts.bytes(s) == bytes(s));
    CHECK(facts.is_resident(s) == residents[index(s)]);
    CHECK(facts.is_kept(s) == (lives_on[index(s)] && !residents[index(s)]));
    CHECK(std::ranges::count(facts.kept_storages(), s) == facts.is_kept(s));
    if (residents[index(s)]) resident_bytes += bytes(s);
  }
  CHECK(facts.resident_bytes() == resident_bytes);
  REQUIRE(facts.op_count() == flow::op_count(g));

  for (auto o : id_range<op_id>(flow::op_count(g))) {
    std::vector<value_id> in, out;
    for (auto v : flow::inputs(g, o)) in.push_back(v);
    for (auto v : flow::outputs(g, o)) out.push_back(v);
    std::vector<op_id> after;
    for (auto v : in)
      if (makers[v] != nothing<op_id>) after.push_back(makers[v]);
    for (auto b : flow::order_after(g, o)) after.push_back(b);
    CHECK(std::ranges::equal(facts.after(o), after));
    edges += in.size() + out.size() + flow::order_after(g, o).size();

    std::vector<storage_id> touches, makes;
    auto const touch = [&](value_id v, bool writes) {
      auto const s = flow::storage(g, v);
      if (residents[index(s)] || std::ranges::count(touches, s)) return;
      touches.push_back(s);
      if (writes) makes.push_back(s), maker[index(s)] = o;
    };
    for (auto v : in) touch(v, false);
    for (auto v : out) touch(v, true);
    CHECK(std::ranges::equal(facts.touches(o), touches));
    CHECK(std::ranges::equal(facts.makes(o), makes));

    CHECK(facts.stream(o) == flow::stream(g, o));
    CHECK(facts.seconds(o) == given_latencies{}(g, o));
    CHECK(facts.workspace(o) == align_up(flow::workspace(g, o), options.alignment));

    std::vector<std::pair<storage_id, storage_id>> takeovers, said;
    if (options.takeover && flow::stream(g, o) == op_stream::compute)
      for (std::size_t j = 0; j < out.size(); ++j)
        for (std::size_t i = 0; i < in.size(); ++i) {
          auto const from = flow::storage(g, in[i]), to = flow::storage(g, out[j]);
          if (!std::ranges::count(makes, to) || residents[index(from)] || lives_on[index(from)] || bytes(to) == 0)
            continue;
          bool good = bytes(from) == bytes(to);
          for (std::size_t k = 0; k < in.size(); ++k)
            for (std::size_t l = 0; l < out.size(); ++l)
              good &= flow::storage(g, in[k]) != from || (in[k] == in[i] && k != i) ||
                      (std::derived_from<G, op_graph> ? l != j : flow::storage(g, out[l]) != to) ||
                      flow::may_take_over(g, o, k, l);
          for (auto v : out) good &= flow::storage(g, v) != from;
          if (good) takeovers.emplace_back(from, to);
        }
    for (auto c : facts.takeovers(o)) said.emplace_back(c.from, c.to);
    CHECK(said == takeovers);
    CHECK((flow::takes_over(g, o) || said.empty()));
  }
  std::size_t listed = 0, waits = 0;
  for (auto o : id_range<op_id>(flow::op_count(g))) {
    auto const mine = facts.takeovers(o);
    REQUIRE(mine.size() <= facts.takeovers().size() - listed);
    CHECK((mine.empty() || mine.data() == facts.takeovers().data() + listed));
    listed += mine.size(), waits += facts.after(o).size();
  }
  CHECK(facts.takeovers().size() == listed);
  CHECK(facts.after_count() == waits);
  std::vector<storage_id> given;
  for (auto s : id_range<storage_id>(flow::storage_count(g))) {
    CHECK(facts.maker(s) == maker[index(s)]);
    if (!residents[index(s)] && maker[index(s)] == nothing<op_id>) given.push_back(s);
  }
  CHECK(std::ranges::equal(facts.given_storages(), given));
  bool transfers = false;
  for (auto o : id_range<op_id>(flow::op_count(g))) transfers |= flow::stream(g, o) != op_stream::compute;
  CHECK(facts.has_transfers() == transfers);
  CHECK(flow::edge_count(g) >= edges);
}

}  // namespace

TEST_CASE("facts are what the graph says, one object for many graphs of all sizes") {
  flow_facts facts, of_reticent;
  std::size_t transfers = 0, takeovers = 0, workspaces = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    auto const g = random_graph(
        seed, {.copies = static_cast<std::uint32_t>(seed % 3), .swaps = static_cast<std::uint32_t>(seed % 2)});
    memory_options const options{seed % 4 == 3 ? 24 : 1 << (seed % 8), seed % 5 != 0};
    facts.assign(g, given_latencies{}, options);
    check_facts(facts, g, options);
    of_reticent.assign(reticent{g}, given_latencies{}, options);
    check_facts(of_reticent, reticent{g}, options);
    transfers += facts.has_transfers(), workspaces += facts.has_workspace();
    for (auto o : g.ops()) takeovers += facts.takeovers(o).size();
  }
  CHECK(transfers > 10);
  CHECK(takeovers > 100);
  CHECK(workspaces > 0);
}

TEST_CASE("an op of very many arguments touches each storage once") {
  graph_editor edit(opaque_only::facets);
  std::vector<value_id> arguments;
  auto const x = edit.add_source(role::input, {dtype::f32, {4}});
  op::opaque what;
  output_rule const out{tensor_layout::dense({dtype::f32, {4}}), alias_kind::fresh, -1, -1};
  arguments.reserve(40);
  for (int i = 0; i < 40; ++i)
    arguments.push_back(edit.output(edit.add_opaque("make", what, std::span(&x, 1), std::span(&out, 1))));
  std::vector<value_id> twice(arguments);
  twice.insert(twice.end(), arguments.rbegin(), arguments.rend());
  auto const all = edit.add_opaque("cat", what, twice, std::span(&out, 1));
  op_graph const g = std::move(edit).finish();
  flow_facts const facts(g, no_cost{});
  CHECK(facts.touches(all).size() == 41);
  CHECK(facts.makes(all).size() == 1);
  CHECK(facts.after(all).size() == 80);
  check_facts(facts, g, memory_options{});
}

TEST_CASE("a value that an op reads twice is taken over only where both arguments allow it") {
  engine::net g;  // value 0 is given and freed; op 0 makes value 1 from 0 and 0
  g.lies_in = {0, 1};
  g.bytes = {64, 64};
  g.resident = {0, 0};
  g.swappable = {1, 1};
  g.ops.emplace_back();
  g.ops[0].in = {0, 0}, g.ops[0].out = {1};
  g.ops[0].takeovers = {{0, 0}};
  CHECK(flow_facts(g, no_cost{}).takeovers().empty());
  g.ops[0].takeovers = {{0, 0}, {1, 0}};
  CHECK(!flow_facts(g, no_cost{}).takeovers().empty());
}

TEST_CASE("a storage that is given is there from the beginning, though it is overwritten unread") {
  engine::net g;  // op 0 makes 1 from what is given; op 1 overwrites that with 2; op 2 reads both
  g.lies_in = {0, 1, 0, 2};
  g.bytes = {64, 64, 64};
  g.resident = {0, 0, 0};
  g.swappable = {1, 1, 1};
  g.ops.resize(3);
  g.ops[0].in = {0}, g.ops[0].out = {1};
  g.ops[1].out = {2}, g.ops[1].after = {0};
  g.ops[2].in = {1, 2}, g.ops[2].out = {3};
  g.kept = {3};
  flow_facts const facts(g, no_cost{});
  CHECK(facts.maker(storage_id{0}) == nothing<op_id>);
  CHECK(std::ranges::equal(facts.given_storages(), std::vector{storage_id{0}}));
  CHECK(std::ranges::equal(facts.touches(op_id{1}), std::vector{storage_id{0}}));
  CHECK(facts.makes(op_id{1}).empty());
  auto const s = simulate(g, schedule{{op_id{0}, op_id{1}, op_id{2}}}, no_cost{});
  CHECK(s.bytes_at == std::vector<bytes_t>{128, 128, 192});
  CHECK(s.live[storage_id{0}] == live_range{0, 2});
}

TEST_CASE("of several outputs on one storage all must allow that it takes the place of an input") {
  engine::net g;  // op 0 makes 1 and 2, both on one storage
  g.lies_in = {0, 1, 1};
  g.bytes = {64, 64};
  g.resident = {0, 0};
  g.swappable = {1, 1};
  g.ops.emplace_back();
  g.ops[0].in = {0}, g.ops[0].out = {1, 2};
  for (engine::number j : {0u, 1u}) {
    g.ops[0].takeovers = {{0, j}};
    CHECK(flow_facts(g, no_cost{}).takeovers().empty());
  }
  g.ops[0].takeovers = {{0, 0}, {0, 1}};
  auto const all = flow_facts(g, no_cost{});
  REQUIRE(!all.takeovers().empty());
  CHECK(all.takeovers()[0].from == storage_id{0});
}
