#include <neap/blocks/kernel_graph.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <neap/train/differentiate.hpp>

#include <set>
#include <string>

using namespace neap;
using namespace neap::testing;

TEST_CASE("the graph is what the ops read and make, and runs in its order") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 30) : random_model(seed, 30);
    auto const b = make_basic(g);
    auto const p = simplify(g, make_dataflow(g, b));
    auto const k = make_kernels(g, b, p, find_backward(g, b, p));
    // Each op once; those of the prologue are not drawn.
    std::set<op_id> ops(k.rest.begin(), k.rest.end());
    std::size_t count = k.rest.size();
    for (auto const& c : k.computations) ops.insert(c.ops.begin(), c.ops.end()), count += c.ops.size();
    CHECK(count + p.prologue.size() == g.op_count());
    CHECK(ops.size() == count);
    std::set<storage_id> storages;
    for (auto const& d : k.data) {
      bytes_t bytes = 0;
      for (auto s : d.storages) {
        CHECK(storages.insert(s).second);
        bytes += g.bytes(s);
      }
      CHECK(bytes == d.bytes);
    }
    std::vector<std::uint32_t> makers(k.data.size());
    std::vector<unsigned char> there(k.data.size());
    for (auto const& c : k.computations)
      for (auto d : c.makes) ++makers[d];
    for (auto const& c : k.computations) {
      for (auto d : c.reads)  // gradients come from several; others are there
        if (k.data[d].kind != kernel_data_kind::gradient) CHECK(there[d]);
      for (auto d : c.makes) there[d] = 1;
      for (auto d : c.fakes) CHECK(!std::binary_search(c.reads.begin(), c.reads.end(), d));
      if (c.kind == kernel_kind::forward) CHECK(c.fakes.empty());
      std::set<storage_id> read;
      for (auto o : c.ops)
        for (auto v : g.inputs(o)) read.insert(g.storage(v));
      for (auto d : c.fakes)
        for (auto s : k.data[d].storages) CHECK(!read.contains(s));
    }
    for (std::uint32_t d = 0; d < k.data.size(); ++d) {
      if (k.data[d].kind != kernel_data_kind::gradient) CHECK(makers[d] == 1);
      else CHECK(makers[d] >= 1);
      if (k.data[d].kind == kernel_data_kind::phantoms)
        for (auto const& c : k.computations)
          if (c.kind == kernel_kind::forward) CHECK(!std::binary_search(c.reads.begin(), c.reads.end(), d));
    }
  }
}

TEST_CASE("relu(x w) behind a norm: what its backward reads, knows and finds as phantoms") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const one = [&](auto const& op, std::initializer_list<value_id> in) { return e.add(op, in)[0]; };
  auto const x = e.add_source(role::input, {dtype::f32, {8, 16}}, "x");
  auto const w = e.add_source(role::weight, {dtype::f32, {16, 16}}, "w"),
             a = e.add_source(role::weight, {dtype::f32, {16}}, "a"),
             b = e.add_source(role::weight, {dtype::f32, {16}}, "b");
  auto const n = one(op::layer_norm{}, {x, a, b});
  auto const h = one(op::matmul{}, {n, w});
  auto const r = one(op::relu{}, {h});
  auto const loss = one(op::mean{extents{0, 1}, false}, {one(op::square{}, {r})});
  value_id const wanted[] = {w, a, b};
  for (auto g : differentiate(e, loss, wanted)) e.keep(g, role::gradient);
  e.keep(loss, role::loss);
  auto const g = graph(std::move(e).finish());
  auto const basic = make_basic(g);
  auto const p = simplify(g, make_dataflow(g, basic));
  auto const k = make_kernels(g, basic, p, find_backward(g, basic, p));
  auto const told = [&](std::string const& name) {
    for (auto const& c : k.computations) {
      if (std::string(name_of(c.kind)) + " " + std::to_string(c.node) != name) continue;
      std::string s;
      for (auto d : c.reads) s += " " + std::string(name_of(k.data[d].kind)) + std::to_string(k.data[d].node);
      s += " ;";
      for (auto d : c.fakes) s += " " + std::string(name_of(k.data[d].kind)) + std::to_string(k.data[d].node);
      return s;
    }
    return std::string("not there");
  };
  REQUIRE(p.nodes.size() == 5);  // norm, product, relu, square, mean
  CHECK(told("forward 1") == " data0 ;");
  CHECK(told("backward 0") == " phantoms0 gradient0 ; data0");  // the norm's mean and deviation, not its result
  CHECK(told("backward 1") == " data0 gradient1 ; data1");      // its argument for the weight
  CHECK(told("backward 2") == " data2 gradient2 ; data1");      // relu looks at its result
  CHECK(k.computations[4].is_loss);
}
