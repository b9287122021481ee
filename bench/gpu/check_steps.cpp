// Times of whole steps, beside which bench/gpu/torch_steps.py has PyTorch's: the same models, batches, optimizer and
// precision, in the same columns.
#include "check_measures.hpp"
#include "libraries.hpp"

#include <neap/cuda.hpp>
#include <neap/cuda/measure.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace neap::bench {

namespace {

constexpr int warm_up = 3;

/// Four batches, in turn: making one takes longer than a step.
template <class Batches>
auto four_of(Batches const& batches) {
  std::vector<decltype(batches(0))> all;
  for (std::uint64_t i = 0; i < 4; ++i) all.push_back(batches(i));
  return all;
}

}  // namespace

int measure_steps(model_size size) {
  cuda_backend device;
  use_libraries(device);
  csv_header("device,model,way,limit,steps,step_ms,peak_bytes,loss,result");
  int wrong = 0;
  int const steps = size == model_size::full ? 20 : 3;
  roofline figures = figures_of(device);
  measure_link(device, bytes_t{16} << 20, 3).apply(figures);
  auto const link = std::min(figures.to_host_bytes_per_second, figures.to_device_bytes_per_second);
  auto const rows = [&](char const* name, auto const& model, auto const& batches, training_options const& options,
                        bool fused) {
    auto const data = four_of(batches);
    for (char const* const limit : {"none", "0.5"}) {
      std::string result = "ok";
      double loss = 0;
      bytes_t peak = 0;
      std::vector<double> milliseconds;
      try {
        auto copy = model;
        auto const plain = training_step(copy, data[0], cross_entropy{}, adamw{.rate = 1e-3}, options);
        auto const step = fuse(plain, {.products = has_libraries(), .rows = fused, .chains = false});
        // Without a limit nothing is recomputed or swapped.
        plan placed = plan_in_order(step.program);
        if (std::string(limit) != "none") {
          auto found = planned(step, chain(rematerialize{}, neap::swap{link}), 0.5, figures);
          if (!found.fits) result = "ok; no plan fits: of the best one found";
          placed = std::move(found.placed);
        }
        trainer run(step, std::move(placed), device);
        for (int i = 0; i < warm_up + steps; ++i) {
          auto const begin = std::chrono::steady_clock::now();
          loss = run(data[static_cast<std::size_t>(i) % data.size()]);
          std::chrono::duration<double, std::milli> const t = std::chrono::steady_clock::now() - begin;
          if (i >= warm_up) milliseconds.push_back(t.count());
        }
        peak = run.program().device_bytes() + device.scratch_bytes();
        if (!(loss > 0 && loss < 1e3)) result = "the loss is wrong";
      } catch (error const& e) { result = e.what(); }
      std::sort(milliseconds.begin(), milliseconds.end());
      std::replace(result.begin(), result.end(), ',', ';');
      std::replace(result.begin(), result.end(), '"', '\'');
      bool const ok = result == "ok";
      wrong += !result.starts_with("ok");
      std::printf("%s,%s,%s%s,%s,%d,%.3f,%lld,%.6g,%s%s%s\n", device.device().name.c_str(), name, ways_name(),
                  fused ? "; fused rows" : "", limit, steps,
                  milliseconds.empty() ? 0 : milliseconds[milliseconds.size() / 2], static_cast<long long>(peak), loss,
                  ok ? "" : "\"", result.c_str(), ok ? "" : "\"");
      std::fflush(stdout);
    }
  };
  for (bool const fused : {false, true})
    each_model(size, [&](char const* name, auto const& model, auto const& batches, training_options const& options) {
      rows(name, model, batches, options, fused);
    });
  return wrong;
}

}  // namespace neap::bench
