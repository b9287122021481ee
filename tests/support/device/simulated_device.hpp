// A CUDA device for tests on machines without one. A program that is linked with neap_simulated_cudart in place of the
// CUDA runtime runs unchanged: its kernels by the interpreter of PTX (support/ptx), with all of its checks, and the work
// of its streams in a random order among those that CUDA allows.
//
//   simulated_device::reset(7);                 // a fresh device; the seed chooses the order
//   neap::cuda_backend backend;                 // any code for the CUDA runtime
//   ...
//   CHECK(simulated_device::faults() == "");    // of kernels, copies and calls
//   CHECK(simulated_device::races() == "");     // of operations that nothing orders
//
// Work that is issued to a stream waits until something demands it: a synchronisation, or chance. Functions of the CUDA
// runtime that are not simulated are undefined symbols for the linker.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap::testing {

struct device_options {
  int devices = 1;                            // 0: cudaGetDeviceCount gives cudaErrorNoDevice
  int driver = 13000;                         // CUDA version of the driver; 0: no driver, below 13000: too old
  std::size_t memory = std::size_t{1} << 30;  // bytes of device memory
  int multiprocessors = 4;
  int major = 8, minor = 0;        // compute capability
  std::uint64_t instructions = 0;  // that the warps of a kernel may execute; 0: 2^31
  bool keep_running = false;       // a fault of a kernel is only reported: no call fails after it

  /// Bytes of shared memory that a thread block may have, on request.
  std::size_t max_shared() const {
    bool const of_servers = (major == 8 && (minor == 0 || minor == 7));
    return std::size_t{1024} * (major >= 9 && major < 12 ? 227 : of_servers ? 163 : 99);
  }
};

enum class device_work {
  kernel,
  copy_to_device,
  copy_to_host,
  copy_on_device,
  copy_on_host,
  fill,
  host_function,
  library,  // of cuBLASLt or cuDNN
};

/// An operation that was issued to a stream, or run by a launch of a graph.
struct device_operation {
  device_work kind{};
  std::string name;          // of a kernel, without its parameters
  int stream = 0;            // 0: the legacy default stream; of a graph: the stream of its launch
  std::size_t graph = 0;     // number of the launch of a graph, from 1 on; 0: none
  std::size_t bytes = 0;     // that a copy or a fill moves
  std::size_t position = 0;  // in the order of execution, from 1 on; 0: not executed yet
};

struct device_counts {
  std::uint64_t instructions = 0;  // of kernels, one a thread
  std::size_t kernels = 0, copies = 0, fills = 0, graph_launches = 0, synchronisations = 0;
  std::size_t memory = 0, peak_memory = 0;                                 // bytes of device memory in use
  std::size_t pinned = 0;                                                  // bytes of pinned host memory
  std::size_t streams = 0, events = 0, graphs = 0, executable_graphs = 0;  // that were not destroyed
  std::size_t bank_conflicts = 0, global_sectors = 0, global_requests = 0;
};

namespace simulated_device {

/// A fresh device: no memory, streams or graphs, nothing reported. Seed 0: work is executed in the order of issue, at the
/// latest possible moment; each other seed chooses an order, of operations and of the warps in kernels.
void reset(std::uint64_t seed = 0, device_options const& options = {});

/// What kernels, copies and calls did wrong, a line each; empty if nothing. Executes all work first.
std::string faults();
/// Operations that touch the same bytes, at least one of them writing, although nothing orders them: a line each pair.
/// Executes all work first.
std::string races();
/// In the order of issue.
std::vector<device_operation> operations();
device_counts counts();
/// How often a function of the runtime was called: calls("cudaMalloc").
std::size_t calls(std::string_view function);

/// The nth call of a function from now on fails, and does nothing else: fail("cudaGraphInstantiate", 1,
/// cudaErrorMemoryAllocation). "launch" stands for all functions that launch kernels.
void fail(std::string_view function, std::size_t nth, cudaError_t error);
/// The nth operation of a kind that is executed from now on fails: so does every call after it, as after a fault of a
/// kernel.
void fail_execution(device_work kind, std::size_t nth, cudaError_t error);

/// The program's own accesses of pinned host memory, for the report of races.
void host_reads(void const* from, std::size_t bytes, std::string_view name);
void host_writes(void const* from, std::size_t bytes, std::string_view name);

}  // namespace simulated_device

}  // namespace neap::testing
