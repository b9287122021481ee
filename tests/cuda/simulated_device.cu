// The simulated device runs programs for the CUDA runtime: kernels of this library, CUB and Thrust, copies, streams and
// events, whatever the order in which it executes what is not ordered.
#include "../support/device/simulated_device.hpp"

#include <neap/cuda.hpp>

#include <doctest/doctest.h>

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>
#include <algorithm>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace neap::testing;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }

template <class T>
struct device_array {
  T* at = nullptr;
  std::size_t count;

  explicit device_array(std::size_t n) : count(n) { ok(cudaMalloc(&at, n * sizeof(T))); }
  explicit device_array(std::vector<T> const& v) : device_array(v.size()) {
    ok(cudaMemcpy(at, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    ok(cudaDeviceSynchronize());
  }
  ~device_array() { cudaFree(at); }
  std::vector<T> read() const {
    std::vector<T> out(count);
    ok(cudaMemcpy(out.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
};

struct add_one {
  float* x;
  std::int64_t width;
  template <class Block>
  NEAP_HD void operator()(Block const& b) const {
    float* const row = x + b.id * width;
    b.each(width, [=](std::int64_t i) { row[i] += 1; });
  }
};

__global__ void scale(float* x, float by, int n) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
__global__ void past_the_end(float* x, int n) { x[n] = 1; }
__global__ void all_to_one(float* x) { x[0] = threadIdx.x; }
__global__ void need_room(float* out) {
  extern __shared__ float room[];
  room[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

__device__ int counter = 40;
__constant__ float factors[2] = {2, 3};
__global__ void use_variables(float* out) {
  atomicAdd(&counter, 1);
  *out = factors[0] + 10 * factors[1];
}

constexpr std::uint64_t seeds[] = {0, 1, 2, 3};

TEST_CASE("kernels of this library run on a backend that knows nothing of the simulation") {
  for (auto const seed : seeds) {
    CAPTURE(seed);
    simulated_device::reset(seed);
    neap::cuda_backend backend;
    CHECK(backend.device().name == "simulated device");
    for (std::int64_t const width : {3, 100, 700}) {
      std::vector<float> values(static_cast<std::size_t>(5 * width));
      std::iota(values.begin(), values.end(), 0.0f);
      device_array<float> x(values);
      ok(cudaDeviceSynchronize());
      for (int k = 0; k < 3; ++k) backend.launch(5, add_one{x.at, width}, width);
      ok(cudaStreamSynchronize(backend.stream()));
      for (float& v : values) v += 3;
      CHECK(x.read() == values);
    }
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    CHECK(simulated_device::counts().kernels == 9);
    CHECK(simulated_device::counts().memory == 0);
  }
}

TEST_CASE("CUB sorts, sums, scans and selects; Thrust transforms") {
  for (auto const seed : seeds) {
    CAPTURE(seed);
    simulated_device::reset(seed);
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (std::size_t const n : {1u, 300u, 5000u}) {
      CAPTURE(n);
      std::mt19937 random(static_cast<unsigned>(n));
      std::vector<int> keys(n), numbers(n);
      for (int& k : keys) k = static_cast<int>(random() % 50) - 25;
      std::iota(numbers.begin(), numbers.end(), 0);
      std::vector<int> order = numbers, sorted = keys;
      std::ranges::stable_sort(order, {}, [&](int i) { return keys[static_cast<std::size_t>(i)]; });
      std::ranges::sort(sorted);

      device_array<int> k(keys), v(numbers), k_out(n), v_out(n), distinct(n), sums(n), count(1), total(1);
      int const items = static_cast<int>(n);
      auto const run = [&](auto const& algorithm) {
        std::size_t bytes = 0;
        ok(algorithm(nullptr, bytes));
        device_array<char> room(bytes);
        ok(algorithm(room.at, bytes));
        ok(cudaStreamSynchronize(stream));
      };
      run([&](void* room, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(room, bytes, k.at, k_out.at, v.at, v_out.at, items, 0, 32, stream);
      });
      CHECK(k_out.read() == sorted);
      CHECK(v_out.read() == order);
      run([&](void* room, std::size_t& bytes) {
        return cub::DeviceReduce::Sum(room, bytes, v.at, total.at, items, stream);
      });
      CHECK(total.read()[0] == items * (items - 1) / 2);
      run([&](void* room, std::size_t& bytes) {
        return cub::DeviceReduce::ReduceByKey(room, bytes, k_out.at, distinct.at, v_out.at, sums.at, count.at,
                                              cuda::std::plus<>{}, items, stream);
      });
      std::vector<int> expected_keys, expected_sums;
      for (std::size_t i = 0; i < n; ++i) {
        if (i == 0 || sorted[i] != sorted[i - 1]) {
          expected_keys.push_back(sorted[i]);
          expected_sums.push_back(0);
        }
        expected_sums.back() += order[i];
      }
      auto const runs = static_cast<std::size_t>(count.read()[0]);
      REQUIRE(runs == expected_keys.size());
      auto const got_keys = distinct.read(), got_sums = sums.read();
      CHECK(std::ranges::equal(std::span(got_keys).first(runs), expected_keys));
      CHECK(std::ranges::equal(std::span(got_sums).first(runs), expected_sums));
      run([&](void* room, std::size_t& bytes) {
        return cub::DeviceScan::InclusiveSum(room, bytes, v.at, v_out.at, items, stream);
      });
      std::vector<int> scanned(n);
      std::partial_sum(numbers.begin(), numbers.end(), scanned.begin());
      CHECK(v_out.read() == scanned);
      run([&](void* room, std::size_t& bytes) {
        return cub::DeviceSelect::If(
            room, bytes, v.at, v_out.at, count.at, items, [] __device__(int i) { return i % 3 == 0; }, stream);
      });
      CHECK(count.read()[0] == (items + 2) / 3);

      auto const first = thrust::device_pointer_cast(v.at);
      thrust::transform(thrust::cuda::par_nosync.on(stream), first, first + items, first,
                        [] __device__(int i) { return 2 * i; });
      ok(cudaStreamSynchronize(stream));
      for (int& i : numbers) i *= 2;
      CHECK(v.read() == numbers);
    }
    ok(cudaStreamDestroy(stream));
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    CHECK(simulated_device::counts().streams == 0);
  }
}

TEST_CASE("variables of the device have their initial values, and copies of their own") {
  for (int round = 0; round < 2; ++round) {
    simulated_device::reset();
    device_array<float> out(1);
    use_variables<<<2, 32>>>(out.at);
    ok(cudaGetLastError());
    CHECK(out.read()[0] == 32);
    int value = 0;
    ok(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    CHECK(value == 40 + 64);
    float const other[2] = {5, 7};
    ok(cudaMemcpyToSymbol(factors, other, sizeof other));
    use_variables<<<1, 1>>>(out.at);
    CHECK(out.read()[0] == 75);
    CHECK(simulated_device::faults() == "");
  }
}

TEST_CASE("shared memory of a launch is bounded as on a device") {
  simulated_device::reset();
  device_array<float> out(64);
  need_room<<<1, 64, 64 * sizeof(float)>>>(out.at);
  ok(cudaGetLastError());
  CHECK(out.read()[3] == 60);
  need_room<<<1, 64, 60 * 1024>>>(out.at);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  ok(cudaFuncSetAttribute(need_room, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024));
  need_room<<<1, 64, 60 * 1024>>>(out.at);
  ok(cudaGetLastError());
  CHECK(cudaFuncSetAttribute(need_room, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024) ==
        cudaErrorInvalidValue);
  need_room<<<1, 2048>>>(out.at);
  cudaError_t const too_many = cudaGetLastError();
  CHECK(too_many == cudaErrorInvalidConfiguration);
  ok(cudaGetLastError());
  CHECK(simulated_device::faults() == "");
}

TEST_CASE("devices differ in the shared memory of a thread block") {
  struct {
    int major, minor, kib;
  } const all[] = {{8, 0, 163}, {8, 6, 99}, {8, 9, 99}, {9, 0, 227}, {12, 0, 99}};
  for (auto const& d : all) {
    CAPTURE(10 * d.major + d.minor);
    simulated_device::reset(0, {.major = d.major, .minor = d.minor});
    int most = 0;
    ok(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(most == d.kib * 1024);
    auto const allow = [&](int bytes) {
      return cudaFuncSetAttribute(need_room, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    };
    ok(allow(most));
    CHECK(allow(most + 1) == cudaErrorInvalidValue);
    cudaGetLastError();
  }
}

TEST_CASE("streams and events order work; what is not ordered runs in any order") {
  constexpr int n = 64;
  int first = 0, runs = 60;
  for (int seed = 1; seed <= runs; ++seed) {
    simulated_device::reset(static_cast<std::uint64_t>(seed));
    device_array<float> x(std::vector<float>(n, 1.0f)), y(std::vector<float>(n, 1.0f));
    cudaStream_t a = nullptr, b = nullptr;
    cudaEvent_t done = nullptr;
    ok(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    ok(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    ok(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    ok(cudaDeviceSynchronize());
    scale<<<1, n, 0, a>>>(x.at, 2, n);  // operation 3
    scale<<<1, n, 0, b>>>(y.at, 3, n);
    ok(cudaEventRecord(done, a));
    ok(cudaStreamWaitEvent(b, done));
    ok(cudaMemcpyAsync(y.at, x.at, n * sizeof(float), cudaMemcpyDeviceToDevice, b));
    scale<<<1, n, 0, b>>>(y.at, 5, n);
    ok(cudaStreamSynchronize(b));
    CHECK(y.read() == std::vector<float>(n, 10.0f));
    auto const all = simulated_device::operations();
    REQUIRE(all.size() == 7);
    first += all[2].position < all[3].position;
    CHECK(all[2].position < all[4].position);
    CHECK(all[3].position < all[4].position);
    CHECK(all[4].name == "cudaMemcpyAsync");
    CHECK(all[4].bytes == n * sizeof(float));
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    for (auto s : {a, b}) ok(cudaStreamDestroy(s));
    ok(cudaEventDestroy(done));
  }
  CHECK(first > runs / 5);
  CHECK(first < runs * 4 / 5);
}

TEST_CASE("the legacy default stream and blocking streams wait for one another") {
  for (auto const seed : seeds) {
    simulated_device::reset(seed);
    constexpr int n = 32;
    device_array<float> x(std::vector<float>(n, 1.0f));
    cudaStream_t a = nullptr, b = nullptr;
    ok(cudaStreamCreate(&a));
    ok(cudaStreamCreate(&b));
    scale<<<1, n, 0, a>>>(x.at, 2, n);
    scale<<<1, n>>>(x.at, 3, n);
    scale<<<1, n, 0, b>>>(x.at, 5, n);
    CHECK(x.read() == std::vector<float>(n, 30.0f));
    CHECK(simulated_device::races() == "");
    for (auto s : {a, b}) ok(cudaStreamDestroy(s));
  }
}

TEST_CASE("copies: rows, fills, pinned and plain memory; wrong ones are refused") {
  for (auto const seed : seeds) {
    simulated_device::reset(seed);
    cudaStream_t stream = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void* pinned = nullptr;
    ok(cudaMallocHost(&pinned, 4096));
    auto* const host = static_cast<unsigned char*>(pinned);
    std::iota(host, host + 100, static_cast<unsigned char>(0));
    device_array<unsigned char> x(100);
    ok(cudaMemsetAsync(x.at, 7, 100, stream));
    ok(cudaMemcpy2DAsync(x.at, 10, host, 5, 3, 4, cudaMemcpyHostToDevice, stream));  // 4 rows of 3 bytes
    ok(cudaMemcpyAsync(host + 200, x.at, 100, cudaMemcpyDeviceToHost, stream));
    ok(cudaStreamSynchronize(stream));
    CHECK(host[200] == 0);
    CHECK(host[212] == 7);
    CHECK(host[211] == 6);
    CHECK(host[232] == 17);
    CHECK(host[240] == 7);
    std::vector<unsigned char> plain(100, 9);
    ok(cudaMemcpyAsync(x.at, plain.data(), 100, cudaMemcpyHostToDevice, stream));
    std::ranges::fill(plain, 1);  // the bytes were taken before the call returned
    ok(cudaMemcpyAsync(plain.data(), x.at, 100, cudaMemcpyDeviceToHost, stream));
    CHECK(plain == std::vector<unsigned char>(100, 9));
    CHECK(simulated_device::faults() == "");

    CHECK(cudaMemcpy(x.at, host, 101, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(x.at, host, 8, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemsetAsync(x.at + 50, 0, 51, stream) == cudaErrorInvalidValue);
    CHECK(cudaFree(x.at + 1) == cudaErrorInvalidValue);
    CHECK(simulated_device::faults().find("101 bytes at offset 0 of device memory 1, which has 100") !=
          std::string::npos);
    cudaGetLastError();
    ok(cudaFreeHost(pinned));
    ok(cudaStreamDestroy(stream));
  }
}

TEST_CASE("faults of kernels are reported, and fail every later call where a device's would") {
  simulated_device::reset(5);
  {
    device_array<float> x(8);
    past_the_end<<<1, 1>>>(x.at, 8);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaMemset(x.at, 0, 4) == cudaErrorIllegalAddress);
    CHECK(simulated_device::faults().find("past_the_end(") == std::string::npos);
    CHECK(simulated_device::faults().find("past_the_end: bounds: ") != std::string::npos);
    CHECK(simulated_device::faults().find("offset 32 of device memory 1, which has 32") != std::string::npos);
  }
  simulated_device::reset(5);
  device_array<float> x(8);
  all_to_one<<<1, 64>>>(x.at);
  ok(cudaDeviceSynchronize());  // a device would not tell
  CHECK(simulated_device::faults().find("all_to_one: race: ") != std::string::npos);
}

TEST_CASE("memory has the given size, and addresses that no other memory has") {
  simulated_device::reset(0, {.memory = 1000});
  std::size_t free = 0, total = 0;
  void *a = nullptr, *b = nullptr;
  ok(cudaMalloc(&a, 600));
  ok(cudaMemGetInfo(&free, &total));
  CHECK(free == 400);
  CHECK(total == 1000);
  CHECK(cudaMalloc(&b, 401) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  ok(cudaMalloc(&b, 400));
  ok(cudaFree(a));
  CHECK(simulated_device::counts().memory == 400);
  CHECK(simulated_device::counts().peak_memory == 1000);
  cudaPointerAttributes what{};
  ok(cudaPointerGetAttributes(&what, static_cast<char*>(b) + 399));
  CHECK(what.type == cudaMemoryTypeDevice);
  int on_host = 0;
  ok(cudaPointerGetAttributes(&what, &on_host));
  CHECK(what.type == cudaMemoryTypeUnregistered);
  scale<<<1, 1>>>(static_cast<float*>(a), 1, 1);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(simulated_device::faults().find("device memory 1 (freed)") != std::string::npos);
}

}  // namespace
