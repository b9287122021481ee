// Memory of a GPU, and memory of the host that a GPU copies from and to (pinned). Needs the CUDA toolkit's headers.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/check.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <source_location>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {
struct cuda_device_bytes {
  static cudaError_t allocate(void** p, std::size_t bytes) { return cudaMalloc(p, bytes); }
  static void release(void* p) { cudaFree(p); }
};
struct cuda_pinned_bytes {
  static cudaError_t allocate(void** p, std::size_t bytes) { return cudaHostAlloc(p, bytes, cudaHostAllocDefault); }
  static void release(void* p) { cudaFreeHost(p); }
};
}  // namespace detail

/// A block of bytes, owned; aligned to 256. Of 0 bytes: no memory.
template <class Kind>
class cuda_memory {
 public:
  cuda_memory() = default;
  /// Throws neap::error, with `what` it is for, where there is not so much memory.
  cuda_memory(bytes_t bytes, std::string_view what, std::source_location at = std::source_location::current())
      : bytes_(bytes) {
    if (bytes <= 0) return;
    void* p = nullptr;
    if (auto const outcome = Kind::allocate(&p, static_cast<std::size_t>(bytes)); outcome != cudaSuccess) {
      cudaGetLastError();  // the failure stays with the runtime otherwise, and the next check would report it
      throw_error(at, {"cuda: memory for ", what, ", ", bytes, " bytes: ", cudaGetErrorString(outcome)});
    }
    data_ = static_cast<std::byte*>(p);
  }
  cuda_memory(cuda_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  cuda_memory& operator=(cuda_memory&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~cuda_memory() {
    if (data_) Kind::release(data_);
  }

  std::byte* data() const { return data_; }
  bytes_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  bytes_t bytes_ = 0;
};

/// On the GPU that is chosen when it is made.
using cuda_device_memory = cuda_memory<detail::cuda_device_bytes>;
/// On the host, never moved by the system.
using cuda_pinned_memory = cuda_memory<detail::cuda_pinned_bytes>;

}}  // namespace neap::v0
