#include <neap/mutate/fission_sweep.hpp>

#include <neap/mutate/truncate.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/opaque_twin.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr memory_options exact{.alignment = 1, .takeover = false};

candidate<graph> judged(graph g, schedule s) {
  auto r = simulate(g, s, given_latencies{}, exact);
  return {std::move(g), std::move(s), std::move(r)};
}

}  // namespace

TEST_CASE("estimates are near to what is built") {
  // Opaque ops: no workspace, no copies for layouts.
  std::size_t built = 0, near = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
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
  CHECK(built > 100);
  CHECK(built * 10 > 9 * all);
  CHECK(near * 10 > 8 * built);
}

TEST_CASE("near a fission there are others, its own among them") {
  std::size_t same = 0, others = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
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
  CHECK(same + others > 10);
}

TEST_CASE("the mutator yields fissions that lower the peak, the best buy first, and leaves parts alone") {
  auto const g = opaque_twin(random_model(4, 16));
  auto const c = judged(g, given_order{}(g));
  auto stream = (fission{} | truncate(6))(c);
  std::size_t n = 0;
  while (auto const m = stream.next()) {
    ++n;
    CHECK(m->parts > 1);
    auto const e = m->apply(c);
    if (!e) continue;
    auto const again = judged(e->graph, e->order);
    auto in_parts = fission{}(again);
    CHECK_FALSE(in_parts.next());
  }
  CHECK(n > 0);
  CHECK(n <= 6);
  CHECK(allowed_by(fission{} | truncate(6)).cut);
  CHECK_FALSE(allowed_by(fission{} | truncate(6)).recompute);
}
