// A graph type that neap does not know, adapted by seven lines, and walked by neap's algorithms.
#include <neap/ir/dataflow.hpp>

#include <neap/ir/traversal.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace engine {

/// An engine's own tensors: each made by an op from others, or given; kept in an array in the order of their making.
struct tensor {
  std::string name;
  std::vector<std::uint32_t> sources;  // indices of tensors; none: given
  std::size_t bytes;
};
struct graph {
  std::vector<tensor> tensors;
};

}  // namespace engine

template <>
struct neap::graph_traits<engine::graph> {  // each tensor is an op, a value and a storage
  using G = engine::graph;
  static std::size_t op_count(G const& g) { return g.tensors.size(); }
  static std::size_t value_count(G const& g) { return g.tensors.size(); }
  static std::size_t storage_count(G const& g) { return g.tensors.size(); }
  static std::vector<value_id> inputs(G const& g, op_id o) {
    std::vector<value_id> in;
    for (auto i : g.tensors[index(o)].sources) in.push_back(value_id{i});
    return in;
  }
  static std::vector<value_id> outputs(G const&, op_id o) { return {value_id{static_cast<std::uint32_t>(o)}}; }
  static storage_id storage(G const&, value_id v) { return storage_id{static_cast<std::uint32_t>(v)}; }
  static bytes_t bytes(G const& g, storage_id s) { return static_cast<bytes_t>(g.tensors[index(s)].bytes); }
};

using namespace neap;

TEST_CASE("an external graph is ordered") {
  static_assert(dataflow_graph<engine::graph>);
  // given -> a -> {b, c} -> d -> e
  engine::graph const g{
      {{"given", {}, 64}, {"a", {0}, 64}, {"b", {1}, 32}, {"c", {1}, 16}, {"d", {2, 3}, 64}, {"e", {4}, 4}}};
  CHECK(is_acyclic(g));
  for (auto const& order : {kahn_order(g), topological_order(g), depth_first_order(g)}) CHECK(is_topological(g, order));
  CHECK(depths(g)[op_id{5}] == 4);
}

TEST_CASE("what an external graph does not say is taken conservatively") {
  engine::graph const g{{{"given", {}, 64}, {"a", {0}, 64}, {"b", {1}, 32}}};
  for (auto o : id_range<op_id>(3)) {
    CHECK_FALSE(flow::is_recomputable(g, o));
    CHECK_FALSE(flow::may_take_over(g, o, 0, 0));
    CHECK_FALSE(flow::is_view(g, o));
    CHECK(flow::workspace(g, o) == 0);
    CHECK(flow::seconds(g, o) < 0);
    CHECK(flow::stream(g, o) == op_stream::compute);
    CHECK(flow::order_after(g, o).empty());
  }
  CHECK(flow::kept(g) == std::vector{value_id{2}});
  CHECK(flow::residents(g) == std::vector<bool>(3));
  CHECK(flow::cost(g, op_id{2}).read == 64);
  CHECK(flow::cost(g, op_id{2}).written == 32);
}
