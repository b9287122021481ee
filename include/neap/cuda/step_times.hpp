// A planned step's time as simulated and as measured on a GPU, and what its stores and loads hide behind the computation:
//
//   auto const found = optimize(step, swap{}, cost, memory_limit::of_original(0.5));
//   auto const times = measure_step(step, found.placed, device, batch);
//   std::printf("%s\n%s\n", step_report::columns, times.row().c_str());
//
// Not in the umbrella header, and for .cpp files alone: it trains, and so reaches the search.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/events.hpp>
#include <neap/cuda/executable.hpp>
#include <neap/cuda/measure.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// What a step takes, in seconds.
struct step_times {
  seconds_t step = 0;     // from its beginning to the end of all ops
  seconds_t compute = 0;  // of the ops that compute, together
  seconds_t copies = 0;   // of stores and loads, together
  seconds_t stalled = 0;  // between two computing ops, and at the end, where the plan waits for a store or a load

  /// The share of the copies behind which something is computed: 1 - stalled / copies, at least 0; 1 without copies.
  double hidden() const { return copies > 0 ? 1 - std::min(stalled, copies) / copies : 1; }
  friend bool operator==(step_times const&, step_times const&) = default;
};

/// Of spans of all steps of a plan. What was launched op by op has gaps between kernels; they count as stalled where the
/// plan waits, and nowhere else. O(steps + waits).
inline step_times times_of(placed_steps const& p, std::span<step_span const> spans) {
  step_times t;
  seconds_t now = 0;  // the end of the last op that computes
  bool waits = false;
  std::size_t w = 0;
  for (std::uint32_t i = 0; i < p.steps.size(); ++i) {
    auto const [begin, end] = spans[i];
    bool const computes = p.steps[i].stream == op_stream::compute;
    for (; w < p.waits.size() && p.waits[w].step == i; ++w) waits |= computes;
    t.step = std::max(t.step, end);
    if (!computes) t.copies += end - begin;
    if (!computes || end <= begin) continue;  // a view's wait holds for the ops after it
    if (waits) t.stalled += std::max(0.0, begin - now);
    waits = false;
    t.compute += end - begin;
    now = end;
  }
  for (; w < p.waits.size(); ++w) {
    auto const end = spans[p.waits[w].transfer].end;
    t.stalled += std::max(0.0, end - now);
    now = std::max(now, end);
  }
  return t;
}

/// By the cost model that the plan was made with.
inline step_times simulated_times(placed_steps const& p) {
  std::vector<step_span> spans;
  for (auto const& s : p.steps) spans.push_back({s.start, s.end});
  return times_of(p, spans);
}

struct step_report {
  step_times simulated;
  step_times measured;     // launched op by op, between events: the round of the median step
  seconds_t captured = 0;  // a whole step as one CUDA graph, batch and results included: the median

  /// Names of row()'s columns.
  static constexpr char const* columns =
      "simulated_ms,captured_ms,op_by_op_ms,simulated_compute_ms,compute_ms,simulated_copies_ms,copies_ms,"
      "simulated_hidden,hidden";
  /// Milliseconds, and shares of the copies' time.
  std::string row() const {
    char text[256];
    std::snprintf(text, sizeof text, "%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f", 1e3 * simulated.step,
                  1e3 * captured, 1e3 * measured.step, 1e3 * simulated.compute, 1e3 * measured.compute,
                  1e3 * simulated.copies, 1e3 * measured.copies, simulated.hidden(), measured.hidden());
    return text;
  }
};

/// Runs the step `rounds` times as one graph and as often op by op, each after one run that does not count. It trains the
/// step's model: give it one for that. Throws neap::error as a trainer does.
template <class Sample>
step_report measure_step(training_program const& step, plan const& p, cuda_backend& device, Sample const& batch,
                         int rounds = 7) {
  if (rounds < 1) throw_error({"measure_step: at least 1 round is needed, got ", rounds});
  step_report r;
  r.simulated = simulated_times(p);
  {
    trainer<cuda_backend> run(step, p, device);
    auto const begin = detail::make_cuda_event(true), end = detail::make_cuda_event(true);
    std::vector<seconds_t> all;
    for (int round = 0; round <= rounds; ++round) {
      check_cuda(cudaEventRecord(begin.get(), device.stream()), "a measurement");
      run(batch);
      check_cuda(cudaEventRecord(end.get(), device.stream()), "a measurement");
      check_cuda(cudaStreamSynchronize(device.stream()), "a measurement");
      if (round > 0) all.push_back(detail::seconds_between(begin, end));
    }
    r.captured = detail::median(all);
  }
  std::vector<step_span> spans;
  trainer<cuda_backend> run(step, p, device, {.step_spans = &spans});
  std::vector<step_times> all;
  for (int round = 0; round <= rounds; ++round) {
    run(batch);
    if (round > 0) all.push_back(times_of(p, spans));
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.step < b.step; });
  r.measured = all[all.size() / 2];
  return r;
}

}}  // namespace neap::v0
