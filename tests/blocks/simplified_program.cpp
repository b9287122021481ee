#include <neap/blocks/simplified_program.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

graph random_graph(std::uint64_t seed) { return seed % 2 ? random_model(seed, 40) : opaque_graph(seed, 40); }

/// A program by hand: f(kind, name, inputs, bytes) adds an opaque op.
struct by_hand {
  graph_editor edit{operator_table(standard_operators::facets)};
  static tensor_layout type(std::int64_t n, dtype t = dtype::f32) { return tensor_layout::dense({t, {n}}); }
  value_id fresh(char const* name, std::vector<value_id> in, std::int64_t n = 1 << 20, bool rng = false,
                 dtype t = dtype::f32) {
    op::opaque x;
    x.rng = rng;
    output_rule const out[] = {{type(n, t), alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque(name, x, in, out, name));
  }
  std::vector<value_id> view(char const* name, value_id of, int outputs = 1) {
    std::vector<value_id> const in{of};
    std::vector<output_rule> out(static_cast<std::size_t>(outputs), {edit.layout_of(of), alias_kind::view, 0, -1});
    return edit.outputs_of(edit.add_opaque(name, {}, in, out, name));
  }
  value_id update(char const* name, value_id of, std::vector<value_id> more) {
    more.insert(more.begin(), of);
    op::opaque x;
    x.pure = false;
    output_rule const out[] = {{edit.layout_of(of), alias_kind::update, 0, -1}};
    return edit.output(edit.add_opaque(name, x, more, out, name));
  }
  graph finish(value_id loss) {
    edit.keep(loss, role::loss);
    return graph(std::move(edit).finish());
  }
};

/// The names of the ops of each node, "main+folded", and first those of the prologue.
std::string told(op_graph const& g, simplified_program const& p) {
  std::string s;
  for (auto o : p.prologue) s += (s.empty() ? "" : "+") + std::string(g.name(o));
  s += "|";
  for (auto const& n : p.nodes) {
    s += " " + std::string(g.name(n.main));
    for (auto o : n.ops)
      if (o != n.main) s += "+" + std::string(g.name(o));
  }
  return s;
}

}  // namespace

TEST_CASE("all views are folded, and every step keeps the list topological, whatever is applied when") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = random_graph(seed);
    auto const b = make_basic(g);
    auto const d = make_dataflow(g, b);
    auto p = unfolded(g, d);
    check_simplified(g, d, p);
    CHECK(p.nodes.size() == d.nodes.size());
    std::vector<simplify_step> steps(simplify_steps.begin(), simplify_steps.end());
    random_stream draw(seed, 3);
    for (std::size_t i = steps.size(); i-- > 1;)
      std::swap(steps[i], steps[draw.below(static_cast<std::uint32_t>(i + 1))]);
    for (auto s : steps) {
      p = simplify(g, d, std::move(p), s);
      check_simplified(g, d, p);
      CHECK(p.done.back() == s);
    }
    auto const all = simplify(g, d);
    check_simplified(g, d, all);
    for (auto const& n : all.nodes) {
      CHECK(!d[n.main].is_view);
      CHECK(d[n.main].bytes > 0);
    }
    CHECK(all.done == std::vector<simplify_step>(simplify_steps.begin(), simplify_steps.end()));
    // One by one, in their order, is all at once.
    auto one_by_one = unfolded(g, d);
    for (auto s : simplify_steps) one_by_one = simplify(g, d, std::move(one_by_one), s);
    CHECK(one_by_one == all);
  }
}

TEST_CASE("what each step folds, and where") {
  by_hand h;
  auto const w = h.edit.add_source_at(role::weight, by_hand::type(1 << 20), "w");
  auto const x = h.edit.add_source_at(role::input, by_hand::type(1 << 20), "x");
  auto const running = h.edit.add_source_at(role::buffer, by_hand::type(4), "running");
  auto const wt = h.view("wt", w)[0];
  auto const mask = h.fresh("mask", {x}, 16);
  auto const noise = h.fresh("noise", {}, 16, true);
  auto const big_noise = h.fresh("big_noise", {}, 1 << 20, true);
  auto const a = h.fresh("a", {x, wt, mask});
  auto const parts = h.view("parts", a, 3);
  auto const length = h.fresh("length", {parts[1]}, 1, false, dtype::i64);
  auto const b = h.fresh("b", {parts[0], noise, length});
  auto const turned = h.view("turned", h.view("seen", b)[0])[0];
  h.update("running.new", running, {b});
  auto const scale = h.fresh("scale", {w}, 8);
  auto const c = h.fresh("c", {turned, parts[2], big_noise, scale});
  auto const g = h.finish(c);
  auto const d = make_dataflow(g, make_basic(g));
  auto p = unfolded(g, d);
  auto const apply = [&](simplify_step s) {
    p = simplify(g, d, std::move(p), s);
    return told(g, p);
  };
  using enum simplify_step;
  CHECK(told(g, p) == "| wt mask noise big_noise a parts length b seen turned running.new scale c");
  CHECK(apply(sources) == "wt| mask noise big_noise a parts length b seen turned running.new scale c");
  CHECK(apply(lists) == "wt| mask noise big_noise a+parts length b seen turned running.new scale c");
  CHECK(apply(sizes) == "wt| mask noise big_noise a+parts+length b seen turned running.new scale c");
  CHECK(apply(small) == "wt+mask| noise big_noise a+parts+length b seen turned running.new scale c");
  CHECK(apply(simplify_step::random) == "wt+mask+noise| big_noise a+parts+length b seen turned running.new scale c");
  CHECK(apply(views) == "wt+mask+noise| big_noise a+parts+length b+seen+turned running.new scale c");
  CHECK(apply(updates) == "wt+mask+noise| big_noise a+parts+length b+seen+turned+running.new scale c");
  CHECK(apply(late) == "wt+mask+noise| a+parts+length b+seen+turned+running.new big_noise scale c");
  check_simplified(g, d, p);
  CHECK(simplify(g, d) == p);
  // Small is what the options say.
  CHECK(told(g, simplify(g, d, {.small_bytes = 32})) ==
        "wt| mask a+parts+length noise b+seen+turned+running.new big_noise scale c");
  // What is on the gradient's way.
  CHECK(!p.nodes[2].weighted);
  for (auto n : {0, 1, 3, 4}) CHECK(p.nodes[static_cast<std::size_t>(n)].trained);
  CHECK(to_text(g, p).find("x") != std::string::npos);
}

TEST_CASE("an update in place waits for who reads what it overwrites") {
  by_hand h;
  auto const w = h.edit.add_source_at(role::weight, by_hand::type(64), "w");
  auto const a = h.fresh("a", {w});
  auto const reader = h.fresh("reader", {a});
  auto const changed = h.update("changed", a, {w});
  auto const end = h.fresh("end", {changed, reader});
  auto const g = h.finish(end);
  auto const d = make_dataflow(g, make_basic(g));
  auto const p = simplify(g, d);
  CHECK(told(g, p) == "| a reader+changed end");
  check_simplified(g, d, p);
  CHECK(d[g.producer(changed)].is_update);
  CHECK(d[g.producer(changed)].order == std::vector<op_id>{g.producer(reader)});
  CHECK(d.owner[changed] == g.producer(a));
  CHECK(d.parent[changed] == a);
  CHECK(!d[g.producer(changed)].is_recomputable);
}
