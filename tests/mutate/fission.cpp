#include <neap/mutate/fission.hpp>

#include <neap/ir/text.hpp>
#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/plain_run.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

candidate<graph> judged(graph g, schedule s) {
  auto r = simulate(g, s, roofline::host(2));
  return {std::move(g), std::move(s), std::move(r)};
}

/// The largest difference of elements, beside the largest element.
double difference(block const& a, block const& b, dtype t) {
  double most = 0, large = 1e-30;
  auto const n = static_cast<std::size_t>(a.bytes() / size_of(t));
  for (std::size_t i = 0; i < n; ++i) {
    double x = 0, y = 0;
    if (t == dtype::f32)
      x = static_cast<double>(reinterpret_cast<float const*>(a.data())[i]),
      y = static_cast<double>(reinterpret_cast<float const*>(b.data())[i]);
    else if (t == dtype::f64)
      x = reinterpret_cast<double const*>(a.data())[i], y = reinterpret_cast<double const*>(b.data())[i];
    else if (t == dtype::i64)
      x = static_cast<double>(reinterpret_cast<std::int64_t const*>(a.data())[i]),
      y = static_cast<double>(reinterpret_cast<std::int64_t const*>(b.data())[i]);
    if (std::isnan(x) != std::isnan(y)) return 1e9;
    if (std::isnan(x)) continue;
    most = std::max(most, std::abs(x - y));
    large = std::max(large, std::abs(x));
  }
  return most / large;
}

}  // namespace

namespace {

/// The same graph of ops whose meaning is not known: types, aliasing, work and dimension relations are all that is left.
graph opaque_twin(graph const& g) {
  graph_editor edit(g.facet_table());
  table<value_id, value_id> to(g.value_count(), nothing<value_id>);
  for (auto v : g.sources()) to[v] = edit.add_source_at(g.role(v), g.layout(v), g.name(v), g.bytes(g.storage(v)));
  for (auto o : g.ops()) {
    std::vector<value_id> in;
    std::vector<tensor_layout> layouts;
    for (auto v : g.inputs(o)) in.push_back(to[v]), layouts.push_back(g.layout(v));
    std::vector<output_rule> rules;
    for (auto v : g.outputs(o)) {
      rules.push_back({g.layout(v), g.record(v).alias, g.record(v).of, g.bytes(g.storage(v))});
      layouts.push_back(g.layout(v));
    }
    std::span<tensor_layout const> const all(layouts);
    dim_context c(all.first(in.size()), all.subspan(in.size()));
    g.relate(o, c);
    auto const w = flow::cost(g, o);
    op::opaque what;
    what.flops = w.flops, what.read = w.read, what.written = w.written;
    what.seconds = flow::is_view(g, o) ? 0 : 1e-6 + w.flops * 1e-9;
    std::string details;
    for (auto const& a : g.facets(o).attributes)
      neap::detail::print_attribute(details, a.get(g.attributes(o))), details += ';';
    auto const id = edit.add_opaque(g.facets(o).name, what, in, rules, g.name(o), details, c.links());
    for (std::size_t j = 0; j < rules.size(); ++j) to[g.outputs(o)[j]] = edit.output(id, static_cast<int>(j));
  }
  for (auto v : g.kept()) edit.keep(to[v], g.role(v));
  return graph(std::move(edit).finish());
}

/// A random stretch, axis and number of parts; nothing where they do not go together.
std::optional<fission_of> random_fission(candidate<graph> const& c, random_stream& draw) {
  auto const& g = c.graph;
  auto const n = static_cast<std::uint32_t>(c.order.size());
  fission_of f;
  f.first = draw.below(n), f.last = f.first + draw.below(n - f.first);
  auto const v = id_at<value_id>(draw.below(static_cast<std::uint32_t>(g.value_count())));
  if (g.type(v).rank() == 0) return std::nullopt;
  f.along = {v, static_cast<std::int32_t>(draw.below(static_cast<std::uint32_t>(g.type(v).rank())))};
  f.parts = 2 + draw.below(3);
  if (g.type(v).dims[f.along.axis] % f.parts != 0) return std::nullopt;
  return f;
}

void set_step(graph const& g, std::vector<block> const& sources) {  // the first one has number 1
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (g.type(g.sources()[k]) == tensor_type{dtype::i64, {}}) *reinterpret_cast<std::int64_t*>(sources[k].data()) = 3;
}

bool same_result(graph const& g, plain_result const& a, plain_result const& b, double tolerance) {
  if (a.kept.size() != b.kept.size()) return false;
  for (std::size_t k = 0; k < a.kept.size(); ++k)
    if (!(difference(a.kept[k], b.kept[k], g.type(g.kept()[k]).element) < tolerance)) return false;
  for (std::size_t k = 0; k < a.sources.size(); ++k)
    if (!(difference(a.sources[k], b.sources[k], g.type(g.sources()[k]).element) < tolerance)) return false;
  return true;
}

}  // namespace

TEST_CASE("random stretches of random training steps run in parts and give the same") {
  host_backend backend;
  std::size_t built = 0, refused = 0, inside = 0, partial = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto const g = random_model(seed, 14);
    auto const c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    dimension_graph const dims(g);
    random_stream draw(seed, 9);
    for (int tries = 0; tries < 6; ++tries) {
      auto const drawn = random_fission(c, draw);
      if (!drawn) continue;
      auto const& f = *drawn;
      CAPTURE(seed);
      CAPTURE(f.describe(c));
      auto e = f.apply(c);
      if (!e) {
        ++refused;
        continue;
      }
      ++built;
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const ordered = check_order(e->graph, e->order);
      REQUIRE_MESSAGE(ordered.ok(), ordered.message());
      for (auto o : e->graph.ops()) {
        inside += e->graph.record(o).part != nothing<part_id>;
        partial += e->graph.as<op::combine_into>(o) != nullptr;
      }
      auto const p = make_plan(judged(e->graph, e->order), g);
      auto const verdict = verify_plan(g, p);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      auto const got = run_plainly(e->graph, e->order, sources, backend);
      REQUIRE(same_result(g, expected, got, 2e-4));
    }
  }
  CHECK(inside > 4000);
  CHECK(refused > 100);
  CHECK(built > 400);
  CHECK(partial > 300);
}

TEST_CASE("ops whose meaning is not known run in parts where their file says how they may be cut") {
  std::size_t built = 0, parts = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    auto const g = opaque_twin(random_model(seed, 14));
    auto const c = judged(g, given_order{}(g));
    random_stream draw(seed, 10);
    for (int tries = 0; tries < 8; ++tries) {
      auto const f = random_fission(c, draw);
      if (!f) continue;
      CAPTURE(seed);
      CAPTURE(f->describe(c));
      auto e = f->apply(c);
      if (!e) continue;
      ++built;
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const ordered = check_order(e->graph, e->order);
      REQUIRE_MESSAGE(ordered.ok(), ordered.message());
      given_or<roofline> const cost{roofline::host(2)};
      auto const result = simulate(e->graph, e->order, cost);
      auto const p = make_plan(candidate<graph>{e->graph, e->order, result}, g);
      stated_durations const stated({std::nullopt, true, roofline::host(2)});
      auto const verdict = verify_plan(g, p, stated);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      for (auto o : e->graph.ops()) {
        if (e->graph.record(o).part == nothing<part_id>) continue;
        ++parts;
        auto const* x = e->graph.as<op::opaque>(o);
        REQUIRE(x);                                                 // all of them were
        if (x->seconds > 0) CHECK(cost(e->graph, o) < x->seconds);  // a part is quicker than the whole
      }
    }
  }
  CHECK(built > 200);
  CHECK(parts > 2000);
}

TEST_CASE("a graph that fission has changed by mistake is refused, or gives the same all the same") {
  host_backend backend;
  std::size_t refused = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    auto const g = random_model(seed, 10);
    auto const c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    random_stream draw(seed, 11);
    std::optional<edited<graph>> e;
    for (int tries = 0; tries < 20 && !e; ++tries)
      if (auto const f = random_fission(c, draw)) e = f->apply(c);
    if (!e) continue;
    auto const text = to_text(e->graph);
    std::vector<std::size_t> lines;  // of ops that are parts, or join them
    for (std::size_t at = text.find("\nop "); at != text.npos; at = text.find("\nop ", at + 1)) {
      auto const line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      for (char const* word : {" part ", " slice ", " place ", " combine_into ", " mul_scalar ", " blank "})
        if (line.find(word) != line.npos) {
          lines.push_back(at + 1);
          break;
        }
    }
    for (int tries = 0; tries < 12 && !lines.empty(); ++tries) {
      auto const from = lines[draw.below(static_cast<std::uint32_t>(lines.size()))];
      auto const end = text.find('\n', from);
      // Another number in the line: of an attribute, an argument, a part. (The op's own id would not be read.)
      std::vector<std::size_t> digits;
      for (auto at = text.find(' ', from + 3); at < end; ++at)
        if (text[at] >= '0' && text[at] <= '9' && !(text[at - 1] >= '0' && text[at - 1] <= '9')) digits.push_back(at);
      if (digits.empty()) continue;
      auto const at = digits[draw.below(static_cast<std::uint32_t>(digits.size()))];
      auto stop = at;
      while (text[stop] >= '0' && text[stop] <= '9') ++stop;
      auto const number = std::stoll(text.substr(at, stop - at));
      auto const other = draw.below(2)                 ? number + 1
                         : draw.below(2) && number > 0 ? number - 1
                                                       : std::int64_t{draw.below(40)};
      auto changed = text;
      changed.replace(at, stop - at, std::to_string(other));
      if (changed == text) continue;
      auto const parsed = parse_graph(standard_operators::facets, changed);
      if (!parsed) continue;  // no graph at all
      graph const wrong{op_graph(*parsed)};
      if (wrong.digest() == e->graph.digest()) continue;  // a name or a shape that says the same
      auto const order = check_order(wrong, e->order).ok() ? e->order : given_order{}(wrong);
      if (!check_order(wrong, order).ok()) continue;
      auto const verdict = verify_plan(g, make_plan(judged(wrong, order), g));
      CAPTURE(seed);
      CAPTURE(text.substr(from, end - from));
      CAPTURE(other);
      if (!verdict.ok()) {
        ++refused;
        continue;
      }
      ++accepted;
      REQUIRE(same_result(g, expected, run_plainly(wrong, order, sources, backend), 2e-4));
    }
  }
  MESSAGE(refused << " refused, " << accepted << " accepted");
  CHECK(refused > 100);
}

TEST_CASE("what every part makes alike is read by ops of the same part, and by others from the first") {
  graph_editor edit(standard_operators::facets);
  tensor_type const rows{dtype::f32, {8, 4}}, state{dtype::i64, {2}};
  auto const x = edit.add_source(role::input, rows);
  auto const link = [](int input, int output, combine how = combine::concat) {
    return dim_link{static_cast<std::int16_t>(input), 0, static_cast<std::int16_t>(output), 0, how};
  };
  op::opaque work;
  work.flops = 64, work.read = 128, work.written = 128, work.seconds = 1e-6;
  std::array const made{output_rule{tensor_layout::dense(rows)}, output_rule{tensor_layout::dense(state)}};
  std::array const both{link(0, 0), link(0, -1, combine::same)};
  auto const a = edit.add_opaque("draw", work, {&x, 1}, made, {}, {}, both);
  std::array const in{edit.output(a, 0), edit.output(a, 1)};
  std::array const first{link(0, 0)};
  auto const b = edit.add_opaque("draw_again", work, in, {&made[0], 1}, {}, {}, first);
  edit.keep(edit.output(b), role::output);
  SUBCASE("read inside alone") {}
  SUBCASE("kept too") { edit.keep(edit.output(a, 1), role::output); }
  graph const g(std::move(edit).finish());
  auto const c = judged(g, given_order{}(g));
  auto const e = fission_of{{x, 0}, 0, 1, 4}.apply(c);
  REQUIRE(e);
  std::size_t parts = 0;
  for (auto o : e->graph.ops()) {
    parts += e->graph.record(o).part != nothing<part_id>;
    CHECK_FALSE(e->graph.as<op::combine_into>(o));
  }
  CHECK(parts == 8);  // both ops: the second waits for nothing
  auto const valid = verify(e->graph);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  given_or<roofline> const cost{roofline::host(2)};
  auto const p = make_plan(candidate<graph>{e->graph, e->order, simulate(e->graph, e->order, cost)}, g);
  auto const verdict = verify_plan(g, p, stated_durations({std::nullopt, true, roofline::host(2)}));
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}
