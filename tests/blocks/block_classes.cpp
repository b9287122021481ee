#include <neap/blocks/block_classes.hpp>

#include "../support/message.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

#include <neap/ir/standard_operators.hpp>
#include <neap/train/differentiate.hpp>

using namespace neap;
using namespace neap::testing;

namespace {

/// What differs in the third of four equal layers.
enum class change { nothing, attribute, wire, width, weight_type, kept, random, target, details, argument_order };

/// Four layers y = x + f(x), with their gradients: each is a block.
graph four_layers(change what) {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const one = [&](auto const& op, std::initializer_list<value_id> in) { return e.add(op, in)[0]; };
  auto const step = e.add_source(role::state, {dtype::i64, {}}, "step");
  std::vector<value_id> weights;
  auto const weight = [&](shape s) {
    weights.push_back(e.add_source(role::weight, {dtype::f32, s}, "w" + std::to_string(weights.size())));
    return weights.back();
  };
  auto const x0 = e.add_source(role::input, {dtype::f32, {16, 32}}, "x");
  auto x = one(op::add{}, {x0, weight({32})});
  for (int layer = 0; layer < 4; ++layer) {
    auto const is = [&](change c) { return layer == 2 && what == c; };
    std::int64_t const width = is(change::width) ? 40 : 48;
    auto const h = one(op::matmul{}, {x, weight({32, width})});
    auto a = one(op::leaky_relu{is(change::attribute) ? 0.02 : 0.01}, {h});
    op::dropout d;
    d.p = is(change::random) ? 0.25 : 0.5;
    d.key = 100 + layer;
    a = one(d, {a, step});
    auto const b = one(op::tanh{}, {is(change::wire) ? a : h});
    auto const c = is(change::argument_order) ? one(op::sub{}, {b, a}) : one(op::sub{}, {a, b});
    if (is(change::kept)) e.keep(c, role::output);
    op::opaque o;
    o.pointwise = true;
    value_id const in[] = {c};
    output_rule const out[] = {{e.layout_of(c), alias_kind::fresh, -1, -1}};
    auto const told = e.output(e.add_opaque(is(change::target) ? "other" : "metric", o, in, out, "",
                                            is(change::details) ? "{\"args\":[2]}" : "{\"args\":[1]}"));
    (void)told;
    auto const y = one(op::matmul{}, {c, weight({width, 32})});
    x = one(op::add{}, {x, y});
  }
  auto const loss = one(op::mean{extents{0, 1}, false}, {one(op::square{}, {x})});
  auto const gradients = differentiate(e, loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) e.add(op::sgd{0.1, 0}, {weights[i], gradients[i]});
  e.keep(loss, role::loss);
  return graph(std::move(e).finish());
}

std::vector<std::uint32_t> classes_of(graph const& g) {
  auto const a = make_all_graphs(g, {.simplify = {.small_bytes = 1}});
  check_all(g, a);
  std::vector<std::uint32_t> all;
  for (auto const& b : a.blocks.blocks) all.push_back(b.block_class);
  return all;
}

}  // namespace

TEST_CASE("equal layers are one class, and any one difference is told") {
  auto const equal = classes_of(four_layers(change::nothing));
  // entry, four layers of which the last has a plain gradient coming in, square, mean
  std::vector<std::uint32_t> const expected{0, 1, 1, 1, 1, 2, 3};
  CHECK(equal == expected);
  std::vector<std::uint32_t> const third{0, 1, 1, 2, 1, 3, 4};
  for (auto what : {change::attribute, change::wire, change::width, change::kept, change::random, change::target,
                    change::details, change::argument_order}) {
    CAPTURE(static_cast<int>(what));
    CHECK(classes_of(four_layers(what)) == third);
  }
}

TEST_CASE("what is written of a block is equal exactly within a class") {
  auto const g = four_layers(change::nothing);
  auto const a = make_all_graphs(g, {.simplify = {.small_bytes = 1}});
  auto const n = static_cast<std::uint32_t>(a.blocks.blocks.size());
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t j = 0; j < n; ++j)
      CHECK((written_block(g, a.blocks, i) == written_block(g, a.blocks, j)) ==
            (a.blocks.blocks[i].block_class == a.blocks.blocks[j].block_class));
}

TEST_CASE("a renaming leads from the representative to the block and back, and not between others") {
  auto const g = four_layers(change::nothing);
  auto const a = make_all_graphs(g, {.simplify = {.small_bytes = 1}});
  auto const there = renaming(g, a.blocks, 1, 3), back = renaming(g, a.blocks, 3, 1);
  std::size_t ops = 0;
  for (auto o : g.ops()) {
    if (there.op[o] == nothing<op_id>) continue;
    ++ops;
    CHECK(back.op[there.op[o]] == o);
    CHECK(a.blocks.block_of[there.op[o]] == 3);
  }
  auto const& b = a.blocks.blocks[1];
  CHECK(ops == b.forward.size() + b.backward.size() + b.updates.size());
  for (auto v : g.values())
    if (there.value[v] != nothing<value_id>) CHECK(back.value[there.value[v]] == v);
  CHECK(message_of([&] { (void)renaming(g, a.blocks, 0, 1); }) == "blocks: these two are not equal");
}

TEST_CASE("equal draws within a block count, their keys do not") {
  // Two dropouts of a layer with one key, and with two: the wiring of draws is another.
  auto const model = [](bool second) {
    graph_editor e{operator_table(standard_operators::facets)};
    auto const one = [&](auto const& op, std::initializer_list<value_id> in) { return e.add(op, in)[0]; };
    auto const step = e.add_source(role::state, {dtype::i64, {}}, "step");
    std::vector<value_id> weights;
    auto x = e.add_source(role::input, {dtype::f32, {16, 32}}, "x");
    for (std::int64_t layer = 0; layer < 4; ++layer) {
      weights.push_back(e.add_source(role::weight, {dtype::f32, {32, 32}}, "w"));
      x = one(op::matmul{}, {x, weights.back()});
      op::dropout a, b;
      a.p = b.p = 0.5;
      a.key = 10 + layer, b.key = layer == 2 && second ? a.key : 20 + layer;
      x = one(op::add{}, {one(a, {x, step}), one(b, {x, step})});
    }
    auto const loss = one(op::mean{extents{0, 1}, false}, {x});
    auto const gradients = differentiate(e, loss, weights);
    for (std::size_t i = 0; i < 4; ++i) e.keep(gradients[i], role::gradient);
    e.keep(loss, role::loss);
    return graph(std::move(e).finish());
  };
  auto const same = [&](graph const& g) {
    // The blocks that hold the dropouts: between the matrix products.
    auto const a = make_all_graphs(g, {.simplify = {.small_bytes = 1}});
    check_all(g, a);
    std::vector<std::uint32_t> found;
    for (auto const& b : a.blocks.blocks)
      for (auto o : b.forward)
        if (g.as<op::dropout>(o)) found.push_back(b.block_class);
    REQUIRE(found.size() == 8);  // two a layer
    return found[2] == found[4];
  };
  CHECK(same(model(false)));
  CHECK(!same(model(true)));
}
