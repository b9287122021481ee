#include <neap/simulate/lower_bound.hpp>

#include <neap/simulate/simulator.hpp>

#include "../support/padded_graph.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace neap;

namespace {

/// The least peak of all orders of a graph, up to so many of them.
class all_orders {
 public:
  all_orders(graph const& g, memory_options options) : g_(g), facts_(g, no_cost{}, options), missing_(g.op_count()) {
    for (auto o : g.ops())
      for (auto v : g.inputs(o)) missing_[index(o)] += g.producer(v) != nothing<op_id>;
    extend();
  }
  bytes_t least() const { return least_; }

 private:
  void extend() {
    if (left_ == 0) return;
    if (order_.order.size() == g_.op_count()) {
      --left_;
      least_ = std::min(least_, sim_.peak(facts_, order_));
      return;
    }
    for (auto o : g_.ops()) {
      if (missing_[index(o)] != 0) continue;
      missing_[index(o)] = -1;
      order_.order.push_back(o);
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses(v)) --missing_[index(u.op)];
      extend();
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses(v)) ++missing_[index(u.op)];
      order_.order.pop_back();
      missing_[index(o)] = 0;
    }
  }
  graph const& g_;
  flow_facts facts_;
  simulator sim_;
  schedule order_;
  std::vector<int> missing_;
  bytes_t least_ = INT64_MAX;
  int left_ = 300;
};

}  // namespace

TEST_CASE("no order has a peak below the bound, nor has a graph with ops computed again, stored and loaded") {
  int met = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    auto const plain = testing::random_graph(seed);
    auto const b = peak_lower_bound(plain, options);
    CHECK(!(b.forcing.empty() && b.bytes > flow_facts(plain, no_cost{}, options).resident_bytes()));
    for (std::uint64_t k = 0; k < 4; ++k) {
      auto const s = simulate(plain, testing::random_order(plain, k), no_cost{}, options);
      CHECK(s.peak_bytes >= b.bytes);
      met += s.peak_bytes == b.bytes;
    }
    auto const edited = testing::random_graph(seed, {.copies = 3, .swaps = 3});
    for (std::uint64_t k = 0; k < 4; ++k)
      CHECK(simulate(edited, testing::random_order(edited, k), no_cost{}, options).peak_bytes >= b.bytes);
  }
  CHECK(met > testing::cases(30));  // and it is not idle
}

TEST_CASE("the bound names what forces it") {
  namespace toy = testing::toy;
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {16, 16}});
  auto const a = edit.add(toy::unary{}, {x})[0];
  auto const b = edit.add(toy::matmul{}, {a, x})[0];
  auto const c = edit.add(toy::column_sum{}, {b})[0];
  edit.keep(c, role::output);
  auto const g = std::move(edit).finish();
  auto const bound = peak_lower_bound(g, memory_options{.alignment = 1});
  CHECK(bound.bytes == 1024 + 1024 + 1024 + 256);  // x, a, b, workspace
  REQUIRE(bound.forcing.size() == 1);
  CHECK(bound.forcing[0].op == g.producer(b));
  CHECK(!bound.at_end);

  graph_editor more(g);
  for (auto const& v : {a, b}) more.keep(v, role::output);
  more.keep(more.add(toy::unary{1}, {x})[0], role::output);
  auto const end = peak_lower_bound(std::move(more).finish(), memory_options{.alignment = 1});
  CHECK(end.at_end);
  CHECK(end.bytes == 4 * 1024 + 64);
  CHECK(end.forcing.size() == 4);

  graph_editor two(testing::toy_operators::facets);
  auto const z = two.add_source(role::input, {dtype::f32, {16, 16}});
  for (auto v : two.add(toy::normalise{}, {z})) two.keep(v, role::output);
  two.keep(two.add(toy::unary{}, {z})[0], role::output);
  auto const once = peak_lower_bound(std::move(two).finish(), memory_options{.alignment = 1});
  CHECK(once.at_end);
  CHECK(once.bytes == 3 * 1024 + 64);
  CHECK(once.forcing.size() == 2);  // the first op makes two of three results
}

TEST_CASE(
    "padded buffers, views that are smaller than their storage, takeovers: no order of any copy is below the bound") {
  std::uint64_t const graphs = testing::cases(100'000u);
  std::uint64_t met = 0, met_by_edits = 0, taken = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 8 != 0};
    auto const plain = testing::padded_graph(seed);
    auto const bound = peak_lower_bound(plain, options).bytes;
    auto const least = all_orders(plain, options).least();
    if (least < bound) CHECK(least >= bound);
    met += least == bound;
    taken += options.takeover && !flow_facts(plain, no_cost{}, options).takeovers().empty();
    auto edited = plain;
    random_stream draw(seed, 42);
    for (auto n = 1 + draw.below(3); n > 0; --n) testing::copy_or_load(edited, draw);
    bool moved = false;  // a kept view: no plan may do that
    for (std::size_t i = 0; i < plain.kept().size(); ++i)
      moved = moved || edited.bytes(edited.storage(edited.kept()[i])) != plain.bytes(plain.storage(plain.kept()[i]));
    if (moved) continue;
    auto const of_edited = all_orders(edited, options).least();
    if (of_edited < bound) CHECK(of_edited >= bound);
    met_by_edits += least > bound && of_edited == bound;
  }
  CHECK(met > graphs / 2);  // and it is not idle
  CHECK(met_by_edits > graphs / 1000);
  CHECK(taken > graphs / 5);
}

TEST_CASE("a kept view keeps its whole storage") {
  namespace toy = testing::toy;
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {16, 16}});
  edit.keep(edit.add(toy::rows{2, 1}, {edit.add(toy::unary{}, {x})[0]})[0], role::output);
  auto const bound = peak_lower_bound(std::move(edit).finish(), memory_options{.alignment = 1});
  CHECK(bound.bytes == 2 * 1024);
  CHECK(bound.end_bytes == 1024 + 64);  // a rule might make the row alone
}
