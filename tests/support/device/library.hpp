// What simulated libraries of the device's vendor have in common: calls, elements, and the device's memory that a call reads and
// writes.
#pragma once

#include "call.hpp"

#include <library_types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace neap::testing {

// ---- calls
/// The statuses by which a library reports what a call of the runtime does.
template <class Status>
struct library_statuses {
  Status success, no_device, out_of_memory, not_supported, invalid, failed;
};
/// Runs the body of a function of a library: f(simulation&) gives its status. The runtime's last error stays as it is.
template <class Status, class F>
Status library_call(char const* function, library_statuses<Status> const& statuses, F&& f) {
  Status status = statuses.success;
  cudaError_t const before = last_error;
  cudaError_t const e = call(function, [&](simulation& s) {
    status = f(s);
    return cudaSuccess;
  });
  last_error = before;
  switch (e) {
    case cudaSuccess: return status;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice: return statuses.no_device;
    case cudaErrorMemoryAllocation: return statuses.out_of_memory;
    case cudaErrorNotSupported: return statuses.not_supported;
    case cudaErrorInvalidValue: return statuses.invalid;
    default: return statuses.failed;
  }
}

// ---- elements
inline float element(void const* base, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F) {
    float v = 0;
    std::memcpy(&v, static_cast<std::byte const*>(base) + 4 * i, sizeof v);
    return v;
  }
  std::uint16_t v = 0;
  std::memcpy(&v, static_cast<std::byte const*>(base) + 2 * i, sizeof v);
  if (type == CUDA_R_16BF) return std::bit_cast<float>(std::uint32_t{v} << 16);
  return static_cast<float>(std::bit_cast<_Float16>(v));
}
inline void put_element(void* base, cudaDataType type, std::int64_t i, float v) {
  if (type == CUDA_R_32F) {
    std::memcpy(static_cast<std::byte*>(base) + 4 * i, &v, sizeof v);
    return;
  }
  std::uint16_t bits = 0;
  if (type == CUDA_R_16F) {
    bits = std::bit_cast<std::uint16_t>(static_cast<_Float16>(v));
  } else {
    auto const u = std::bit_cast<std::uint32_t>(v);
    bits = static_cast<std::uint16_t>(std::isnan(v) ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  std::memcpy(static_cast<std::byte*>(base) + 2 * i, &bits, sizeof bits);
}
inline std::size_t bytes_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }
/// To the 10 bits of mantissa that tensor cores take of an f32.
inline float to_tf32(float v) {
  if (!std::isfinite(v)) return v;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(v) + 0x1000u) & ~0x1fffu);
}

// ---- memory
inline void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// The bytes and states of what lies from the first of these ranges to the last; null, and a fault, if it is not in one
/// region.
struct memory_view {
  simulation::device_bytes memory;
  bool ok = true;
  std::uint64_t begin = 0;
};
inline memory_view view(simulation& s, std::vector<access_range> const& ranges, std::string const& what) {
  if (ranges.empty()) return {};
  std::uint64_t begin = ranges.front().begin, end = 0;
  for (auto const& r : ranges) {
    begin = std::min(begin, r.begin);
    end = std::max(end, r.end);
  }
  auto const memory = s.find(pointer(begin), end - begin, what);
  return {memory, memory.bytes != nullptr, begin};
}
/// `v` begins where its first range does, or before.
inline void check_written(simulation& s, memory_view const& v, std::vector<access_range> const& ranges,
                          std::string const& function, std::string const& what) {
  for (auto const& r : ranges)
    for (auto at = r.begin; at < r.end; ++at)
      if (!(v.memory.state[at - v.begin] & ptx::byte_written)) {
        s.report(function + ": reads byte " + std::to_string(at - v.begin) + " of " + what +
                 ", which was never written");
        return;
      }
}
inline void mark_written(memory_view const& v, std::vector<access_range> const& ranges) {
  for (auto const& r : ranges) std::memset(v.memory.state + (r.begin - v.begin), ptx::byte_written, r.end - r.begin);
}
inline bool overlap(std::vector<access_range> const& x, std::vector<access_range> const& y) {
  for (auto const& r : x)
    for (auto const& q : y)
      if (r.begin < q.end && q.begin < r.end) return true;
  return false;
}

}  // namespace neap::testing
