// Operations that touch the same bytes without an order are found, whichever order the device takes: each kind of missing
// wait is planted, and is no race with the wait. Programs at random have a race exactly where their dependences leave one.
#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace neap::testing;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }

__global__ void copy_kernel(float const* from, float* to, int n) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
/// Every second element.
__global__ void set_every_other(float* x, int first, int n) {
  int const i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + first;
  if (i < n) x[i] = 1;
}

constexpr int n = 300;
constexpr std::size_t bytes = n * sizeof(float);

/// Three streams, events and memory: what a planned step has.
struct machine {
  cudaStream_t a = nullptr, b = nullptr, c = nullptr;
  cudaEvent_t first = nullptr, second = nullptr;
  float *x = nullptr, *y = nullptr, *z = nullptr;  // on the device
  float *host = nullptr, *other = nullptr;         // pinned

  machine() {
    for (auto* s : {&a, &b, &c}) ok(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (auto* e : {&first, &second}) ok(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    for (auto* p : {&x, &y, &z}) {
      ok(cudaMalloc(p, bytes));
      ok(cudaMemset(*p, 0, bytes));
    }
    for (auto* p : {&host, &other}) ok(cudaMallocHost(p, bytes));
    ok(cudaDeviceSynchronize());
  }
  ~machine() {
    for (auto s : {a, b, c}) cudaStreamDestroy(s);
    for (auto e : {first, second}) cudaEventDestroy(e);
    for (auto* p : {x, y, z}) cudaFree(p);
    for (auto* p : {host, other}) cudaFreeHost(p);
  }
  machine(machine const&) = delete;
  machine& operator=(machine const&) = delete;

  void kernel(float const* from, float* to, cudaStream_t s) const { copy_kernel<<<3, 128, 0, s>>>(from, to, n); }
  void load(float const* from, float* to, cudaStream_t s) const {
    ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s));
  }
  void store(float const* from, float* to, cudaStream_t s) const {
    ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s));
  }
  /// `later` goes on when what `earlier` has now is done.
  void order(cudaStream_t earlier, cudaStream_t later, cudaEvent_t e) const {
    ok(cudaEventRecord(e, earlier));
    ok(cudaStreamWaitEvent(later, e));
  }
};

/// A program with a wait that may be left out.
struct planted {
  char const* name;
  char const *one, *two;  // parts of the names of the two operations
  void (*run)(machine const&, bool wait);
};

planted const all[] = {
    {"a kernel reads what a kernel of another stream writes", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       if (wait) m.order(m.a, m.b, m.first);
       m.kernel(m.y, m.z, m.b);
     }},
    {"a kernel overwrites what another stream reads", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       if (wait) m.order(m.a, m.b, m.first);
       m.kernel(m.z, m.x, m.b);
     }},
    {"two streams write the same bytes", "copy_kernel", "cudaMemsetAsync",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       if (wait) m.order(m.a, m.b, m.first);
       ok(cudaMemsetAsync(m.y, 0, 4, m.b));
     }},
    {"a kernel reads before its operand is loaded", "copy_kernel", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.load(m.host, m.x, m.b);
       if (wait) m.order(m.b, m.a, m.first);
       m.kernel(m.x, m.y, m.a);
     }},
    {"bytes are used again before they are stored", "copy_kernel", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.store(m.x, m.host, m.b);
       if (wait) m.order(m.b, m.a, m.first);
       m.kernel(m.y, m.x, m.a);
     }},
    {"a load overwrites bytes that a kernel still reads", "cudaMemcpyAsync", "copy_kernel",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       if (wait) m.order(m.a, m.b, m.first);
       m.load(m.host, m.x, m.b);
     }},
    {"a load begins before the store of the same pinned memory has ended", "cudaMemcpyAsync", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.store(m.x, m.host, m.b);
       if (wait) m.order(m.b, m.c, m.first);
       m.load(m.host, m.y, m.c);
     }},
    {"two stores to the same pinned memory", "cudaMemcpyAsync", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.store(m.x, m.host, m.b);
       if (wait) m.order(m.b, m.c, m.first);
       m.store(m.y, m.host, m.c);
     }},
    {"an event is recorded too early", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       if (!wait) ok(cudaEventRecord(m.first, m.a));
       m.kernel(m.x, m.y, m.a);
       if (wait) ok(cudaEventRecord(m.first, m.a));
       ok(cudaStreamWaitEvent(m.b, m.first));
       m.kernel(m.y, m.z, m.b);
     }},
    {"another stream waits than the one that reads", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       m.order(m.a, wait ? m.b : m.c, m.first);
       m.kernel(m.y, m.z, m.b);
     }},
    {"an order by way of a third stream", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       m.order(m.a, m.c, m.first);
       if (wait) m.order(m.c, m.b, m.second);
       m.kernel(m.y, m.z, m.b);
     }},
    {"the default stream does not wait for streams that do not block", "copy_kernel", "cudaMemset",
     [](machine const& m, bool wait) {
       m.kernel(m.x, m.y, m.a);
       if (wait) ok(cudaStreamSynchronize(m.a));
       ok(cudaMemset(m.y, 0, bytes));
     }},
    {"a copy of memory that is not pinned may still be under way when its call returns", "copy_kernel", "cudaMemcpy",
     [](machine const& m, bool wait) {
       std::vector<float> const rows(n, 2.0f);
       ok(cudaMemcpy(m.x, rows.data(), bytes, cudaMemcpyHostToDevice));
       if (wait) ok(cudaDeviceSynchronize());
       m.kernel(m.x, m.y, m.a);
     }},
    {"the program writes pinned memory that is still loaded", "the program writes", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.load(m.host, m.x, m.a);
       if (wait) ok(cudaStreamSynchronize(m.a));
       m.host[5] = 1;
     }},
    {"the program reads a result before it has arrived", "the program reads", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.kernel(m.y, m.x, m.a);
       m.store(m.x, m.host, m.a);
       if (wait) ok(cudaStreamSynchronize(m.a));
       CHECK((m.host[5] == 0 || !wait));
     }},
    {"the program waits for another stream than that of the store", "the program reads", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       m.store(m.x, m.host, m.b);
       ok(cudaStreamSynchronize(wait ? m.b : m.a));
       CHECK((m.host[5] == 0 || !wait));
     }},
    {"a graph's branches are not ordered", "copy_kernel", "copy_kernel",
     [](machine const& m, bool wait) {
       cudaGraph_t graph = nullptr;
       cudaGraphExec_t run = nullptr;
       ok(cudaStreamBeginCapture(m.a, cudaStreamCaptureModeGlobal));
       m.order(m.a, m.b, m.first);
       m.kernel(m.x, m.y, m.a);
       if (wait) m.order(m.a, m.b, m.first);
       m.kernel(m.y, m.z, m.b);
       m.order(m.b, m.a, m.second);
       ok(cudaStreamEndCapture(m.a, &graph));
       ok(cudaGraphInstantiate(&run, graph, 0));
       for (int step = 0; step < 3; ++step) ok(cudaGraphLaunch(run, m.a));
       ok(cudaStreamSynchronize(m.a));
       ok(cudaGraphExecDestroy(run));
       ok(cudaGraphDestroy(graph));
     }},
    {"the next batch is written while the graph that copies it is in flight", "the program writes", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       cudaGraph_t graph = nullptr;
       cudaGraphExec_t run = nullptr;
       ok(cudaStreamBeginCapture(m.a, cudaStreamCaptureModeGlobal));
       m.load(m.host, m.x, m.a);
       m.kernel(m.x, m.y, m.a);
       ok(cudaStreamEndCapture(m.a, &graph));
       ok(cudaGraphInstantiate(&run, graph, 0));
       for (int step = 0; step < 2; ++step) {
         m.host[0] = static_cast<float>(step);
         ok(cudaGraphLaunch(run, m.a));
         if (wait) ok(cudaStreamSynchronize(m.a));
       }
       ok(cudaStreamSynchronize(m.a));
       ok(cudaGraphExecDestroy(run));
       ok(cudaGraphDestroy(graph));
     }},
    {"a graph overwrites what a stream still reads", "copy_kernel", "cudaMemcpyAsync",
     [](machine const& m, bool wait) {
       cudaGraph_t graph = nullptr;
       cudaGraphExec_t run = nullptr;
       ok(cudaStreamBeginCapture(m.a, cudaStreamCaptureModeGlobal));
       m.kernel(m.y, m.x, m.a);
       ok(cudaStreamEndCapture(m.a, &graph));
       ok(cudaGraphInstantiate(&run, graph, 0));
       m.store(m.x, m.host, m.b);
       if (wait) m.order(m.b, m.a, m.first);
       ok(cudaGraphLaunch(run, m.a));
       ok(cudaStreamSynchronize(m.a));
       ok(cudaGraphExecDestroy(run));
       ok(cudaGraphDestroy(graph));
     }},
};

TEST_CASE("planted missing waits are found in every order of execution, and nothing with the wait") {
  for (auto const& p : all)
    for (std::uint64_t seed = 0; seed < 6; ++seed)
      for (bool const wait : {true, false}) {
        CAPTURE(p.name);
        CAPTURE(seed);
        CAPTURE(wait);
        simulated_device::reset(seed);
        machine const m;
        p.run(m, wait);
        std::string const races = simulated_device::races();
        CAPTURE(races);
        CHECK(simulated_device::faults() == "");
        if (wait) {
          CHECK(races == "");
        } else {
          CHECK(races.find(": nothing orders the two") != std::string::npos);
          CHECK(races.find(p.one) != std::string::npos);
          CHECK(races.find(p.two) != std::string::npos);
        }
      }
}

TEST_CASE("kernels race by the very bytes that they touch") {
  for (int const second : {0, 1}) {
    simulated_device::reset(3);
    machine const m;
    set_every_other<<<2, 128, 0, m.a>>>(m.x, 0, n);
    set_every_other<<<2, 128, 0, m.b>>>(m.x, second, n);
    ok(cudaDeviceSynchronize());
    CHECK((simulated_device::races() == "") == (second == 1));
    CHECK(simulated_device::faults() == "");
  }
}

TEST_CASE("reads do not race, and neither do an allocation's bytes with those of one that was freed") {
  simulated_device::reset(3);
  machine const m;
  m.kernel(m.x, m.y, m.a);
  m.kernel(m.x, m.z, m.b);
  m.store(m.x, m.host, m.c);
  void* p = nullptr;
  ok(cudaMalloc(&p, 64));
  ok(cudaMemsetAsync(p, 0, 64, m.a));
  ok(cudaFree(p));
  ok(cudaMalloc(&p, 64));
  ok(cudaMemsetAsync(p, 0, 64, m.b));
  ok(cudaFree(p));
  CHECK(simulated_device::races() == "");
}

/// A program at random: fills and copies of parts of one block, on streams, with events and waits of the host. Knows by
/// itself which operations precede which.
bool random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto const below = [&](std::size_t k) { return static_cast<std::size_t>(random() % k); };
  constexpr std::size_t size = 128, stream_count = 3, event_count = 3;
  char* block = nullptr;
  ok(cudaMalloc(&block, size));
  ok(cudaMemset(block, 0, size));
  ok(cudaDeviceSynchronize());
  std::vector<cudaStream_t> streams(stream_count);
  std::vector<cudaEvent_t> events(event_count);
  for (auto& s : streams) ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (auto& e : events) ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));

  using set = std::vector<bool>;  // of operations
  struct op {
    std::size_t read_begin, read_end, write_begin, write_end;
    set before;
  };
  std::vector<op> ops;
  set host;
  std::vector<set> at_stream(stream_count), at_event(event_count);
  auto const join = [](set& into, set const& other) {
    if (into.size() < other.size()) into.resize(other.size(), false);
    for (std::size_t k = 0; k < other.size(); ++k)
      if (other[k]) into[k] = true;
  };
  for (std::size_t left = 3 + below(16); left; --left) {
    std::size_t const s = below(stream_count), e = below(event_count);
    switch (below(8)) {
      case 0:
        ok(cudaEventRecord(events[e], streams[s]));
        at_event[e] = at_stream[s];
        join(at_event[e], host);
        break;
      case 1:
      case 2:
        ok(cudaStreamWaitEvent(streams[s], events[e]));
        join(at_stream[s], at_event[e]);
        break;
      case 3:
        if (below(3)) break;
        ok(cudaStreamSynchronize(streams[s]));
        join(host, at_stream[s]);
        break;
      default: {
        std::size_t const length = 1 + below(8), to = below(size - length + 1), from = below(size - length + 1);
        bool const copies = below(2) && (from + length <= to || to + length <= from);
        if (copies) ok(cudaMemcpyAsync(block + to, block + from, length, cudaMemcpyDeviceToDevice, streams[s]));
        else ok(cudaMemsetAsync(block + to, 1, length, streams[s]));
        join(at_stream[s], host);
        ops.push_back({copies ? from : 0, copies ? from + length : 0, to, to + length, at_stream[s]});
        at_stream[s].resize(std::max(at_stream[s].size(), ops.size()), false);
        at_stream[s][ops.size() - 1] = true;
      }
    }
  }
  bool races = false;
  auto const meet = [](std::size_t b1, std::size_t e1, std::size_t b2, std::size_t e2) { return b1 < e2 && b2 < e1; };
  for (std::size_t k = 0; k < ops.size(); ++k)
    for (std::size_t j = 0; j < k; ++j) {
      if (j < ops[k].before.size() && ops[k].before[j]) continue;
      op const &x = ops[j], &y = ops[k];
      races = races || meet(x.write_begin, x.write_end, y.write_begin, y.write_end) ||
              meet(x.write_begin, x.write_end, y.read_begin, y.read_end) ||
              meet(x.read_begin, x.read_end, y.write_begin, y.write_end);
    }
  ok(cudaDeviceSynchronize());
  for (auto s : streams) ok(cudaStreamDestroy(s));
  for (auto e : events) ok(cudaEventDestroy(e));
  ok(cudaFree(block));
  return races;
}

TEST_CASE("programs at random have races exactly where their dependences leave some") {
  int with_races = 0;
  constexpr int runs = 3000;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    simulated_device::reset(seed);
    bool const expected = random_program(seed);
    with_races += expected;
    REQUIRE((simulated_device::races() != "") == expected);
    REQUIRE(simulated_device::faults() == "");
  }
  CHECK(with_races > runs / 5);
  CHECK(with_races < runs * 4 / 5);
}

}  // namespace
