// Thrust as our kernels use it: algorithms are written once, with the execution policy as a parameter (thrust::cpp::par
// for one thread of the host, thrust::tbb::par for many, a stream's policy on a device), and what they allocate comes
// from the op's workspace, so that a step takes no memory. For sorts, scans and the like over integers only: Thrust's sums
// of floats differ between its systems, ours keep a fixed order (block.hpp).
//
// Thrust's headers cost a compiler most of a second, so neap.hpp does not reach this one.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <thrust/system/cpp/execution_policy.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

/// Hands out parts of a workspace, for Thrust's policies: `thrust::cpp::par(memory)`. Parts are aligned to 256 bytes; the
/// last one given is taken back first, others when the allocator ends. Throws neap::error if the workspace is used up.
class workspace_allocator {
 public:
  using value_type = char;  // Thrust allocates bytes
  static constexpr std::size_t alignment = 256;

  workspace_allocator(void* workspace, bytes_t size)
      : begin_(static_cast<char*>(workspace)),
        at_(begin_),
        end_(begin_ + size) {}
  workspace_allocator(workspace_allocator const&) = delete;
  workspace_allocator& operator=(workspace_allocator const&) = delete;

  char* allocate(std::ptrdiff_t n) {
    auto const behind = reinterpret_cast<std::uintptr_t>(at_) % alignment;
    std::ptrdiff_t const gap = behind ? static_cast<std::ptrdiff_t>(alignment - behind) : 0;
    if (n < 0 || end_ - at_ < gap || end_ - at_ - gap < n)
      throw_error(
          {"workspace of ", end_ - begin_, " bytes used up: ", n, " more are asked for, ", end_ - at_, " are left"});
    char* const p = at_ + gap;
    at_ = p + n;
    most_ = most_ < at_ - begin_ ? at_ - begin_ : most_;
    return p;
  }
  void deallocate(char* p, std::size_t n) {
    if (p + n == at_) at_ = p;
  }
  /// An array of `count` elements, which stays until the allocator ends.
  template <class T>
  T* array(std::int64_t count) {
    return reinterpret_cast<T*>(allocate(static_cast<std::ptrdiff_t>(count) * std::ptrdiff_t{sizeof(T)}));
  }

  /// The most bytes in use so far, gaps included.
  bytes_t max_bytes() const { return most_; }

 private:
  char *begin_, *at_, *end_;
  std::ptrdiff_t most_ = 0;
};

/// The Thrust policy of a backend: called with a workspace_allocator it gives the policy for one algorithm. The host's is
/// serial: what we sort there is smaller than what it takes to wake a second team of threads. A backend with a stream
/// overloads this.
inline auto const& thrust_policy(host_backend const&) { return thrust::cpp::par; }

}}  // namespace neap::v0
