#include <neap/mutate/fission_sweep.hpp>

#include <neap/mutate/truncate.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/opaque_twin.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr memory_options exact{.alignment = 1, .takeover = false};

candidate judged(graph g, schedule s) {
  auto r = simulate(g, s, given_latencies{}, exact);
  return {std::move(g), std::move(s), std::move(r)};
}

}  // namespace

TEST_CASE("estimates are near to what is built") {
  // Opaque ops: no workspace, no copies for layouts.
  std::size_t built = 0, near = 0, all = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(80u); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    auto const c = judged(g, given_order{}(g));
    bytes_t before = c.result.peak_bytes;
    for (auto const& f : neap::detail::fission_sweep(c.graph, c.order, c.result, {}).front()) {
      CHECK(f.peak < before);  // falling peak, rising latency
      before = f.peak;
      ++all;
      auto const e = f.what.apply(c);
      if (!e) continue;
      ++built;
      auto const real = simulate(e->graph, e->order, given_latencies{}, exact);
      auto const beside = static_cast<double>(f.peak - real.resident_bytes);
      near += std::abs(static_cast<double>(real.peak_bytes - f.peak)) <= 0.15 * beside;
    }
  }
  MESSAGE(all << " estimated, " << built << " built, " << near << " near");
  CHECK(built > testing::cases(100));
  CHECK(built * 10 > 9 * all);
  CHECK(near * 10 > 8 * built);
}

TEST_CASE("a donated input that only ops in parts read is there once") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {64, 64}}, "x");
  auto const w = edit.add_source(role::donated, {dtype::f32, {64, 64}}, "w");
  auto y = edit.add(op::matmul{}, {x, w})[0];
  for (int i = 0; i < 3; ++i) y = edit.add(op::tanh{}, {y})[0];
  edit.keep(edit.add(op::sum{{0}}, {y})[0], role::output);
  auto const g = graph(std::move(edit).finish());
  auto const c = judged(g, given_order{}(g));
  auto const found = neap::detail::fission_sweep(c.graph, c.order, c.result, {}).front();
  REQUIRE(!found.empty());
  auto const& f = found[found.size() - 1];
  auto const e = f.what.apply(c);
  REQUIRE(e);
  CHECK(std::abs(static_cast<double>(simulate(e->graph, e->order, given_latencies{}, exact).peak_bytes - f.peak)) <
        0.15 * static_cast<double>(f.peak));
}

TEST_CASE("estimates are near to what is built of parts") {
  std::size_t built = 0, near = 0, all = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    random_stream draw(seed, 5);
    auto const once = any_fission(judged(g, given_order{}(g)), draw);
    if (!once) continue;
    auto const c = judged(once->graph, once->order);
    neap::detail::fission_sweep sweep(c.graph, c.order, c.result, {.again = true});
    for (auto const& f : sweep.at_the_peak(0, 1e9, 40)) {
      auto const e = f.what.apply(c);
      ++all;
      if (!e || !cut_again(e->graph)) continue;
      ++built;
      auto const real = simulate(e->graph, e->order, given_latencies{}, exact);
      auto const beside = static_cast<double>(f.peak - real.resident_bytes);
      near += std::abs(static_cast<double>(real.peak_bytes - f.peak)) <= 0.15 * beside;
    }
  }
  MESSAGE(all << " estimated, " << built << " built, " << near << " near");
  CHECK(built > testing::cases(100));
  CHECK(near * 10 > 7 * built);
}

TEST_CASE("near a fission there are others, its own among them") {
  std::size_t same = 0, others = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(30u); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    auto const c = judged(g, given_order{}(g));
    neap::detail::fission_sweep sweep(c.graph, c.order, c.result, {});
    auto const front = sweep.front();
    if (front.empty()) continue;
    auto const& f = front.back();
    for (auto const& x : sweep.front_near(f.what, 3)) {
      same += x.what == f.what;
      others += x.what != f.what;
      CHECK(x.what.first + 3 >= f.what.first);
      CHECK(x.what.first <= f.what.first + 3);
      CHECK(x.what.last + 3 >= f.what.last);
      CHECK(x.what.last <= f.what.last + 3);
    }
  }
  CHECK(same + others > testing::cases(10));
}

TEST_CASE("stretches at the peak come down as far as is said, the best buy first, within a latency") {
  std::size_t met = 0, missed = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    CAPTURE(seed);
    auto const g = opaque_twin(random_model(seed, 16));
    auto const c = judged(g, given_order{}(g));
    auto const target = c.result.resident_bytes + (c.result.peak_bytes - c.result.resident_bytes) * 4 / 5;
    auto const latency = 1.2 * c.result.latency;
    neap::detail::fission_sweep sweep(c.graph, c.order, c.result, {});
    auto const found = sweep.at_the_peak(target, latency, 3);
    CHECK(found.size() <= 3);
    bool was_above = false;
    for (auto const& f : found) {
      CHECK(f.what.first <= c.result.peak_position);
      CHECK(c.result.peak_position <= f.what.last);
      CHECK(f.inside < c.result.peak_bytes);
      CHECK(f.latency <= latency);
      CHECK_FALSE((was_above && f.inside <= target));  // those that come down come first
      was_above |= f.inside > target;
      auto const e = f.what.apply(c);
      if (!e) continue;
      auto const real = simulate(e->graph, e->order, given_latencies{}, exact);
      // What runs before the stretch is as it was: the same bytes at the same positions.
      for (std::uint32_t p = 0; p < f.what.first; ++p) CHECK(real.bytes_at[p] == c.result.bytes_at[p]);
      bytes_t inside = 0;
      auto const behind = c.order.size() - 1 - f.what.last;
      for (auto p = std::size_t{f.what.first}; p + behind < e->order.size(); ++p)
        inside = std::max(inside, real.bytes_at[p]);
      (f.inside <= target ? met : missed) += 1;
      wrong +=
          std::abs(static_cast<double>(inside - f.inside)) > 0.15 * static_cast<double>(f.inside - real.resident_bytes);
    }
  }
  MESSAGE(met << " met the target, " << missed << " did not, " << wrong << " estimated wrong");
  CHECK(met > testing::cases(20));
  CHECK((testing::sanitized || missed > 5));
  CHECK(wrong * 5 < met + missed);
}

TEST_CASE("a batch that is joined with its tokens is no limit to parts where tokens alone are cut") {
  // [4, 64, 8] -> [256, 8]: the batch has four elements, what comes behind it in one axis has 256.
  graph_editor edit{standard_operators::facets};
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 64, 8}});
  auto const w = edit.add_source(role::input, {dtype::f32, {8, 4096}});
  auto const rows = edit.add(op::reshape{{256, 8}}, {x})[0];
  auto const wide = edit.add(op::matmul{}, {rows, w})[0];
  auto const bent = edit.add(op::gelu{}, {wide})[0];
  edit.keep(edit.add(op::sum{{1}}, {bent})[0], role::output);
  graph const g(std::move(edit).finish());
  auto const order = given_order{}(g);
  candidate const c{g, order, simulate(g, order, roofline::host(1), exact)};
  dimension_graph const dims(g);
  CHECK(dims.extent(dims.component(x, 0)) == 4);
  std::int64_t most = 0;
  for (auto const& f : neap::detail::fission_sweep(c.graph, c.order, c.result, {}).front()) {
    CHECK(256 % f.what.parts == 0);
    CHECK(g.type(f.what.along.value).dims[f.what.along.axis] % f.what.parts == 0);
    if (f.what.apply(c)) most = std::max(most, f.what.parts);
  }
  CHECK(most == 256);
}

TEST_CASE(
    "the mutator yields fissions that lower the peak, the best buy first, and parts once more where it is told to") {
  std::size_t n = 0, more = 0, of_parts = 0;
  for (std::uint64_t seed = 0; seed < (testing::sanitized ? 2 : 8); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    auto const c = judged(g, given_order{}(g));
    auto stream = (fission{} | truncate(6))(c);
    std::size_t mine = 0;
    while (auto const m = stream.next()) {
      ++mine;
      CHECK(m->parts > 1);
      auto const e = m->apply(c);
      if (!e) continue;
      auto const once = judged(e->graph, e->order);
      auto plain = fission{}(once);
      for (auto f = plain.next(); f; f = plain.next())
        if (auto const twice = f->apply(once)) CHECK_FALSE(cut_again(twice->graph));
      auto again = fission{{.again = true}}(once);
      for (auto f = again.next(); f; f = again.next()) {
        auto const twice = f->apply(once);
        if (!twice) continue;
        ++more;
        std::size_t were = 0, are = 0;
        for (auto o : once.graph.ops()) were += once.graph.record(o).part != nothing<part_id>;
        for (auto o : twice->graph.ops()) {
          auto const p = twice->graph.record(o).part;
          are += p != nothing<part_id>;
          if (p == nothing<part_id>) continue;
          auto const of = twice->graph.part(p).of;
          if (of == nothing<part_id>) continue;
          ++of_parts;
          CHECK(twice->graph.part(of).of == nothing<part_id>);
          CHECK(twice->graph.part(of).count != twice->graph.part(p).count);
        }
        CHECK(are > were);
      }
    }
    n += mine;
    CHECK(mine <= 6);
  }
  CHECK(n > (testing::sanitized ? 2 : 8));
  CHECK(more > 0);
  CHECK(of_parts > (testing::sanitized ? 10 : 100));
  CHECK(allowed_by(fission{} | truncate(6)).cut);
  CHECK_FALSE(allowed_by(fission{} | truncate(6)).recompute);
}
