// Functions of the CUDA runtime, but for launches: devices, errors, memory, streams, events, captures, graphs.
#include "call.hpp"
#include "errors.hpp"

#include <cuda_runtime_api.h>

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing { namespace {

constexpr double copy_seconds = 4e-6, seconds_per_link_byte = 1 / 25e9, seconds_per_device_byte = 1 / 1e12;

access_range range_of(void const* at, std::size_t bytes) {
  return {simulation::address(at), simulation::address(at) + bytes};
}

/// A copy of rows; a plain copy has one.
struct copy_shape {
  void* to = nullptr;
  void const* from = nullptr;
  std::size_t width = 0, rows = 1, to_pitch = 0, from_pitch = 0;  // bytes

  std::size_t bytes() const { return width * rows; }
  std::size_t to_span() const { return rows ? (rows - 1) * to_pitch + width : 0; }
  std::size_t from_span() const { return rows ? (rows - 1) * from_pitch + width : 0; }
};

/// Host memory of a copy: pinned, or of the program, in which case the bytes are taken at once.
struct host_side {
  bool pinned = false;
  std::shared_ptr<std::vector<std::byte>> staged;
};

void touch(std::vector<access_range>& list, void const* at, copy_shape const& c, std::size_t pitch) {
  auto const* const p = static_cast<std::byte const*>(at);
  for (std::size_t r = 0; r < c.rows; ++r) list.push_back(range_of(p + r * pitch, c.width));
}

cudaError_t copy(simulation& s, std::string const& name, cudaStream_t handle, copy_shape c, cudaMemcpyKind kind,
                 bool waits) {
  stream_state* const stream = s.stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  bool const to_device = simulation::of_device(c.to), from_device = simulation::of_device(c.from);
  cudaMemcpyKind const is = to_device     ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                            : from_device ? cudaMemcpyDeviceToHost
                                          : cudaMemcpyHostToHost;
  if (waits)
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
  if (c.bytes() == 0) return cudaSuccess;
  if (kind != cudaMemcpyDefault && kind != is) {
    s.report(name + ": the kind of the copy is not that of its addresses");
    return cudaErrorInvalidValue;
  }
  if (c.rows > 1 && (c.to_pitch < c.width || c.from_pitch < c.width)) return cudaErrorInvalidPitchValue;
  if ((to_device && !s.find(c.to, c.to_span(), name).bytes) ||
      (from_device && !s.find(c.from, c.from_span(), name).bytes))
    return cudaErrorInvalidValue;
  bool const to_pinned = !to_device && s.pinned.find(c.to), from_pinned = !from_device && s.pinned.find(c.from);
  auto const outside = [&](void const* p, std::size_t n) {
    pinned_block const* const b = s.pinned.find(p);
    return b && static_cast<std::byte const*>(p) + n > b->begin + b->bytes;
  };
  if ((to_pinned && outside(c.to, c.to_span())) || (from_pinned && outside(c.from, c.from_span()))) {
    s.report(name + ": copies past the end of pinned memory");
    return cudaErrorInvalidValue;
  }
  if (stream->in && ((!to_device && !to_pinned) || (!from_device && !from_pinned))) {
    s.report(name + ": a copy of memory that is not pinned, in a capture");
    s.invalidate(*stream->in);
    return cudaErrorStreamCaptureUnsupported;
  }
  if (to_device && from_device && simulation::address(c.to) < simulation::address(c.from) + c.from_span() &&
      simulation::address(c.from) < simulation::address(c.to) + c.to_span() && c.rows == 1)
    s.report(name + ": source and destination overlap");

  // Of memory that is not pinned, the device has a copy when the call returns, and may still be writing it to its place: a
  // stream that does not wait for this one waits for nothing.
  bool const staged = waits && to_device && !from_device && !from_pinned;
  if (staged)
    if (cudaError_t const e = s.wait(s.mark(*stream))) return e;

  host_side source;
  if (!from_device && !from_pinned) {
    auto const* const p = static_cast<std::byte const*>(c.from);
    source.staged = std::make_shared<std::vector<std::byte>>(c.bytes());
    for (std::size_t r = 0; r < c.rows; ++r)
      std::memcpy(source.staged->data() + r * c.width, p + r * c.from_pitch, c.width);
  }
  work w;
  w.kind = is == cudaMemcpyDeviceToDevice ? device_work::copy_on_device
           : is == cudaMemcpyHostToDevice ? device_work::copy_to_device
           : is == cudaMemcpyDeviceToHost ? device_work::copy_to_host
                                          : device_work::copy_on_host;
  w.name = name;
  w.bytes = c.bytes();
  w.run = [=, &s] {
    outcome out;
    simulation::device_bytes to, from;
    std::byte const* source_bytes = nullptr;
    std::byte* target_bytes = nullptr;
    if (to_device) to = s.find(c.to, c.to_span(), name);
    else target_bytes = s.pinned.for_device(c.to);
    if (from_device) from = s.find(c.from, c.from_span(), name);
    else source_bytes = source.staged ? source.staged->data() : s.pinned.for_device(c.from);
    if ((to_device && !to.bytes) || (from_device && !from.bytes)) {
      out.error = cudaErrorIllegalAddress;
      return out;
    }
    for (std::size_t r = 0; r < c.rows; ++r) {
      void* const t = to_device ? static_cast<void*>(to.bytes + r * c.to_pitch) : target_bytes + r * c.to_pitch;
      void const* const f = from_device ? static_cast<void const*>(from.bytes + r * c.from_pitch)
                                        : source_bytes + r * (source.staged ? c.width : c.from_pitch);
      std::memmove(t, f, c.width);
      if (!to_device) continue;
      if (from_device) std::memmove(to.state + r * c.to_pitch, from.state + r * c.from_pitch, c.width);
      else std::memset(to.state + r * c.to_pitch, ptx::byte_written, c.width);
    }
    if (from_device || from_pinned) touch(out.reads, c.from, c, c.from_pitch);
    if (to_device || to_pinned) touch(out.writes, c.to, c, c.to_pitch);
    out.seconds = copy_seconds + static_cast<double>(c.bytes()) *
                                     (to_device && from_device ? seconds_per_device_byte : seconds_per_link_byte);
    return out;
  };
  if (from_pinned) touch(w.pinned_reads, c.from, c, c.from_pitch);
  if (to_pinned) touch(w.pinned_writes, c.to, c, c.to_pitch);
  operation_ptr made;
  if (cudaError_t const e = s.submit(*stream, std::move(w), &made)) return e;
  if (!made) return cudaSuccess;
  bool const to_program = !to_device && !to_pinned;
  return to_program || (waits && !(to_device && from_device) && !staged) ? s.wait(made) : cudaSuccess;
}

cudaError_t fill(simulation& s, std::string const& name, cudaStream_t handle, void* to, std::size_t pitch, int value,
                 std::size_t width, std::size_t rows) {
  stream_state* const stream = s.stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  copy_shape const c{to, nullptr, width, rows, pitch, 0};
  if (c.bytes() == 0) return cudaSuccess;
  if (!s.find(to, c.to_span(), name).bytes) return cudaErrorInvalidValue;
  work w{device_work::fill, name, c.bytes(), {}};
  w.run = [=, &s] {
    outcome out;
    auto const p = s.find(to, c.to_span(), name);
    if (!p.bytes) {
      out.error = cudaErrorIllegalAddress;
      return out;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      std::memset(p.bytes + r * pitch, value, width);
      std::memset(p.state + r * pitch, ptx::byte_written, width);
    }
    touch(out.writes, to, c, pitch);
    out.seconds = 2e-6 + static_cast<double>(c.bytes()) * seconds_per_device_byte;
    return out;
  };
  return s.submit(*stream, std::move(w));
}

cudaError_t pinned_memory(simulation& s, void** out, std::size_t bytes) {
  if (cudaError_t const e = s.forbidden_in_capture()) return e;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  *out = s.pinned.allocate(bytes);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

/// The address of a __device__ variable, or null.
void* symbol_address(simulation& s, void const* symbol, std::size_t* bytes = nullptr) {
  auto const& all = simulation::program().variables;
  auto const it = all.find(symbol);
  if (it == all.end()) return nullptr;
  if (bytes) *bytes = it->second.bytes;
  auto const& m = it->second.binary->module(10 * s.options.major + s.options.minor);
  return reinterpret_cast<void*>(s.device.variable_of(m, it->second.name).address());
}

cudaError_t symbol_copy(simulation& s, std::string const& name, void const* symbol, std::size_t offset, void* other,
                        std::size_t bytes, bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
  auto* const p = static_cast<std::byte*>(symbol_address(s, symbol));
  if (!p) return cudaErrorInvalidSymbol;
  copy_shape const c = to_symbol ? copy_shape{p + offset, other, bytes, 1, bytes, bytes}
                                 : copy_shape{other, p + offset, bytes, 1, bytes, bytes};
  return copy(s, name, stream, c, kind, waits);
}

template <class F>
cudaError_t with_stream(char const* name, cudaStream_t handle, F&& f) {
  return call(name, [&](simulation& s) {
    stream_state* const stream = s.stream(handle);
    return stream ? f(s, *stream) : cudaErrorInvalidResourceHandle;
  });
}
template <class F>
cudaError_t with_event(char const* name, cudaEvent_t handle, F&& f) {
  return call(name, [&](simulation& s) {
    event_state* const event = s.event(handle);
    return event ? f(s, *event) : cudaErrorInvalidResourceHandle;
  });
}

/// -1: not simulated.
int attribute(device_options const& o, cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 * 1024;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(o.max_shared());
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(o.max_shared() + 1024);
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
    case cudaDevAttrTotalConstantMemory: return 64 * 1024;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxPitch: return 0x7fffffff;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrClockRate: return 1'410'000;
    case cudaDevAttrMemoryClockRate: return 1'215'000;
    case cudaDevAttrGlobalMemoryBusWidth: return 5120;
    case cudaDevAttrL2CacheSize: return 40 << 20;
    case cudaDevAttrMultiProcessorCount: return o.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrComputeCapabilityMajor: return o.major;
    case cudaDevAttrComputeCapabilityMinor: return o.minor;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported: return 1;
    case cudaDevAttrAsyncEngineCount: return 2;
    case cudaDevAttrIntegrated:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrComputeMode: return 0;
    default: return -1;
  }
}

}  // namespace

}  // namespace neap::testing

using namespace neap::testing;

extern "C" {

// ---- errors
cudaError_t cudaGetLastError() {
  std::lock_guard const held(simulation::lock());
  cudaError_t const e = std::exchange(last_error, cudaSuccess);
  cudaError_t const lost = simulation::current().lost();
  return lost != cudaSuccess ? lost : e;
}
cudaError_t cudaPeekAtLastError() {
  std::lock_guard const held(simulation::lock());
  cudaError_t const lost = simulation::current().lost();
  return lost != cudaSuccess ? lost : last_error;
}
char const* cudaGetErrorName(cudaError_t error) { return text_of_error(error).name; }
char const* cudaGetErrorString(cudaError_t error) { return text_of_error(error).text; }

// ---- devices
cudaError_t cudaDriverGetVersion(int* version) {
  std::lock_guard const held(simulation::lock());
  *version = simulation::current().options.driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return call("cudaGetDeviceCount", [&](simulation& s) {
    *count = s.options.devices;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](simulation& s) {
    *device = s.current_device;
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](simulation& s) {
    if (device < 0 || device >= s.options.devices) return cudaErrorInvalidDevice;
    if (device != 0) {
      s.report("cudaSetDevice: only device 0 is simulated");
      return cudaErrorNotSupported;
    }
    s.current_device = device;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    return s.synchronise_all();
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return call("cudaDeviceGetAttribute", [&](simulation& s) {
    if (device < 0 || device >= s.options.devices) return cudaErrorInvalidDevice;
    *value = attribute(s.options, which);
    if (*value >= 0) return cudaSuccess;
    s.report("cudaDeviceGetAttribute: attribute " + std::to_string(which) + " is not simulated");
    return cudaErrorInvalidValue;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return call("cudaGetDeviceProperties", [&](simulation& s) {
    if (device < 0 || device >= s.options.devices) return cudaErrorInvalidDevice;
    auto const of = [&](cudaDeviceAttr a) { return attribute(s.options, a); };
    auto const size_of = [&](cudaDeviceAttr a) { return static_cast<std::size_t>(attribute(s.options, a)); };
    *out = {};
    std::strcpy(out->name, "simulated device");
    out->totalGlobalMem = s.options.memory;
    out->major = s.options.major;
    out->minor = s.options.minor;
    out->multiProcessorCount = s.options.multiprocessors;
    out->sharedMemPerBlock = size_of(cudaDevAttrMaxSharedMemoryPerBlock);
    out->sharedMemPerBlockOptin = size_of(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    out->sharedMemPerMultiprocessor = size_of(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    out->reservedSharedMemPerBlock = size_of(cudaDevAttrReservedSharedMemoryPerBlock);
    out->totalConstMem = size_of(cudaDevAttrTotalConstantMemory);
    out->regsPerBlock = of(cudaDevAttrMaxRegistersPerBlock);
    out->regsPerMultiprocessor = of(cudaDevAttrMaxRegistersPerMultiprocessor);
    out->warpSize = 32;
    out->maxThreadsPerBlock = of(cudaDevAttrMaxThreadsPerBlock);
    out->maxThreadsPerMultiProcessor = of(cudaDevAttrMaxThreadsPerMultiProcessor);
    out->maxBlocksPerMultiProcessor = of(cudaDevAttrMaxBlocksPerMultiprocessor);
    for (int k = 0; k < 3; ++k) {
      out->maxThreadsDim[k] = k < 2 ? 1024 : 64;
      out->maxGridSize[k] = k == 0 ? 0x7fffffff : 65535;
    }
    out->memPitch = size_of(cudaDevAttrMaxPitch);
    out->textureAlignment = 512;
    out->memoryBusWidth = of(cudaDevAttrGlobalMemoryBusWidth);
    out->l2CacheSize = of(cudaDevAttrL2CacheSize);
    out->asyncEngineCount = 2;
    out->unifiedAddressing = out->concurrentKernels = out->cooperativeLaunch = out->hostRegisterSupported = 1;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&](simulation& s) {
    if (device < 0 || device >= s.options.devices) return cudaErrorInvalidDevice;
    std::strncpy(out, "0000:00:00.0", static_cast<std::size_t>(length));
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](simulation&) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

// ---- memory
cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  return call("cudaMalloc", [&](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    return s.allocate(out, bytes);
  });
}
cudaError_t cudaFree(void* p) {
  return call("cudaFree", [&](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    return s.release(p);
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&](simulation& s) {
    *total = s.options.memory;
    *free = s.options.memory - s.counted.memory;
    return cudaSuccess;
  });
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  return call("cudaMallocHost", [&](simulation& s) { return pinned_memory(s, out, bytes); });
}
cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](simulation& s) { return pinned_memory(s, out, bytes); });
}
cudaError_t cudaFreeHost(void* p) {
  return call("cudaFreeHost", [&](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    if (!p) return cudaSuccess;
    pinned_block const* const b = s.pinned.find(p);
    if (!b || b->begin != p || b->registered) return cudaErrorInvalidValue;
    s.synchronise_all();
    s.history.forget(range_of(p, b->bytes));
    s.pinned.release(p);
    return cudaSuccess;
  });
}
cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned) {
  return call("cudaHostRegister", [&](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    if (!p || bytes == 0 || simulation::of_device(p)) return cudaErrorInvalidValue;
    if (s.pinned.overlaps(p, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    s.pinned.pin(p, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* p) {
  return call("cudaHostUnregister", [&](simulation& s) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    pinned_block const* const b = s.pinned.find(p);
    if (!b || b->begin != p || !b->registered) return cudaErrorHostMemoryNotRegistered;
    s.synchronise_all();
    s.history.forget(range_of(p, b->bytes));
    s.pinned.release(p);
    return cudaSuccess;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, void const* p) {
  return call("cudaPointerGetAttributes", [&](simulation& s) {
    *out = {};
    out->device = -1;
    if (simulation::of_device(p)) {
      if (!s.allocation_of(p)) return cudaErrorInvalidValue;
      out->type = cudaMemoryTypeDevice;
      out->device = 0;
      out->devicePointer = const_cast<void*>(p);
    } else if (s.pinned.find(p)) {
      out->type = cudaMemoryTypeHost;
      out->device = 0;
      out->hostPointer = const_cast<void*>(p);
    } else {
      out->type = cudaMemoryTypeUnregistered;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](simulation& s) {
    return copy(s, "cudaMemcpy", nullptr, {to, from, bytes, 1, bytes, bytes}, kind, true);
  });
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&](simulation& s) {
    return copy(s, "cudaMemcpyAsync", stream, {to, from, bytes, 1, bytes, bytes}, kind, false);
  });
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, void const* from, std::size_t from_pitch, std::size_t width,
                         std::size_t rows, cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", [&](simulation& s) {
    return copy(s, "cudaMemcpy2D", nullptr, {to, from, width, rows, to_pitch, from_pitch}, kind, true);
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, void const* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", [&](simulation& s) {
    return copy(s, "cudaMemcpy2DAsync", stream, {to, from, width, rows, to_pitch, from_pitch}, kind, false);
  });
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call("cudaMemset", [&](simulation& s) { return fill(s, "cudaMemset", nullptr, to, bytes, value, bytes, 1); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync",
              [&](simulation& s) { return fill(s, "cudaMemsetAsync", stream, to, bytes, value, bytes, 1); });
}
cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t rows) {
  return call("cudaMemset2D",
              [&](simulation& s) { return fill(s, "cudaMemset2D", nullptr, to, pitch, value, width, rows); });
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t rows,
                              cudaStream_t stream) {
  return call("cudaMemset2DAsync",
              [&](simulation& s) { return fill(s, "cudaMemset2DAsync", stream, to, pitch, value, width, rows); });
}
cudaError_t cudaMemcpyToSymbol(void const* symbol, void const* from, std::size_t bytes, std::size_t offset,
                               cudaMemcpyKind kind) {
  return call("cudaMemcpyToSymbol", [&](simulation& s) {
    return symbol_copy(s, "cudaMemcpyToSymbol", symbol, offset, const_cast<void*>(from), bytes, true, kind, nullptr,
                       true);
  });
}
cudaError_t cudaMemcpyToSymbolAsync(void const* symbol, void const* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyToSymbolAsync", [&](simulation& s) {
    return symbol_copy(s, "cudaMemcpyToSymbolAsync", symbol, offset, const_cast<void*>(from), bytes, true, kind, stream,
                       false);
  });
}
cudaError_t cudaMemcpyFromSymbol(void* to, void const* symbol, std::size_t bytes, std::size_t offset,
                                 cudaMemcpyKind kind) {
  return call("cudaMemcpyFromSymbol", [&](simulation& s) {
    return symbol_copy(s, "cudaMemcpyFromSymbol", symbol, offset, to, bytes, false, kind, nullptr, true);
  });
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, void const* symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyFromSymbolAsync", [&](simulation& s) {
    return symbol_copy(s, "cudaMemcpyFromSymbolAsync", symbol, offset, to, bytes, false, kind, stream, false);
  });
}
cudaError_t cudaGetSymbolAddress(void** out, void const* symbol) {
  return call("cudaGetSymbolAddress", [&](simulation& s) {
    *out = symbol_address(s, symbol);
    return *out ? cudaSuccess : cudaErrorInvalidSymbol;
  });
}
cudaError_t cudaGetSymbolSize(std::size_t* out, void const* symbol) {
  return call("cudaGetSymbolSize",
              [&](simulation& s) { return symbol_address(s, symbol, out) ? cudaSuccess : cudaErrorInvalidSymbol; });
}

// ---- streams
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", [&](simulation& s) {
    if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *out = s.create_stream(flags != cudaStreamNonBlocking, priority);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](simulation& s) {
    if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *out = s.create_stream(flags != cudaStreamNonBlocking, 0);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return call("cudaStreamCreate", [&](simulation& s) {
    *out = s.create_stream(true, 0);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&](simulation& s) { return s.destroy_stream(stream); });
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* out) {
  return with_stream("cudaStreamGetFlags", stream, [&](simulation&, stream_state& s) {
    *out = s.blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* out) {
  return with_stream("cudaStreamGetPriority", stream, [&](simulation&, stream_state& s) {
    *out = s.priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* out) {
  return with_stream("cudaStreamGetId", stream, [&](simulation&, stream_state& s) {
    *out = static_cast<unsigned long long>(s.number);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return with_stream("cudaStreamSynchronize", stream, [](simulation& s, stream_state& which) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    return s.wait(which.last);
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return with_stream("cudaStreamQuery", stream, [](simulation& s, stream_state& which) {
    if (cudaError_t const e = s.forbidden_in_capture()) return e;
    s.queue.poll();
    if (which.last && !which.last->done) return cudaErrorNotReady;
    return s.wait(which.last);
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return with_stream("cudaStreamWaitEvent", stream, [&](simulation& s, stream_state& which) {
    event_state* const e = s.event(event);
    if (!e) return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventWaitDefault) {
      s.report("cudaStreamWaitEvent: flags are not simulated");
      return cudaErrorNotSupported;
    }
    return s.wait_for(which, *e);
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return with_stream("cudaLaunchHostFunc", stream, [&](simulation& s, stream_state& which) {
    return s.submit(which, {device_work::host_function, "host function", 0, [=] {
                              function(data);
                              return outcome{};
                            }});
  });
}

// ---- events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](simulation& s) {
    if (flags & ~unsigned{cudaEventBlockingSync | cudaEventDisableTiming}) return cudaErrorInvalidValue;
    *out = s.create_event(!(flags & cudaEventDisableTiming));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return call("cudaEventCreate", [&](simulation& s) {
    *out = s.create_event(true);
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy",
              [&](simulation& s) { return s.destroy_event(event) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return with_event("cudaEventRecord", event, [&](simulation& s, event_state& e) {
    stream_state* const which = s.stream(stream);
    return which ? s.record(e, *which) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return with_event("cudaEventRecordWithFlags", event, [&](simulation& s, event_state& e) {
    stream_state* const which = s.stream(stream);
    if (!which) return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventRecordDefault) {
      s.report("cudaEventRecordWithFlags: flags are not simulated");
      return cudaErrorNotSupported;
    }
    return s.record(e, *which);
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return with_event("cudaEventSynchronize", event, [](simulation& s, event_state& e) {
    if (e.in) {
      if (!e.in->ended) s.invalidate(*e.in);
      return cudaErrorCapturedEvent;
    }
    if (cudaError_t const failed = s.forbidden_in_capture()) return failed;
    return s.wait(e.recorded);
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return with_event("cudaEventQuery", event, [](simulation& s, event_state& e) {
    if (e.in) {
      if (!e.in->ended) s.invalidate(*e.in);
      return cudaErrorCapturedEvent;
    }
    if (cudaError_t const failed = s.forbidden_in_capture()) return failed;
    s.queue.poll();
    if (e.recorded && !e.recorded->done) return cudaErrorNotReady;
    return s.wait(e.recorded);
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return with_event("cudaEventElapsedTime", from, [&](simulation& s, event_state& a) {
    event_state* const b = s.event(to);
    if (!b || !a.timing || !b->timing || a.in || b->in || !a.recorded || !b->recorded)
      return cudaErrorInvalidResourceHandle;
    if (!a.recorded->done || !b->recorded->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(1e3 * (b->recorded->finished - a.recorded->finished));
    return cudaSuccess;
  });
}

// ---- captures
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return with_stream("cudaStreamBeginCapture", stream,
                     [&](simulation& s, stream_state& which) { return s.begin_capture(which, mode); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  return with_stream("cudaStreamEndCapture", stream,
                     [&](simulation& s, stream_state& which) { return s.end_capture(which, out); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* out) {
  return with_stream("cudaStreamIsCapturing", stream, [&](simulation& s, stream_state& which) {
    if (cudaError_t const e = s.legacy_in_capture(which)) return e;
    *out = !which.in         ? cudaStreamCaptureStatusNone
           : which.in->valid ? cudaStreamCaptureStatusActive
                             : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return call("cudaThreadExchangeStreamCaptureMode", [](simulation& s) {
    s.report("cudaThreadExchangeStreamCaptureMode is not simulated");
    return cudaErrorNotSupported;
  });
}

// ---- graphs
static cudaError_t instantiate(char const* name, cudaGraphExec_t* out, cudaGraph_t graph) {
  return call(name, [&](simulation& s) {
    *out = nullptr;
    graph_state const* const g = s.graph(graph);
    if (!g) return cudaErrorInvalidValue;
    if (std::string_view(name) != "cudaGraphInstantiate")
      if (cudaError_t const e = s.planted_failure("cudaGraphInstantiate")) return e;
    *out = s.instantiate(*g);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return instantiate("cudaGraphInstantiate", out, graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return instantiate("cudaGraphInstantiateWithFlags", out, graph);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  return with_stream("cudaGraphUpload", stream, [&](simulation& s, stream_state&) {
    return s.executable(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return with_stream("cudaGraphLaunch", stream, [&](simulation& s, stream_state& which) {
    executable_graph* const g = s.executable(graph);
    return g ? s.launch(*g, which) : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call("cudaGraphExecDestroy",
              [&](simulation& s) { return s.destroy_executable(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy",
              [&](simulation& s) { return s.destroy_graph(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", [&](simulation& s) {
    graph_state const* const g = s.graph(graph);
    if (!g) return cudaErrorInvalidValue;
    for (std::size_t k = 0; nodes && k < *count; ++k)
      nodes[k] =
          k < g->nodes.size() ? reinterpret_cast<cudaGraphNode_t>(const_cast<graph_node*>(g->nodes[k].get())) : nullptr;
    *count = nodes ? std::min(*count, g->nodes.size()) : g->nodes.size();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                              std::size_t* count) {
  return call("cudaGraphGetEdges", [&](simulation& s) {
    graph_state const* const g = s.graph(graph);
    if (!g || !from != !to) return cudaErrorInvalidValue;
    std::size_t n = 0;
    auto const handle = [&](std::size_t k) {
      return reinterpret_cast<cudaGraphNode_t>(const_cast<graph_node*>(g->nodes[k].get()));
    };
    for (std::size_t k = 0; k < g->nodes.size(); ++k)
      for (auto const before : g->nodes[k]->after) {
        if (from && n < *count) {
          from[n] = handle(before);
          to[n] = handle(k);
          if (data) data[n] = {};
        }
        ++n;
      }
    *count = from ? std::min(*count, n) : n;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* out) {
  return call("cudaGraphNodeGetType", [&](simulation&) {
    switch (reinterpret_cast<graph_node const*>(node)->what->kind) {
      case device_work::kernel:
      case device_work::library: *out = cudaGraphNodeTypeKernel; break;
      case device_work::fill: *out = cudaGraphNodeTypeMemset; break;
      case device_work::host_function: *out = cudaGraphNodeTypeHost; break;
      default: *out = cudaGraphNodeTypeMemcpy;
    }
    return cudaSuccess;
  });
}

}  // extern "C"

// ---- for tests
namespace neap::testing {

namespace {

struct sigaction before_ours;

/// The program has touched memory that it may not: pinned memory in flight, which is a race, or a device's.
void on_segmentation_fault(int, siginfo_t* info, [[maybe_unused]] void* context) {
  auto const at = reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  bool const writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  bool const writes = true;
#endif
  std::lock_guard const held(simulation::lock());
  if (simulation::current().accessed_by_program(at, writes)) return;
  if (simulation::of_device(info->si_addr))
    std::fprintf(stderr, "the program %s memory of the simulated device at %s\n", writes ? "writes" : "reads",
                 simulation::text_of(info->si_addr).c_str());
  sigaction(SIGSEGV, &before_ours, nullptr);  // the access is repeated
}

}  // namespace

void watch_accesses() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &on_segmentation_fault) return;
  before_ours = now;
  struct sigaction ours {};
  ours.sa_sigaction = &on_segmentation_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &ours, nullptr);
}

std::recursive_mutex& simulation::lock() {
  static auto* const held = new std::recursive_mutex;
  return *held;
}
static std::unique_ptr<simulation>& current_simulation() {
  static auto* const it = [] {
    // Device memory has addresses that the program's own code cannot read.
    mmap(reinterpret_cast<void*>(ptx::first_buffer_window << 32), simulation::windows << 32, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return new std::unique_ptr<simulation>(new simulation(0, {}));
  }();
  return *it;
}
simulation& simulation::current() { return *current_simulation(); }
void simulation::replace(std::uint64_t seed, device_options const& o) {
  current_simulation().reset();
  current_simulation() = std::make_unique<simulation>(seed, o);
}

namespace simulated_device {

void reset(std::uint64_t seed, device_options const& options) {
  std::lock_guard const held(simulation::lock());
  current_simulation();
  simulation::replace(seed, options);
  last_error = cudaSuccess;
}
std::string faults() {
  std::lock_guard const held(simulation::lock());
  simulation::current().queue.run_all();
  return simulation::current().faults();
}
std::string races() {
  std::lock_guard const held(simulation::lock());
  simulation::current().queue.run_all();
  return simulation::current().races();
}
std::vector<device_operation> operations() {
  std::lock_guard const held(simulation::lock());
  return simulation::current().operations;
}
device_counts counts() {
  std::lock_guard const held(simulation::lock());
  simulation& s = simulation::current();
  device_counts c = s.counted;
  c.pinned = s.pinned.bytes();
  c.streams = s.stream_count();
  c.events = s.event_count();
  c.graphs = s.graph_count();
  c.executable_graphs = s.executable_count();
  return c;
}
std::size_t calls(std::string_view function) {
  std::lock_guard const held(simulation::lock());
  auto const& all = simulation::current().calls;
  auto const it = all.find(function);
  return it == all.end() ? 0 : it->second;
}
void fail(std::string_view function, std::size_t nth, cudaError_t error) {
  std::lock_guard const held(simulation::lock());
  simulation::current().planted_calls.push_back({std::string(function), nth, error});
}
void fail_execution(device_work kind, std::size_t nth, cudaError_t error) {
  std::lock_guard const held(simulation::lock());
  simulation::current().planted_operations.push_back({kind, nth, error});
}
void host_reads(void const* from, std::size_t bytes, std::string_view name) {
  std::lock_guard const held(simulation::lock());
  simulation::current().host_access(range_of(from, bytes), false, std::string(name));
}
void host_writes(void const* from, std::size_t bytes, std::string_view name) {
  std::lock_guard const held(simulation::lock());
  simulation::current().host_access(range_of(from, bytes), true, std::string(name));
}

}  // namespace simulated_device

}  // namespace neap::testing
