// Times of a planned step, simulated and measured: what the copies hide behind.
#include <neap/cuda/step_times.hpp>

#include <neap/execute/plan_like.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>

#include <neap/cuda.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"
#include "../support/small_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr auto to_host = op_stream::to_host, to_device = op_stream::to_device, compute = op_stream::compute;

placed_steps steps_on(std::vector<op_stream> const& streams, std::vector<transfer_wait> const& waits) {
  placed_steps p;
  for (auto s : streams) p.steps.push_back({.stream = s});
  p.waits = waits;
  return p;
}
template <class Step>
auto swapped(Step const& step, roofline const& figures, double ratio) {
  search_options few;
  few.iterations = 80;
  return optimize(step, neap::swap{}, few, figures, memory_limit::of_original(ratio)).placed;
}
/// A device whose link takes about as long as the computation.
roofline balanced() {
  auto r = roofline::h100();
  r.to_host_bytes_per_second = r.to_device_bytes_per_second = 1e9, r.link_latency = 1e-7;
  return r;
}

}  // namespace

TEST_CASE("stalls are where the plan waits, and nowhere else") {
  // compute 0..2, store 2..5, compute 3..4 (a gap), a view that waits, compute 6..7, load 7..9, waited for at the end
  auto const p = steps_on({compute, to_host, compute, compute, compute, to_device}, {{3, 1}, {6, 5}});
  std::vector<step_span> const spans{{0, 2}, {2, 5}, {3, 4}, {0, 0}, {6, 7}, {7, 9}};
  auto const t = times_of(p, spans);
  CHECK(t.step == 9);
  CHECK(t.compute == 4);
  CHECK(t.copies == 5);
  CHECK(t.stalled == 2 + 2);  // before the last computation, and for the load
  CHECK(t.hidden() == doctest::Approx(0.2));
  CHECK(times_of(p, std::vector<step_span>{{0, 2}, {2, 3}, {3, 4}, {0, 0}, {4, 7}, {7, 7}}).hidden() == 1);
  CHECK(step_times{.copies = 1, .stalled = 5}.hidden() == 0);
  CHECK(step_times{}.hidden() == 1);
  // A transfer's own waits hold nothing up.
  CHECK(times_of(steps_on({compute, to_host, to_device, compute}, {{2, 1}}),
                 std::vector<step_span>{{0, 1}, {1, 2}, {2, 3}, {5, 6}})
            .stalled == 0);
}

TEST_CASE("a simulated step is its computation and its stalls, whatever is swapped") {
  int with_copies = 0, with_stalls = 0;
  for (double const rate : {1e6, 1e8, 1e9, 1e11})
    for (double const ratio : {1.0, 0.8, 0.6, 0.4}) {
      CAPTURE(rate);
      CAPTURE(ratio);
      small_network m;
      auto const step = training_step(m, small_batch(8, 0), cross_entropy{}, adamw{});
      auto figures = balanced();
      figures.to_host_bytes_per_second = figures.to_device_bytes_per_second = rate;
      auto const p = swapped(step, figures, ratio);
      auto const t = simulated_times(p);
      CHECK(t.step == doctest::Approx(p.latency));
      CHECK(t.step == doctest::Approx(t.compute + t.stalled));
      CHECK(t.hidden() >= 0);
      CHECK(t.hidden() <= 1);
      with_copies += t.copies > 0, with_stalls += t.stalled > 0;
    }
  CHECK(with_copies > 3);
  CHECK(with_stalls > 1);
}

TEST_CASE("a step on a device is measured captured and op by op, beside its simulation") {
  simulated_device::reset(4);
  cuda_backend device;
  small_network m;
  auto const step = training_step(m, small_batch(8, 0), cross_entropy{}, adamw{});
  auto const p = swapped(step, balanced(), 0.6);
  auto const r = measure_step(step, p, device, small_batch(8, 1), 3);
  CHECK(r.simulated == simulated_times(p));
  CHECK(r.simulated.copies > 0);
  CHECK(r.measured.copies > 0);
  CHECK(r.measured.compute > 0);
  CHECK(r.measured.step >= r.measured.compute);
  CHECK(r.measured.step <= r.measured.compute + r.measured.stalled + r.measured.copies + 1e-4);
  CHECK(r.captured > r.measured.compute);  // the same work, and the batch
  std::string const columns = step_report::columns, row = r.row();
  CHECK(std::count(columns.begin(), columns.end(), ',') == std::count(row.begin(), row.end(), ','));
  CHECK(message_of([&] { measure_step(step, p, device, small_batch(8, 1), 0); }) ==
        "measure_step: at least 1 round is needed, got 0");
  CHECK(simulated_device::faults() + simulated_device::races() == "");
}

TEST_CASE("spans agree with the seconds of steps, and order what the plan orders") {
  simulated_device::reset(5);
  cuda_backend device;
  small_network m;
  auto const step = training_step(m, small_batch(8, 0), cross_entropy{}, adamw{});
  auto const p = swapped(step, balanced(), 0.6);
  std::vector<step_span> spans;
  std::vector<seconds_t> seconds;
  trainer run(step, p, device, {.step_seconds = &seconds, .step_spans = &spans});
  run(small_batch(8, 1));
  REQUIRE(spans.size() == p.steps.size());
  double last[3]{};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i] == step_span{}) continue;
    CHECK(spans[i].end - spans[i].begin == doctest::Approx(seconds[i]));
    auto& before = last[static_cast<std::size_t>(p.steps[i].stream)];
    CHECK(spans[i].begin >= before - 1e-9);
    before = spans[i].end;
  }
  for (auto const& w : p.waits)
    if (w.step < spans.size() && !(spans[w.step] == step_span{}))
      CHECK(spans[w.step].begin >= spans[w.transfer].end - 1e-9);
  CHECK(!run.program().is_captured());
  host_backend host(1);
  CHECK(message_of([&] {
          trainer(step, plan_in_order(step.program), host, {.step_spans = &spans});
        }).find("step_spans are measured on a GPU alone") != std::string::npos);
  CHECK(simulated_device::faults() + simulated_device::races() == "");
}
