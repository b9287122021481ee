#include <neap/simulate/cost_table.hpp>

#include <neap/simulate/simulator.hpp>

#include "../support/message.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

using namespace neap;
using testing::toy::matmul;
using testing::toy::transpose;

namespace {
struct not_a_model {
  void operator()(op_graph const&, op_id) const {}
};
static_assert(cost_model_for<no_cost, op_graph> && cost_model_for<given_latencies, op_graph>);
static_assert(cost_model_for<roofline, testing::toy_graph> && cost_model_for<given_or<roofline>, op_graph>);
static_assert(cost_model_for<measured_or<given_or<roofline>>, op_graph>);
static_assert(!cost_model_for<not_a_model, op_graph>);
static_assert(!cost_model_for<cost_table, op_graph>);

struct sample {
  op_graph g;
  op_id product, view, opaque_given, opaque_free, out, in;
};
sample make(dtype t = dtype::f32) {
  graph_editor edit(testing::toy_operators::facets);
  sample s;
  auto const x = edit.add_source(role::input, {t, {64, 32}});
  auto const w = edit.add_source(role::weight, {t, {32, 16}});
  auto const y = edit.add(matmul{}, {x, w})[0];
  auto const z = edit.add(transpose{}, {y})[0];
  auto const stored = edit.add(op::store{}, {y})[0];
  auto const loaded = edit.add(op::load{}, {stored})[0];
  output_rule const like{tensor_layout::dense({t, {64, 32}})};
  op::opaque given, free;
  given.seconds = 0.125;
  free.flops = 1e9;
  s.opaque_given = edit.add_opaque("lib::given", given, std::span(&x, 1), std::span(&like, 1));
  s.opaque_free = edit.add_opaque("lib::reshape", free, std::span(&x, 1), std::span(&like, 1));
  edit.keep(z, role::output), edit.keep(loaded, role::output);
  s.g = std::move(edit).finish();
  s.product = s.g.producer(y), s.view = s.g.producer(z), s.out = s.g.producer(stored), s.in = s.g.producer(loaded);
  return s;
}
}  // namespace

TEST_CASE("roofline: the larger of work and traffic, a launch, saturation, links, what is free") {
  roofline r;
  r.set_rate(dtype::f32, 1e9);
  r.set_rate(dtype::f16, 4e9);
  r.bytes_per_second = 1e15;
  r.launch = 1e-6;
  r.to_host_bytes_per_second = 1e6, r.to_device_bytes_per_second = 2e6, r.link_latency = 1e-3;
  r.free_ops = {"lib::reshape"};
  auto const s = make();
  double const flops = 2.0 * 64 * 32 * 16;
  CHECK(r(s.g, s.product) == doctest::Approx(1e-6 + flops / 1e9));
  CHECK(r(make(dtype::f16).g, s.product) == doctest::Approx(1e-6 + flops / 4e9));
  CHECK(r(s.g, s.view) == 0);
  CHECK(r(s.g, s.opaque_free) == 0);
  CHECK(r(s.g, s.out) == doctest::Approx(1e-3 + 64 * 16 * 4 / 1e6));
  CHECK(r(s.g, s.in) == doctest::Approx(1e-3 + 64 * 16 * 4 / 2e6));
  r.half_flops = flops;  // at this size, half of the rate
  CHECK(r(s.g, s.product) == doctest::Approx(1e-6 + 2 * flops / 1e9));
  r.bytes_per_second = 1e3;
  CHECK(r(s.g, s.product) == doctest::Approx(1e-6 + 4.0 * (64 * 32 + 32 * 16 + 64 * 16) / 1e3));
}

TEST_CASE("given latencies, and another model where there are none") {
  auto const s = make();
  CHECK(given_latencies{}(s.g, s.opaque_given) == 0.125);
  CHECK(given_latencies{}(s.g, s.product) == 0);
  given_or const model{roofline::h100_like()};
  CHECK(model(s.g, s.opaque_given) == 0.125);
  CHECK(model(s.g, s.product) == roofline::h100_like()(s.g, s.product));
  CHECK(roofline::host(2)(s.g, s.product) < roofline::host(1)(s.g, s.product));
  CHECK(neap::testing::message_of([] { roofline::host(0); }).find("at least one thread, got 0") != std::string::npos);
}

TEST_CASE("measured costs are found by what an op is, in any graph, and come back from a file") {
  cost_table t;
  auto const s = make();
  t.set(s.g, s.product, 0.25);
  t.set(s.g, s.out, 1.0 / 3.0);
  t.set(s.g, s.product, 0.5);
  CHECK(t.size() == 2);
  measured_or const model{t, no_cost{}};
  CHECK(model(make().g, s.product) == 0.5);
  CHECK(model(make(dtype::f16).g, s.product) == 0);  // other types, another cost
  CHECK(model(s.g, s.view) == 0);

  auto const again = cost_table::from_text(t.to_text());
  REQUIRE(again.ok());
  CHECK(again.value() == t);
  auto const path = (std::filesystem::temp_directory_path() / "neap-cost-table-test.txt").string();
  REQUIRE(t.save(path).ok());
  auto const loaded = cost_table::load(path);
  std::remove(path.c_str());
  REQUIRE(loaded.ok());
  CHECK(loaded.value() == t);
  CHECK(!cost_table::load(path).ok());
  CHECK(!t.save("/nowhere/at/all").ok());

  CHECK(cost_table::from_text("").message() == "cost table: empty");
  CHECK(cost_table::from_text("costs\n").message().find("line 1") != std::string::npos);
  std::string const key(32, '0');
  std::string const other(32, 'g');
  for (std::string const& bad : std::vector<std::string>{"xyz", "0000 1 a", "-", key + " nan a", key + " -1 a",
                                                         key + " 1", key + " 1 a\n" + key + " 1 a", other + " 1 a"})
    CHECK(cost_table::from_text("neap-costs 1\n" + bad).message().find("line ") != std::string::npos);
}

TEST_CASE("keys of ops that draw random numbers do not depend on the draw") {
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 4}});
  auto const a = edit.add(testing::toy::drop{1}, {x})[0];
  auto const b = edit.add(testing::toy::drop{2}, {x})[0];
  auto const c = edit.add(testing::toy::drop{2, 0.75}, {x})[0];
  auto const g = std::move(edit).finish();
  CHECK(cost_key(g, g.producer(a)) == cost_key(g, g.producer(b)));
  CHECK(cost_key(g, g.producer(a)) != cost_key(g, g.producer(c)));
}
