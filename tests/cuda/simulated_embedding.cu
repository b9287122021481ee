// The gradient of an embedding with more numbers than are sorted by counting: CUB's radix sort, on the simulated device.
#include "../support/device/simulated_device.hpp"

#include <neap/cuda/kernels/picking.cuh>
#include <neap/cuda/launch.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace neap;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }

}  // namespace

TEST_CASE("the gradient of an embedding is added in the order of positions, whatever sorts them") {
  std::int64_t const n = detail::max_ranked + 101, rows = 70, columns = 2;
  std::mt19937 random(3);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(n));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % static_cast<unsigned>(rows));
  std::vector<float> dy(static_cast<std::size_t>(n * columns)), expected(static_cast<std::size_t>(rows * columns), 0);
  for (auto& g : dy) g = static_cast<float>(random() % 1000) * 0.001f;
  ids[5] = -1, ids[6] = rows;                       // out of range: they count for no row
  std::vector<double> of_runs(expected.size(), 0);  // runs of sum_run positions are added in f32, and the runs in f64
  std::vector<int> added(expected.size(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t k = 0; i != 5 && i != 6 && k < 2; ++k) {
      auto const at = static_cast<std::size_t>(ids[i]) * 2 + k;
      if (added[at] > 0 && added[at] % sum_run == 0) of_runs[at] += expected[at], expected[at] = 0;
      expected[at] += dy[2 * i + k], ++added[at];
    }
  for (std::size_t at = 0; at < expected.size(); ++at) expected[at] = static_cast<float>(of_runs[at] + expected[at]);

  neap::testing::simulated_device::reset(1);
  cuda_backend backend;
  op::embedding_grad const grad{rows};
  std::array<tensor_layout, 2> const in_layouts{tensor_layout::dense({dtype::f32, {n, columns}}),
                                                tensor_layout::dense({dtype::i64, {n}})};
  std::array<tensor_layout, 1> const out_layouts{tensor_layout::dense({dtype::f32, {rows, columns}})};
  work_context const context{in_layouts, out_layouts};
  backend.reserve_scratch(device_scratch(grad, context));
  std::vector<void*> memory;
  auto const place = [&](bytes_t bytes) {
    memory.emplace_back();
    ok(cudaMalloc(&memory.back(), static_cast<std::size_t>(bytes)));
    return memory.back();
  };
  std::array<tensor_ref, 2> const in{tensor_ref::place(place(n * columns * 4), in_layouts[0]),
                                     tensor_ref::place(place(n * 8), in_layouts[1])};
  std::array<tensor_ref, 1> const out{tensor_ref::place(place(rows * columns * 4), out_layouts[0])};
  ok(cudaMemcpy(in[0].data, dy.data(), dy.size() * 4, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(in[1].data, ids.data(), ids.size() * 8, cudaMemcpyHostToDevice));
  ok(cudaDeviceSynchronize());
  run(backend, grad, {in, out, place(grad.workspace(context))});
  ok(cudaStreamSynchronize(backend.stream()));
  std::vector<float> got(expected.size());
  ok(cudaMemcpy(got.data(), out[0].data, got.size() * 4, cudaMemcpyDeviceToHost));
  CHECK(got == expected);
  CHECK(neap::testing::simulated_device::faults() == "");
  CHECK(neap::testing::simulated_device::races() == "");
  for (void* p : memory) ok(cudaFree(p));
}

TEST_CASE("the scratch memory of an embedding's gradient is enough for CUB's sort of any length") {
  neap::testing::simulated_device::reset();
  for (std::int64_t const n : {detail::max_ranked + 1, std::int64_t{1} << 19, std::int64_t{1} << 20,
                               std::int64_t{1} << 24, std::int64_t{1} << 28, std::int64_t{1} << 31}) {
    CAPTURE(n);
    std::int64_t *const keys = nullptr, *const places = nullptr;
    std::size_t needed = 0;
    for (int const bits : {8, 17, 40, 63}) {
      ok(cub::DeviceRadixSort::SortPairs(nullptr, needed, keys, keys, places, places, n, 0, bits));
      CHECK(static_cast<std::int64_t>(needed) <= detail::sort_scratch(n) - 24 * n);
    }
  }
}
