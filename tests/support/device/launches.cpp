// Launches of kernels: what nvcc calls from the program's code, and what the runtime has for them.
#include "call.hpp"

#include <cuda_runtime_api.h>

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

namespace {

constexpr std::size_t default_shared = 48 * 1024;

/// "void space::kernel<types>(parameters)" as "space::kernel<types>".
std::string short_name(std::string const& symbol) {
  int status = 0;
  char* const text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : symbol;
  std::free(text);
  if (name.starts_with("void ")) name.erase(0, 5);
  int depth = 0;
  for (std::size_t k = 0; k < name.size(); ++k) {
    depth += (name[k] == '<') - (name[k] == '>' && (k == 0 || name[k - 1] != '-'));
    if (depth == 0 && name[k] == '(' && name.compare(k, 11, "(anonymous ") != 0) {
      name.resize(k);
      break;
    }
  }
  constexpr std::size_t most = 160;
  if (name.size() > most) name = name.substr(0, most) + "...";
  return name;
}

registered_kernel const* kernel_of(void const* function) {
  auto const& all = simulation::program().kernels;
  auto const it = all.find(function);
  return it == all.end() ? nullptr : &it->second;
}

struct linked_kernel {
  ptx::module const& module;
  ptx::function_text const& text;
  ptx::kernel_code const& code;

  std::size_t static_shared() const {
    std::size_t sum = 0;
    for (auto const& v : code.shared) sum = (sum + v.align - 1) / v.align * v.align + v.bytes;
    return sum;
  }
};
linked_kernel link(simulation& s, registered_kernel const& k) {
  ptx::module const& m = k.binary->module(10 * s.options.major + s.options.minor);
  return {m, m.kernel(k.symbol), s.device.bound(m, k.symbol)};
}

/// Bytes of dynamic shared memory that a launch may have.
std::size_t max_dynamic(simulation const& s, registered_kernel const& k, std::size_t static_shared) {
  auto const it = s.dynamic_shared.find(&k);
  std::size_t const by_default = default_shared - std::min(default_shared, static_shared);
  return it == s.dynamic_shared.end() ? by_default : static_cast<std::size_t>(it->second);
}

cudaError_t error_of(ptx::report const& r) {
  for (auto const& f : r.faults) switch (f.kind) {
      case ptx::fault_kind::bounds: return cudaErrorIllegalAddress;
      case ptx::fault_kind::alignment: return cudaErrorMisalignedAddress;
      case ptx::fault_kind::assertion: return cudaErrorAssert;
      case ptx::fault_kind::deadlock: return cudaErrorLaunchTimeout;
      default: break;
    }
  return cudaSuccess;
}

struct launch_shape {
  ::dim3 grid, block;
  std::size_t shared = 0;
  bool cooperative = false;
};

outcome run_kernel(simulation& s, registered_kernel const& k, launch_shape const& shape,
                   std::vector<std::vector<std::uint8_t>> const& arguments) {
  auto const size = [](::dim3 d) { return ptx::dim3{d.x, d.y, d.z}; };
  outcome out;
  s.device.options.seed = s.queue.shuffled() ? s.queue.random()() | 1 : 0;
  s.device.options.resident_blocks = shape.cooperative ? 0xffffffffu : ptx::launch_options{}.resident_blocks;
  try {
    ptx::report const r = s.device.launch_bytes(link(s, k).module, k.symbol, size(shape.grid), size(shape.block),
                                                static_cast<std::uint32_t>(shape.shared), arguments);
    for (auto const& f : r.faults)
      s.report(k.name + ": " + f.message + (f.times > 1 ? " (" + std::to_string(f.times) + " threads)" : ""));
    s.counted.instructions += r.counts.instructions;
    s.counted.bank_conflicts += r.counts.bank_conflicts;
    s.counted.global_sectors += r.counts.global_sectors;
    s.counted.global_requests += r.counts.global_requests;
    out.error = error_of(r);
    constexpr double seconds_per_warp_instruction = 1e-10;
    out.seconds = 2e-6 + seconds_per_warp_instruction * static_cast<double>(r.counts.warp_instructions);
  } catch (ptx::error const& problem) {
    s.report(k.name + ": " + problem.what());
    out.error = cudaErrorLaunchFailure;
    return out;
  }
  out.reads = s.device.accessed().reads;
  out.writes = s.device.accessed().writes;
  return out;
}

cudaError_t launch(simulation& s, void const* function, launch_shape const& shape, void** arguments,
                   cudaStream_t handle) {
  registered_kernel const* const k = kernel_of(function);
  if (!k) return cudaErrorInvalidDeviceFunction;
  stream_state* const stream = s.stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  linked_kernel const l = link(s, *k);
  auto const& [grid, block, shared, cooperative] = shape;
  std::uint64_t const threads = std::uint64_t{block.x} * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535 ||
      threads > 1024 || block.z > 64)
    return cudaErrorInvalidConfiguration;
  if (threads > l.text.max_threads) return cudaErrorInvalidValue;
  if (shared > max_dynamic(s, *k, l.static_shared())) return cudaErrorInvalidValue;
  std::vector<std::vector<std::uint8_t>> values;
  for (std::size_t p = 0; p < l.code.parameters.size(); ++p) {
    auto const* const bytes = static_cast<std::uint8_t const*>(arguments[p]);
    values.emplace_back(bytes, bytes + l.code.parameters[p].bytes);
  }
  work w{device_work::kernel, k->name, 0, {}};
  w.run = [&s, k, shape, values = std::move(values)] { return run_kernel(s, *k, shape, values); };
  return s.submit(*stream, std::move(w));
}

cudaError_t launch_call(char const* name, void const* function, launch_shape const& shape, void** arguments,
                        cudaStream_t stream) {
  return call(name, [&](simulation& s) {
    if (cudaError_t const e = s.planted_failure("launch")) return e;
    try {
      return launch(s, function, shape, arguments, stream);
    } catch (ptx::error const& problem) {
      registered_kernel const* const k = kernel_of(function);
      s.report((k ? k->name : "kernel") + ": " + problem.what());
      return cudaErrorNoKernelImageForDevice;
    }
  });
}

struct configuration {
  ::dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<configuration> configurations;

cudaError_t occupancy(char const* name, int* blocks, void const* function, int threads, std::size_t shared) {
  return call(name, [&](simulation& s) {
    registered_kernel const* const k = kernel_of(function);
    if (!k) return cudaErrorInvalidDeviceFunction;
    if (threads <= 0) return cudaErrorInvalidValue;
    linked_kernel const l = link(s, *k);
    std::size_t const per = l.static_shared() + shared + 1024;
    std::size_t n = std::min<std::size_t>(32, 2048u / static_cast<unsigned>((threads + 31) / 32 * 32));
    n = std::min(n, (s.options.max_shared() + 1024) / per);
    *blocks = threads > static_cast<int>(l.text.max_threads) ? 0 : static_cast<int>(n);
    return cudaSuccess;
  });
}

}  // namespace

program_registry& simulation::program() {
  static auto* const all = new program_registry;  // outlives the program's own statics
  return *all;
}

}  // namespace neap::testing

using namespace neap::testing;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
char __cudaInitModule(void** handle);
void __cudaRegisterFunction(void** handle, char const* host, char* device, char const* name, int thread_limit, uint3*,
                            uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void** handle, char* host, char* device, char const* name, int ext, std::size_t bytes,
                       int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream);

void** __cudaRegisterFatBinary(void* wrapper) {
  auto& all = simulation::program().binaries;
  all.push_back(std::make_unique<fat_binary>(wrapper));
  return reinterpret_cast<void**>(all.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, char const* host, char*, char const* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  simulation::program().kernels[host] = {reinterpret_cast<fat_binary*>(handle), name, short_name(name)};
}
void __cudaRegisterVar(void** handle, char* host, char*, char const* name, int, std::size_t bytes, int, int) {
  simulation::program().variables[host] = {reinterpret_cast<fat_binary*>(handle), name, bytes};
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return cudaErrorInvalidConfiguration;
  configuration const c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return kernel_of(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return launch_call("cudaLaunchKernel", kernel, {grid, block, shared}, arguments, stream);
}

cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  return launch_call("cudaLaunchKernel", function, {grid, block, shared}, arguments, stream);
}
cudaError_t cudaLaunchCooperativeKernel(void const* function, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared, cudaStream_t stream) {
  return launch_call("cudaLaunchCooperativeKernel", function, {grid, block, shared, true}, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* function, void** arguments) {
  launch_shape shape{config->gridDim, config->blockDim, config->dynamicSmemBytes};
  for (unsigned k = 0; k < config->numAttrs; ++k) {
    auto const id = config->attrs[k].id;
    if (id == cudaLaunchAttributeCooperative) shape.cooperative = config->attrs[k].val.cooperative != 0;
    // A kernel that may begin early is run as one that does not.
    else if (id != cudaLaunchAttributeIgnore && id != cudaLaunchAttributeProgrammaticStreamSerialization &&
             id != cudaLaunchAttributePriority)
      return call("cudaLaunchKernelExC", [&](simulation& s) {
        s.report("cudaLaunchKernelExC: attribute " + std::to_string(id) + " is not simulated");
        return cudaErrorNotSupported;
      });
  }
  return launch_call("cudaLaunchKernelExC", function, shape, arguments, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, void const* function) {
  return call("cudaFuncGetAttributes", [&](simulation& s) {
    registered_kernel const* const k = kernel_of(function);
    if (!k) return cudaErrorInvalidDeviceFunction;
    linked_kernel const l = link(s, *k);
    *out = {};
    out->sharedSizeBytes = l.static_shared();
    out->localSizeBytes = l.code.local_end;
    out->maxThreadsPerBlock = static_cast<int>(l.text.max_threads);
    out->numRegs = 32;
    out->ptxVersion = out->binaryVersion = l.module.target;
    out->maxDynamicSharedSizeBytes = static_cast<int>(max_dynamic(s, *k, l.static_shared()));
    out->preferredShmemCarveout = -1;
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetAttribute(void const* function, cudaFuncAttribute which, int value) {
  return call("cudaFuncSetAttribute", [&](simulation& s) {
    registered_kernel const* const k = kernel_of(function);
    if (!k) return cudaErrorInvalidDeviceFunction;
    if (which == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) {
      s.report("cudaFuncSetAttribute: attribute " + std::to_string(which) + " is not simulated");
      return cudaErrorNotSupported;
    }
    if (value < 0 || link(s, *k).static_shared() + static_cast<std::size_t>(value) > s.options.max_shared())
      return cudaErrorInvalidValue;
    s.dynamic_shared[k] = value;
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetCacheConfig(void const* function, cudaFuncCache) {
  return call("cudaFuncSetCacheConfig",
              [&](simulation&) { return kernel_of(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction; });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void const* function, int threads,
                                                          std::size_t shared) {
  return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessor", blocks, function, threads, shared);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void const* function, int threads,
                                                                   std::size_t shared, unsigned) {
  return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", blocks, function, threads, shared);
}

}  // extern "C"
