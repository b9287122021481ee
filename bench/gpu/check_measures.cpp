#include "check_measures.hpp"
#include "libraries.hpp"

#include <neap/cuda/measure.hpp>

#include <neap/execute/measured.hpp>

#include <neap/cuda.hpp>
#include <neap/cuda/step_times.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace neap::bench {

int measure_swaps(model_size size) {
  cuda_backend device;
  use_libraries(device);
  auto figures = figures_of(device);
  measure_link(device, size == model_size::toys ? bytes_t{1} << 12 : bytes_t{64} << 20).apply(figures);
  csv_header(("model,limit,fits," + std::string(step_report::columns) + ",result").c_str());
  int wrong = 0;
  each_model(size, [&](char const* name, auto const& model, auto const& batches, training_options const& options) {
    try {
      measured cost(device, figures, {});
      auto const step_of = [&](auto& m) {
        return training_step(m, batches(0), cross_entropy{}, adamw{.rate = 1e-4}, options);
      };
      {
        auto copy = model;
        cost.whole(step_of(copy), batches(0));
      }
      for (double const ratio : {1.0, 0.6, 0.5}) {
        auto copy = model;
        auto const step = step_of(copy);
        auto const found = planned(step, neap::swap{}, ratio, cost);
        auto const r = measure_step(step, found.placed, device, batches(1), size == model_size::toys ? 1 : 7);
        std::printf("%s,%g,%d,%s,ok\n", name, ratio, found.fits, r.row().c_str());
      }
    } catch (error const& e) {
      ++wrong;
      std::printf("%s,,,,,,,,,,,,\"%s\"\n", name, e.what());
    }
  });
  return wrong;
}

namespace {

/// Bytes a second that a copy on the device reads and writes: the median of 9.
double copy_bandwidth(cuda_backend& device, bytes_t bytes) {
  cuda_device_memory const from(bytes, "a measurement"), to(bytes, "a measurement");
  auto const n = static_cast<std::size_t>(bytes);
  check_cuda(cudaMemsetAsync(from.data(), 0, n, device.stream()), "a measurement");
  auto const begin = detail::make_cuda_event(true), end = detail::make_cuda_event(true);
  std::vector<seconds_t> all;
  for (int round = 0; round < 10; ++round) {
    check_cuda(cudaEventRecord(begin.get(), device.stream()), "a measurement");
    check_cuda(cudaMemcpyAsync(to.data(), from.data(), n, cudaMemcpyDeviceToDevice, device.stream()), "a measurement");
    check_cuda(cudaEventRecord(end.get(), device.stream()), "a measurement");
    check_cuda(cudaStreamSynchronize(device.stream()), "a measurement");
    if (round > 0) all.push_back(detail::seconds_between(begin, end));
  }
  return 2 * static_cast<double>(bytes) / detail::median(all);
}

struct bandwidth_case {
  std::string name;
  graph program;
};

std::vector<bandwidth_case> bandwidth_cases(dtype t, std::int64_t rows, std::int64_t columns) {
  std::vector<bandwidth_case> all;
  auto const add = [&](auto const& op, std::vector<tensor_type> const& in) {
    graph_editor e{operator_table(standard_operators::facets)};
    std::vector<value_id> sources;
    for (std::size_t i = 0; i < in.size(); ++i)
      sources.push_back(e.add_source(role::weight, in[i], "in" + std::to_string(i)));
    for (auto v : e.add(op, std::span<value_id const>(sources))) e.keep(v, role::output);
    all.push_back({std::string(op.name), graph(std::move(e).finish())});
  };
  tensor_type const x{t, {rows, columns}}, f{dtype::f32, {rows, columns}}, of_column{t, {columns}},
      statistics{dtype::f32, {rows}}, step{dtype::i64, {}}, labels{dtype::i64, {rows}}, loss{dtype::f32, {}};
  add(op::copy{}, {x}), add(op::add{}, {x, x}), add(op::gelu{}, {x}), add(op::gelu_grad{}, {x, x});
  add(op::softmax{}, {x}), add(op::softmax_grad{}, {x, x});
  add(op::layer_norm{}, {x, of_column, of_column});
  add(op::layer_norm_grad{}, {x, x, statistics, statistics, of_column});
  add(op::cross_entropy{}, {x, labels}), add(op::cross_entropy_grad{}, {loss, x, labels, statistics});
  op::dropout drop;
  drop.p = 0.1, drop.key = 7;
  add(drop, {x, step});
  if (t == dtype::f32) {  // weights, gradients and states
    add(op::sgd{}, {f, f}), add(op::momentum{}, {f, f, f});
    add(op::adamw{}, {f, f, f, f, step});
  }
  return all;
}

}  // namespace

int measure_bandwidth(model_size size) {
  cuda_backend device;
  use_libraries(device);
  bool const toys = size == model_size::toys;
  double const copies = copy_bandwidth(device, toys ? bytes_t{1} << 12 : bytes_t{256} << 20);
  constexpr double wanted = 0.8;
  csv_header("operator,element,rows,columns,bytes,microseconds,gigabytes_per_second,share_of_copy,result");
  int wrong = 0, reached = 0, count = 0;
  for (dtype const t : {dtype::f32, dtype::bf16}) {
    std::int64_t const columns = toys ? 64 : 2048, rows = toys ? 4 : (bytes_t{128} << 20) / (columns * size_of(t));
    for (auto const& c : bandwidth_cases(t, rows, columns)) {
      op_id const o = *c.program.ops().begin();
      auto const w = flow::cost(c.program, o);
      double const bytes = w.read + w.written;
      std::string result;
      seconds_t seconds = 0;
      try {
        auto const measured = measure_op(c.program, o, device);
        if (measured) seconds = *measured;
        else result = "no kernel";
      } catch (error const& e) { result = e.what(); }
      double const share = seconds > 0 ? bytes / seconds / copies : 0;
      if (!result.empty()) ++wrong;
      else result = share >= wanted ? "ok" : "below 0.8";
      ++count, reached += share >= wanted;
      std::printf("%s,%s,%lld,%lld,%.0f,%.2f,%.1f,%.3f,\"%s\"\n", c.name.c_str(), std::string(name_of(t)).c_str(),
                  static_cast<long long>(rows), static_cast<long long>(columns), bytes, 1e6 * seconds,
                  seconds > 0 ? 1e-9 * bytes / seconds : 0, share, result.c_str());
    }
  }
  std::fprintf(stderr, "%d of %d at %.1f or more of the copy bandwidth, %.0f GB/s\n", reached, count, wanted,
               1e-9 * copies);
  return wrong;
}

int list_properties() {
  auto const device = find_cuda_device();
  if (!device) throw_error({device.message()});
  cudaDeviceProp p{};
  check_cuda(cudaGetDeviceProperties(&p, device->number), "properties of a device");
  int runtime = 0;
  check_cuda(cudaRuntimeGetVersion(&runtime), "version of the runtime");
  csv_header("property,value");
  std::printf("name,\"%s\"\n", p.name);
  auto const row = [](char const* name, auto value) { std::printf("%s,%lld\n", name, static_cast<long long>(value)); };
  row("driver", device->driver), row("runtime", runtime);
  row("major", p.major), row("minor", p.minor), row("multiprocessors", p.multiProcessorCount);
  row("warp_threads", p.warpSize), row("threads_per_block", p.maxThreadsPerBlock);
  row("threads_per_multiprocessor", p.maxThreadsPerMultiProcessor);
  row("blocks_per_multiprocessor", p.maxBlocksPerMultiProcessor);
  row("registers_per_block", p.regsPerBlock), row("registers_per_multiprocessor", p.regsPerMultiprocessor);
  row("shared_bytes_per_block", p.sharedMemPerBlock), row("shared_bytes_per_block_at_most", p.sharedMemPerBlockOptin);
  row("shared_bytes_per_multiprocessor", p.sharedMemPerMultiprocessor);
  row("memory_bytes", p.totalGlobalMem), row("cache_bytes", p.l2CacheSize), row("memory_bus_bits", p.memoryBusWidth);
  row("copy_engines", p.asyncEngineCount);
  return 0;
}

}  // namespace neap::bench
