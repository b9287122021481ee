// A compiled training loop (neap::compile) beside the planned trainer of the same model: losses and weights have equal
// bits, and a call's time is measured. Both run steps in the program's order, on the same batches.
#include "check_measures.hpp"
#include "libraries.hpp"

#include <neap/capture/fixed.hpp>
#include <neap/cuda.hpp>
#include <neap/cuda/compile.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap::bench {

namespace {

constexpr int warm_up_calls = 3;

struct trained {
  std::vector<double> losses;
  std::vector<double> milliseconds;  // of calls after the first ones
  std::vector<std::vector<float>> weights;
  bytes_t bytes = 0;  // on the device
  std::size_t graphs = 1;

  bool has_bits_of(trained const& other) const { return losses == other.losses && weights == other.weights; }
  double median_milliseconds() const {
    auto all = milliseconds;
    std::sort(all.begin(), all.end());
    return all.empty() ? 0 : all[all.size() / 2];
  }
};

/// The loss of each call of `run(batch)`, and its time.
template <class Batches, class Run>
void train(trained& to, int calls, Batches const& batches, Run const& run) {
  std::vector<decltype(batches(0))> data;  // in turn: making one takes longer than a call
  for (std::uint64_t i = 0; i < 4; ++i) data.push_back(batches(i));
  for (int i = 0; i < calls; ++i) {
    auto const& batch = data[static_cast<std::size_t>(i) % data.size()];
    auto const begin = std::chrono::steady_clock::now();
    to.losses.push_back(run(batch));
    std::chrono::duration<double, std::milli> const t = std::chrono::steady_clock::now() - begin;
    if (i >= warm_up_calls) to.milliseconds.push_back(t.count());
  }
}
template <class Model>
void read_weights(trained& to, Model& model) {
  for (auto const& w : named_tensors(model, role::weight)) to.weights.push_back(w.tensor.template values<float>());
}

template <class Model, class Batches>
trained by_trainer(Model model, Batches const& batches, int calls, training_options const& options,
                   cuda_backend& device) {
  trained made;
  {
    auto const step = training_step(model, batches(0), cross_entropy{}, adamw{.rate = 1e-3}, options);
    trainer run(step, plan_in_order(step.program), device);
    train(made, calls, batches, [&](auto const& batch) { return run(batch); });
    made.bytes = run.program().device_bytes();
  }
  read_weights(made, model);
  return made;
}

template <class Model, class Batches>
trained by_compiled_loop(Model model, Batches const& batches, int calls, training_options const& options,
                         cuda_backend& device) {
  trained made;
  training_state state;
  {
    auto run =
        compile(fixed([options](Model& m, training_state& s, tensor const& x, tensor const& y) {
                  return tensor(eager_step(m, std::pair{x, y}, cross_entropy{}, adamw{.rate = 1e-3}, s, options));
                }),
                device);
    train(made, calls, batches,
          [&](auto const& batch) { return run(model, state, batch.first, batch.second).template item<double>(); });
    made.bytes = run.device_bytes();
    made.graphs = run.graphs();
  }
  read_weights(made, model);
  return made;
}

}  // namespace

int measure_compiled(model_size size) {
  cuda_backend device;
  use_libraries(device);
  csv_header("model,way,calls,call_ms,device_bytes,graphs,last_loss,result");
  int wrong = 0;
  int const calls = warm_up_calls + (size == model_size::full ? 20 : 5);
  each_model(size, [&](char const* name, auto const& model, auto const& batches, training_options const& options) {
    auto const row = [&](char const* way, trained const& t, bool right) {
      wrong += !right;
      std::printf("%s,%s,%d,%.3f,%lld,%zu,%.9g,%s\n", name, way, calls, t.median_milliseconds(),
                  static_cast<long long>(t.bytes), t.graphs, t.losses.back(), right ? "ok" : "differs");
      std::fflush(stdout);
    };
    try {
      auto const planned = by_trainer(model, batches, calls, options, device);
      row("trainer", planned, true);
      auto const compiled = by_compiled_loop(model, batches, calls, options, device);
      row("compiled", compiled, compiled.has_bits_of(planned) && compiled.graphs == 1);
    } catch (error const& e) {
      ++wrong;
      std::string what = e.what();
      std::replace(what.begin(), what.end(), ',', ';');
      std::replace(what.begin(), what.end(), '"', '\'');
      std::printf("%s,,,,,,,\"%s\"\n", name, what.c_str());
    }
  });
  return wrong;
}

}  // namespace neap::bench
