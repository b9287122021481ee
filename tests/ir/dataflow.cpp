#include <neap/ir/dataflow.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

// An engine whose types have the names that neap's have.
namespace collision {
struct op {
  std::vector<std::uint32_t> inputs;
};
struct tensor {};
struct value {};
struct graph {
  std::vector<op> ops;
};
struct schedule {};
struct adapter {
  static std::size_t op_count(graph const& g) { return g.ops.size(); }
  static std::size_t value_count(graph const& g) { return g.ops.size(); }
  static std::size_t storage_count(graph const& g) { return g.ops.size(); }
  static std::vector<neap::value_id> inputs(graph const& g, neap::op_id o) {
    op const& x = g.ops[index(o)];
    std::vector<neap::value_id> all;
    for (auto i : x.inputs) all.push_back(neap::value_id{i});
    return all;
  }
  static std::vector<neap::value_id> outputs(graph const&, neap::op_id o) {
    return {neap::id_at<neap::value_id>(index(o))};
  }
  static neap::storage_id storage(graph const&, neap::value_id v) { return neap::id_at<neap::storage_id>(index(v)); }
  static neap::bytes_t bytes(graph const&, neap::storage_id) { return 64; }
};
adapter neap_graph_traits(graph const&);
}  // namespace collision

namespace {
struct model {};      // says all that is required
struct near_miss {};  // all but the bytes
struct stranger {};   // no traits at all
struct numbered {};   // ids of values are plain numbers
}  // namespace

template <>
struct neap::graph_traits<model> {
  static std::size_t op_count(model const&) { return 1; }
  static std::size_t value_count(model const&) { return 2; }
  static std::size_t storage_count(model const&) { return 2; }
  static std::vector<value_id> inputs(model const&, op_id) { return {value_id{0}}; }
  static std::vector<value_id> outputs(model const&, op_id) { return {value_id{1}}; }
  static storage_id storage(model const&, value_id v) { return storage_id{static_cast<std::uint32_t>(v)}; }
  static bytes_t bytes(model const&, storage_id) { return 8; }
};
template <>
struct neap::graph_traits<near_miss> {
  static std::size_t op_count(near_miss const&) { return 0; }
  static std::size_t value_count(near_miss const&) { return 0; }
  static std::size_t storage_count(near_miss const&) { return 0; }
  static std::vector<value_id> inputs(near_miss const&, op_id) { return {}; }
  static std::vector<value_id> outputs(near_miss const&, op_id) { return {}; }
  static storage_id storage(near_miss const&, value_id) { return {}; }
};
template <>
struct neap::graph_traits<numbered> {
  static std::size_t op_count(numbered const&) { return 0; }
  static std::size_t value_count(numbered const&) { return 0; }
  static std::size_t storage_count(numbered const&) { return 0; }
  static std::vector<std::uint32_t> inputs(numbered const&, op_id) { return {}; }
  static std::vector<value_id> outputs(numbered const&, op_id) { return {}; }
  static storage_id storage(numbered const&, value_id) { return {}; }
  static bytes_t bytes(numbered const&, storage_id) { return 0; }
};

static_assert(dataflow_graph<model>);
static_assert(!dataflow_graph<numbered>);
static_assert(!dataflow_graph<near_miss>);
static_assert(!dataflow_graph<stranger>);
static_assert(dataflow_graph<op_graph> && dataflow_graph<testing::toy_graph>);

TEST_CASE("residents and kept values that are not told: made by no op, read by nobody") {
  CHECK(flow::residents(model{}) == std::vector<bool>{true, false});
  CHECK(flow::kept(model{}) == std::vector{value_id{1}});
  CHECK(flow::producers(model{})[value_id{1}] == op_id{0});
}

TEST_CASE("neap's graphs say what they are") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const g = random_graph(seed, {.copies = 1, .swaps = 1});
    auto const producers = flow::producers(g);
    for (auto v : g.values()) CHECK(producers[v] == g.producer(v));
    CHECK(std::ranges::equal(flow::kept(g), g.kept()));
    auto const residents = flow::residents(g);
    for (auto s : g.storages()) CHECK(residents[index(s)] == g.is_resident(s));
    for (auto o : g.ops()) {
      bool update = false, view = true;
      for (auto v : g.outputs(o)) {
        update = update || g.record(v).alias == alias_kind::update;
        view = view && g.record(v).alias == alias_kind::view;
      }
      CHECK(flow::is_view(g, o) == view);
      if (update) CHECK_FALSE(flow::is_recomputable(g, o));
      if (g.as<op::store>(o)) CHECK(flow::stream(g, o) == op_stream::to_host);
      if (g.as<op::load>(o)) CHECK(flow::stream(g, o) == op_stream::to_device);
      if (g.as<toy::matmul>(o)) CHECK(flow::workspace(g, o) == g.type(g.output(o)).count());
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i)
        for (std::size_t j = 0; j < g.outputs(o).size(); ++j)
          if (flow::may_take_over(g, o, i, j)) {
            auto const u = g.inputs(o)[i], v = g.outputs(o)[j];
            CHECK(g.layout(u) == g.layout(v));
            CHECK(g.bytes(g.storage(u)) == g.bytes(g.storage(v)));
            CHECK(g.storage(u) != g.storage(v));
          }
    }
  }
}

TEST_CASE("costs of ops with many values") {
  graph_editor edit(toy_operators::facets);
  std::vector<value_id> in;
  for (int i = 0; i < 20; ++i) in.push_back(edit.add_source(role::input, {dtype::f32, {4}}));
  output_rule const out{tensor_layout::dense({dtype::f32, {4}}), alias_kind::fresh, -1, -1};
  edit.add_opaque("many", {.flops = 5, .read = 320, .written = 16}, in, std::span(&out, 1));
  op_graph const g = std::move(edit).finish();
  CHECK(flow::cost(g, op_id{0}).read == 320);
  CHECK(flow::seconds(g, op_id{0}) < 0);
}

TEST_CASE("a graph whose types are called as neap's are is adapted from its own namespace") {
  static_assert(dataflow_graph<collision::graph>);
  collision::graph const g{{{{}}, {{0}}, {{0, 1}}}};
  CHECK(flow::op_count(g) == 3);
  CHECK(flow::inputs(g, op_id{2}).size() == 2);
  CHECK(flow::bytes(g, storage_id{1}) == 64);
  CHECK(!flow::is_recomputable(g, op_id{0}));
}
