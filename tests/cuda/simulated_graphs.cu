// Captures and graphs on the simulated device: what is recorded, what is frozen, and what CUDA forbids.
#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace neap::testing;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }

__global__ void add(float* x, float const* by, float factor, int n) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += factor * by[0];
}

constexpr int n = 100;
constexpr std::size_t bytes = n * sizeof(float);

struct machine {
  cudaStream_t main = nullptr, copies = nullptr, blocking = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  float *x = nullptr, *rate = nullptr;       // on the device
  float *host = nullptr, *result = nullptr;  // pinned

  explicit machine(std::uint64_t seed) {
    simulated_device::reset(seed);
    for (auto* s : {&main, &copies}) ok(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    ok(cudaStreamCreate(&blocking));
    for (auto* e : {&fork, &join}) ok(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    ok(cudaMalloc(&x, bytes));
    ok(cudaMalloc(&rate, sizeof(float)));
    ok(cudaMallocHost(&host, sizeof(float)));
    ok(cudaMallocHost(&result, bytes));
    ok(cudaMemset(x, 0, bytes));
    ok(cudaDeviceSynchronize());
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) const { ok(cudaStreamBeginCapture(main, mode)); }
  void fork_copies() const {
    ok(cudaEventRecord(fork, main));
    ok(cudaStreamWaitEvent(copies, fork));
  }
  void join_copies() const {
    ok(cudaEventRecord(join, copies));
    ok(cudaStreamWaitEvent(main, join));
  }
  void kernel(float factor, cudaStream_t s) const { add<<<1, 128, 0, s>>>(x, rate, factor, n); }
  cudaError_t end(cudaGraph_t& graph) const { return cudaStreamEndCapture(main, &graph); }
  /// The capture has failed: it gives no graph, and the stream works again.
  void check_failed(cudaError_t expected) const {
    cudaGraph_t graph = nullptr;
    CHECK(end(graph) == expected);
    CHECK(graph == nullptr);
    cudaGetLastError();
    ok(cudaMemsetAsync(x, 0, bytes, main));
    ok(cudaMemsetAsync(rate, 0, 4, copies));
    ok(cudaDeviceSynchronize());
  }
};

TEST_CASE("a step with a copy beside it is one graph, which is replayed") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    machine const m(seed);
    std::size_t const before = simulated_device::operations().size();
    m.begin();
    cudaStreamCaptureStatus status{};
    ok(cudaStreamIsCapturing(m.main, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    ok(cudaMemcpyAsync(m.rate, m.host, sizeof(float), cudaMemcpyHostToDevice, m.main));
    float factor = 2;
    m.kernel(factor, m.main);
    factor = 100;  // parameters have their values of the capture
    m.fork_copies();
    ok(cudaStreamIsCapturing(m.copies, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    ok(cudaMemcpyAsync(m.result, m.x, bytes, cudaMemcpyDeviceToHost, m.copies));
    m.join_copies();
    m.kernel(1, m.main);
    cudaGraph_t graph = nullptr;
    ok(m.end(graph));
    ok(cudaStreamIsCapturing(m.copies, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    CHECK(simulated_device::operations().size() == before);  // nothing has run

    std::size_t count = 0, edges = 0;
    ok(cudaGraphGetNodes(graph, nullptr, &count));
    CHECK(count == 4);
    ok(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(edges == 4);  // the last kernel follows the first and the copy
    std::vector<cudaGraphNode_t> nodes(count);
    ok(cudaGraphGetNodes(graph, nodes.data(), &count));
    std::map<cudaGraphNodeType, int> types;
    for (auto node : nodes) {
      cudaGraphNodeType type{};
      ok(cudaGraphNodeGetType(node, &type));
      ++types[type];
    }
    CHECK(types[cudaGraphNodeTypeKernel] == 2);
    CHECK(types[cudaGraphNodeTypeMemcpy] == 2);

    cudaGraphExec_t run = nullptr;
    ok(cudaGraphInstantiate(&run, graph, 0));
    ok(cudaGraphDestroy(graph));  // the executable one needs it no more
    float expected = 0;
    for (int step = 1; step <= 4; ++step) {
      m.host[0] = static_cast<float>(step);  // what a step reads is what is there when it runs
      ok(cudaGraphLaunch(run, m.main));
      ok(cudaStreamSynchronize(m.main));
      CHECK(m.result[n - 1] == expected + 2 * static_cast<float>(step));
      expected += 3 * static_cast<float>(step);
    }
    ok(cudaGraphExecDestroy(run));
    CHECK(simulated_device::counts().graph_launches == 4);
    CHECK(simulated_device::operations().size() == before + 16);
    CHECK(simulated_device::operations().back().graph == 4);
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
  }
}

TEST_CASE("launches of one executable graph follow one another, on whatever streams") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    machine const m(seed);
    m.host[0] = 1;
    ok(cudaMemcpy(m.rate, m.host, sizeof(float), cudaMemcpyHostToDevice));
    ok(cudaDeviceSynchronize());
    m.begin();
    for (int k = 0; k < 3; ++k) m.kernel(1, m.main);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t run = nullptr;
    ok(m.end(graph));
    ok(cudaGraphInstantiateWithFlags(&run, graph, 0));
    for (auto s : {m.main, m.copies, m.main, m.blocking}) ok(cudaGraphLaunch(run, s));
    ok(cudaGraphExecDestroy(run));  // launches that are not done yet go on
    ok(cudaGraphDestroy(graph));
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(m.result, m.x, bytes, cudaMemcpyDeviceToHost));
    CHECK(m.result[7] == 12);
    CHECK(simulated_device::races() == "");
    CHECK(simulated_device::counts().graphs == 0);
    CHECK(simulated_device::counts().executable_graphs == 0);
  }
}

TEST_CASE("what a capture forbids ends it") {
  float plain[n] = {};
  void* p = nullptr;
  std::pair<char const*, std::function<cudaError_t(machine const&)>> const calls[] = {
      {"cudaMalloc", [&](machine const&) { return cudaMalloc(&p, 4); }},
      {"cudaFree", [&](machine const& m) { return cudaFree(m.x); }},
      {"cudaMallocHost", [&](machine const&) { return cudaMallocHost(&p, 4); }},
      {"cudaHostAlloc", [&](machine const&) { return cudaHostAlloc(&p, 4, 0); }},
      {"cudaHostRegister", [&](machine const&) { return cudaHostRegister(plain, bytes, 0); }},
      {"cudaFreeHost", [&](machine const& m) { return cudaFreeHost(m.host); }},
      {"cudaStreamSynchronize", [&](machine const& m) { return cudaStreamSynchronize(m.main); }},
      {"cudaStreamSynchronize of another", [&](machine const& m) { return cudaStreamSynchronize(m.copies); }},
      {"cudaStreamQuery", [&](machine const& m) { return cudaStreamQuery(m.main); }},
      {"cudaDeviceSynchronize", [&](machine const&) { return cudaDeviceSynchronize(); }},
      {"cudaMemcpy", [&](machine const& m) { return cudaMemcpy(m.x, m.result, bytes, cudaMemcpyHostToDevice); }},
      {"plain memory",
       [&](machine const& m) { return cudaMemcpyAsync(m.x, plain, bytes, cudaMemcpyHostToDevice, m.main); }},
  };
  for (auto const& [name, call] : calls) {
    CAPTURE(name);
    machine const m(1);
    m.begin();
    m.kernel(1, m.main);
    CHECK(call(m) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaMemsetAsync(m.x, 0, 4, m.main) == cudaErrorStreamCaptureInvalidated);
    m.check_failed(cudaErrorStreamCaptureInvalidated);
  }
  machine const m(1);
  m.begin(cudaStreamCaptureModeRelaxed);
  ok(cudaMalloc(&p, 4));  // one's own risk there
  cudaGraph_t graph = nullptr;
  ok(m.end(graph));
  ok(cudaGraphDestroy(graph));
}

TEST_CASE("streams join a capture by its events, and have to be joined again") {
  SUBCASE("work that is not joined") {
    machine const m(1);
    m.begin();
    m.fork_copies();
    m.kernel(1, m.copies);
    m.check_failed(cudaErrorStreamCaptureUnjoined);
  }
  SUBCASE("work behind the event by which a stream was joined") {
    machine const m(1);
    m.begin();
    m.fork_copies();
    m.kernel(1, m.copies);
    m.join_copies();
    m.kernel(1, m.copies);
    m.check_failed(cudaErrorStreamCaptureUnjoined);
  }
  SUBCASE("a stream without work of its own") {
    machine const m(1);
    m.begin();
    m.kernel(1, m.main);
    m.fork_copies();
    cudaGraph_t graph = nullptr;
    ok(m.end(graph));
    ok(cudaGraphDestroy(graph));
  }
  SUBCASE("an event from before the capture") {
    machine const m(1);
    m.kernel(1, m.copies);
    ok(cudaEventRecord(m.fork, m.copies));
    m.begin();
    CHECK(cudaStreamWaitEvent(m.main, m.fork) == cudaErrorStreamCaptureIsolation);
    m.check_failed(cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("an event of a capture, after it") {
    machine const m(1);
    m.begin();
    m.kernel(1, m.main);
    ok(cudaEventRecord(m.fork, m.main));
    cudaGraph_t graph = nullptr;
    ok(m.end(graph));
    CHECK(cudaStreamWaitEvent(m.copies, m.fork) == cudaErrorCapturedEvent);
    CHECK(cudaEventSynchronize(m.fork) == cudaErrorCapturedEvent);
    CHECK(cudaEventQuery(m.fork) == cudaErrorCapturedEvent);
    ok(cudaEventRecord(m.fork, m.copies));  // recorded anew it is an event like others
    ok(cudaStreamWaitEvent(m.main, m.fork));
    ok(cudaEventSynchronize(m.fork));
    ok(cudaGraphDestroy(graph));
  }
  SUBCASE("an event of a capture, during it") {
    machine const m(1);
    m.begin();
    ok(cudaEventRecord(m.fork, m.main));
    CHECK(cudaEventQuery(m.fork) == cudaErrorCapturedEvent);
    m.check_failed(cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("two captures") {
    machine const m(1);
    m.begin();
    ok(cudaStreamBeginCapture(m.copies, cudaStreamCaptureModeGlobal));
    ok(cudaEventRecord(m.fork, m.main));
    CHECK(cudaStreamWaitEvent(m.copies, m.fork) == cudaErrorStreamCaptureMerge);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(m.copies, &graph) == cudaErrorStreamCaptureInvalidated);
    m.check_failed(cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("an end in another stream") {
    machine const m(1);
    m.begin();
    m.fork_copies();
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(m.copies, &graph) == cudaErrorStreamCaptureUnmatched);
    m.check_failed(cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("the default stream beside a capture of a stream that blocks") {
    machine const m(1);
    ok(cudaStreamBeginCapture(m.blocking, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemset(m.x, 0, 4) == cudaErrorStreamCaptureImplicit);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(m.blocking, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SUBCASE("the default stream itself") {
    machine const m(1);
    CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  }
  SUBCASE("a second begin, an end without a begin") {
    machine const m(1);
    cudaGraph_t graph = nullptr;
    CHECK(m.end(graph) == cudaErrorIllegalState);
    m.begin();
    CHECK(cudaStreamBeginCapture(m.main, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
    ok(m.end(graph));
    ok(cudaGraphDestroy(graph));
  }
}

}  // namespace
