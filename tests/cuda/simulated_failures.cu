// Failures that tests plant in the simulated device: no device, an old driver, too little memory, the nth call of a
// function, the nth operation; and memory that the program must not touch.
#include "../support/device/simulated_device.hpp"

#include <neap/cuda/device.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace {

using namespace neap::testing;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }

__global__ void set(float* x) { x[threadIdx.x] = 1; }

TEST_CASE("machines without a device that can be used") {
  auto const reason = [](device_options const& o) {
    simulated_device::reset(0, o);
    auto const found = neap::find_cuda_device();
    return found ? std::string() : found.message();
  };
  std::string const start = "cuda: no GPU to be used: ";
  CHECK(reason({.devices = 0}) == start + "the driver finds no device");
  CHECK(reason({.driver = 0}) == start + "no NVIDIA driver is installed (libcuda.so.1)");
  CHECK(reason({.driver = 12040}).starts_with(start + "the driver supports CUDA 12.4, this program needs 13."));
  CHECK(reason({.major = 7, .minor = 5}) ==
        "cuda: device 0 (simulated device) has compute capability 7.5: at least 8.0 is needed");
  CHECK(reason({}) == "");
  simulated_device::reset(0, {.devices = 0});
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 4) == cudaErrorNoDevice);
}

TEST_CASE("the nth call of a function fails once, and does nothing") {
  simulated_device::reset();
  simulated_device::fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
  simulated_device::fail("launch", 1, cudaErrorLaunchOutOfResources);
  float *a = nullptr, *b = nullptr;
  ok(cudaMalloc(&a, 128));
  CHECK(cudaMalloc(&b, 128) == cudaErrorMemoryAllocation);
  CHECK(b == nullptr);
  CHECK(simulated_device::counts().memory == 128);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  ok(cudaMalloc(&b, 128));
  set<<<1, 32>>>(a);
  CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
  set<<<1, 32>>>(b);
  ok(cudaGetLastError());
  ok(cudaDeviceSynchronize());
  CHECK(simulated_device::counts().kernels == 1);
  CHECK(simulated_device::calls("cudaMalloc") == 3);
  CHECK(simulated_device::calls("cudaLaunchKernel") == 2);
  CHECK(simulated_device::faults() == "");
}

TEST_CASE("captures and graphs fail where that is planted") {
  for (std::string const function : {"cudaStreamBeginCapture", "cudaMemsetAsync", "cudaStreamEndCapture",
                                     "cudaGraphInstantiate", "cudaGraphLaunch"}) {
    CAPTURE(function);
    simulated_device::reset();
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t run = nullptr;
    void* p = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaMalloc(&p, 4));
    simulated_device::fail(function, 1, cudaErrorMemoryAllocation);
    std::string failed;
    auto const step = [&](char const* name, cudaError_t e) {
      if (e != cudaSuccess && failed.empty()) failed = name;
      return e == cudaSuccess;
    };
    if (step("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal))) {
      step("cudaMemsetAsync", cudaMemsetAsync(p, 0, 4, stream));
      if (step("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph)) &&
          step("cudaGraphInstantiate", cudaGraphInstantiate(&run, graph, 0)))
        step("cudaGraphLaunch", cudaGraphLaunch(run, stream));
    }
    CHECK(failed == function);
  }
}

TEST_CASE("after an operation that fails every call fails") {
  for (std::uint64_t const seed : {0, 1, 2}) {
    simulated_device::reset(seed);
    float *x = nullptr, *host = nullptr;
    ok(cudaMalloc(&x, 128));
    ok(cudaMallocHost(&host, 128));
    simulated_device::fail_execution(device_work::kernel, 2, cudaErrorLaunchFailure);
    set<<<1, 32>>>(x);
    ok(cudaMemcpyAsync(host, x, 128, cudaMemcpyDeviceToHost, nullptr));
    set<<<1, 32>>>(x);
    ok(cudaMemcpyAsync(host, x, 128, cudaMemcpyDeviceToHost, nullptr));
    CHECK(cudaStreamSynchronize(nullptr) == cudaErrorLaunchFailure);
    CHECK(host[3] == 1);  // what came before is done
    CHECK(cudaMemset(x, 0, 4) == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(simulated_device::counts().kernels == 1);
    auto const all = simulated_device::operations();
    REQUIRE(all.size() == 4);
    CHECK(all[1].position == 2);
    CHECK(all[2].position == 0);
    CHECK(all[3].position == 0);
  }
}

TEST_CASE("the program cannot touch memory of the device") {
  simulated_device::reset();
  float* x = nullptr;
  ok(cudaMalloc(&x, 128));
  ok(cudaMemset(x, 0, 128));
  ok(cudaDeviceSynchronize());
  pid_t const child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*static_cast<float volatile*>(x) == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("a program that polls sees the end, and is then behind the work") {
  for (std::uint64_t const seed : {0, 1, 2, 3}) {
    simulated_device::reset(seed);
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
    char *x = nullptr, *host = nullptr;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaEventCreate(&end));
    ok(cudaMalloc(&x, 64));
    ok(cudaMallocHost(&host, 64));
    for (int k = 0; k < 10; ++k) ok(cudaMemsetAsync(x, k, 64, stream));
    ok(cudaMemcpyAsync(host, x, 64, cudaMemcpyDeviceToHost, stream));
    ok(cudaEventRecord(end, stream));
    int polls = 1;
    while (cudaEventQuery(end) == cudaErrorNotReady) ++polls;
    if (seed == 0) CHECK(polls > 1);
    cudaGetLastError();
    ok(cudaEventQuery(end));
    CHECK(host[63] == 9);
    ok(cudaMemsetAsync(x, 0, 64, stream));
    polls = 1;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) ++polls;
    CHECK(polls < 1000);
    CHECK(simulated_device::races() == "");
    CHECK(simulated_device::faults() == "");
  }
}

TEST_CASE("times of events follow from the work between them") {
  simulated_device::reset(3);
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ok(cudaEventCreate(&begin));
  ok(cudaEventCreate(&end));
  char *x = nullptr, *host = nullptr;
  constexpr std::size_t bytes = 1 << 20;
  ok(cudaMalloc(&x, bytes));
  ok(cudaMallocHost(&host, bytes));
  float times[2] = {};
  for (int k = 0; k < 2; ++k) {
    ok(cudaEventRecord(begin, stream));
    for (int copies = 0; copies <= k; ++copies) ok(cudaMemcpyAsync(x, host, bytes, cudaMemcpyHostToDevice, stream));
    ok(cudaEventRecord(end, stream));
    ok(cudaEventSynchronize(end));
    ok(cudaEventElapsedTime(&times[k], begin, end));
  }
  CHECK(times[0] > 0);
  CHECK(times[1] == doctest::Approx(2 * times[0]));
}

}  // namespace
