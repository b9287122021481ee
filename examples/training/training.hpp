// What the training programs share. A plan within a limit of memory is made of costs that are measured on the backend, and
// verified. The training under that plan runs in turn with the same training without a plan: the same losses and weights to
// the last bit, in less memory.
#pragma once

#include <neap/execute/measured.hpp>
#include <neap/neap.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace training {

struct options {
  std::string name;  // of the program, for files and pictures
  std::string backend = "host", memory_limit = "0.5", out = ".", spill = "/tmp", costs;
  std::optional<neap::mixed> precision;  // none: f32
  int steps = 40, compare = 12, threads = 0, search_seconds = 8;
  std::int64_t batch = 8;
  double rate = 1e-3;
};

/// The options that all programs have, for --help.
extern char const* const help;

/// A whole number in [least, most]. Throws neap::error, in one line, as all of these functions do.
long number(std::string const& option, std::string const& value, long least, long most);

/// Takes the option if it is one of those that all programs have; whether it is.
bool read(options& o, std::string const& option, std::string const& value);

/// What a program has measured.
struct outcome {
  std::vector<double> losses;                    // of the training under the plan
  bool equal = false;                            // losses and weights, with a plan and without
  neap::seconds_t step = 0, unplanned_step = 0;  // medians
  neap::bytes_t peak = 0, unplanned_peak = 0;    // that the steps have used, with weights and states
  neap::bytes_t planned_peak = 0, arena = 0;     // as the plan has them
};

/// The cost of an op by any model.
struct any_cost {
  std::function<neap::seconds_t(neap::graph const&, neap::op_id)> of;
  neap::seconds_t operator()(neap::graph const& g, neap::op_id o) const { return of(g, o); }
};

/// A link to where tensors are swapped.
struct swap_link {
  double bytes_per_second;
  bool takes_compute_time;  // a copy takes time from the computation, so recomputation is tried first
};

/// A step with its plan, and in the program's own order, every result in memory of its own.
struct planned_step {
  neap::optimized found;
  neap::schedule order;  // without a plan
  neap::simulation plain;
  neap::plan unplanned;
  neap::bytes_t limit = 0, weights = 0;
  neap::bytes_t beyond_residents(neap::bytes_t peak) const { return peak - plain.resident_bytes; }
};

/// Searches a plan within the limit, verifies it, and prints what it is.
planned_step plan_step(options const& o, neap::graph const& program, any_cost const& cost, swap_link link);

/// Writes results.csv and memory.svg.
void write_results(options const& o, planned_step const& p, neap::graph const& program, outcome const& measured);
/// Throws neap::error if these files cannot be written, before the training.
void require_writable(options const& o);

neap::seconds_t seconds_since(std::chrono::steady_clock::time_point t);
neap::seconds_t median(std::vector<neap::seconds_t> v);
std::string mib(neap::bytes_t b);

/// The memory that a program's steps have used.
template <class Program>
neap::bytes_t used_bytes(Program const& p) {
  if constexpr (requires { p.device_bytes(); }) return p.device_bytes();
  else return p.high_water_bytes();
}

/// Whether the weights of two models are equal to the last bit.
template <class Model>
bool same_weights(Model& a, Model& b) {
  auto const all = neap::parameters(a), others = neap::parameters(b);
  return std::equal(all.begin(), all.end(), others.begin(), others.end(), [](auto const& x, auto const& y) {
    return std::memcmp(x.ref().data, y.ref().data, static_cast<std::size_t>(x.type().bytes())) == 0;
  });
}

/// Trains `model` under a plan, then two more in turn, with the plan and without. `make_model()` gives equal models, `data(i)`
/// the batch of step i; `items` of it are counted as `unit`.
template <class Model, class Make, class Data, class Optimizer, class Backend>
outcome train(options const& o, Model& model, Make const& make_model, Data& data, Optimizer const& optimizer,
              Backend& backend, neap::roofline const& figures, swap_link link, double items, char const* unit) {
  using namespace neap;
  require_writable(o);
  training_options how;
  how.precision = o.precision;
  auto const step_of = [&](Model& m) {
    auto made = training_step(m, data(0), cross_entropy{}, optimizer, how);
    return device_backend<Backend> ? fuse(std::move(made)) : made;
  };
  auto const step = step_of(model);

  // What an op costs is measured where it stands, in steps of a model of its own.
  measured cost(backend, figures, {.folder = o.costs.empty() ? o.out : o.costs});
  {
    Model trial = make_model();
    bool const ran = cost.whole(step_of(trial), data(0));
    std::printf("costs of %zu kinds of ops %s %s\n", cost.table().size(), ran ? "measured, kept in" : "from",
                cost.file().c_str());
    cost.save().value(std::source_location{});
  }
  planned_step const p = plan_step(o, step.program, {[&](graph const& g, op_id x) { return cost(g, x); }}, link);

  outcome out;
  out.planned_peak = p.found.placed.peak_bytes, out.arena = p.found.placed.arena_bytes;
  execution_options const execution{.spill_folder = o.spill};
  std::printf("\ntraining under %s:\n", mib(p.limit).c_str());
  {
    trainer run(step, p.found.placed, backend, execution);
    for (int i = 0; i < o.steps; ++i) {
      auto const& batch = data(i);
      auto const begin = std::chrono::steady_clock::now();
      out.losses.push_back(run(batch));
      double const t = seconds_since(begin);
      if (i < 3 || (i + 1) % 5 == 0 || i + 1 == o.steps)
        std::printf("  step %4d  loss %.4f  %6.0f %s/s  memory in use at most %s\n", i + 1, out.losses.back(),
                    items / t, unit, mib(used_bytes(run.program())).c_str());
      std::fflush(stdout);
    }
  }

  // The same again beside unplanned training, step by step in turn, so that both see the same machine.
  int const compared = std::min(o.compare, o.steps);
  Model model_a = make_model(), model_b = make_model();
  std::vector<double> ratios, planned_s, plain_s;
  out.equal = true;
  {
    auto const step_a = step_of(model_a), step_b = step_of(model_b);
    trainer planned(step_a, p.found.placed, backend, execution);
    trainer plainly_run(step_b, p.unplanned, backend, execution);
    for (int i = 0; i < compared; ++i) {
      auto const& batch = data(i);
      auto t = std::chrono::steady_clock::now();
      double const a = planned(batch);
      planned_s.push_back(seconds_since(t));
      t = std::chrono::steady_clock::now();
      double const b = plainly_run(batch);
      plain_s.push_back(seconds_since(t));
      for (double const other : {b, out.losses[static_cast<std::size_t>(i)]})  // bits: a NaN is equal to itself
        out.equal &= std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(other);
      if (i > 0) ratios.push_back(planned_s.back() / plain_s.back());
    }
    out.peak = used_bytes(planned.program()), out.unplanned_peak = used_bytes(plainly_run.program());
  }
  bool const same = same_weights(model_a, model_b);
  out.step = median(planned_s), out.unplanned_step = median(plain_s);
  std::printf("\nbeside training without a plan, %d steps in turn:\n", compared);
  std::printf("  losses                    %s\n", out.equal ? "equal to the last bit" : "DIFFERENT");
  std::printf("  weights afterwards        %s\n", same ? "equal to the last bit" : "DIFFERENT");
  auto const beyond = p.beyond_residents(out.peak), beyond_plainly = p.beyond_residents(out.unplanned_peak);
  std::printf("  memory measured           %s planned, %s without; beyond weights and states %s and %s: %.3f\n",
              mib(out.peak).c_str(), mib(out.unplanned_peak).c_str(), mib(beyond).c_str(), mib(beyond_plainly).c_str(),
              static_cast<double>(beyond) / static_cast<double>(beyond_plainly));
  std::printf("  time of a step            %.4g ms planned, %.4g ms without; slowdown measured %.3f\n", 1e3 * out.step,
              1e3 * out.unplanned_step, ratios.empty() ? planned_s[0] / plain_s[0] : median(ratios));
  write_results(o, p, step.program, out);
  out.equal &= same;
  return out;
}

}  // namespace training
