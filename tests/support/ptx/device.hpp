// A device without a GPU: buffers, and launches of kernels from PTX text.
//
//   ptx::module m = ptx::parse(text);
//   ptx::device d;
//   auto x = d.buffer(std::vector<float>(100, 1.0f));   // its contents; or d.buffer<float>(100): unwritten
//   ptx::report r = d.launch(m, "saxpy", {1}, {128}, 0, 2.0f, x, y, 100);
//   r.faults; r.counts; d.read<float>(y);
#pragma once

#include "execution.hpp"
#include "module.hpp"
#include "report.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap::testing::ptx {

/// Device memory of a size in bytes: an argument of kernels. Past its last byte is a red zone.
struct buffer {
  std::size_t index = 0;
  std::size_t offset = 0;  // bytes: a pointer into the buffer

  std::uint64_t address() const { return address_of_region(index) + offset; }
  buffer operator+(std::size_t bytes) const { return {index, offset + bytes}; }
};

/// Bytes [begin, end) of device memory, by their addresses.
struct access_range {
  std::uint64_t begin = 0, end = 0;
  friend bool operator==(access_range const&, access_range const&) = default;
};
struct accesses {
  std::vector<access_range> reads, writes;  // ascending and apart; what a launch both reads and writes is in `writes`
};

class device {
 public:
  launch_options options;

  /// Unwritten memory under a name of its own.
  ptx::buffer allocate(std::string name, std::size_t bytes) {
    if (recycled_.size() <= freed_buffers) return add(std::move(name), bytes, false);
    std::size_t const index = recycled_.front();
    recycled_.pop_front();
    regions_[index] = region(std::move(name), bytes, false);
    return {index, 0};
  }
  /// Frees a buffer. Its address remains unused for a long time: an access to it is out of bounds.
  void release(ptx::buffer b) {
    region& r = regions_.at(b.index);
    r = region(r.name + " (freed)", 0, false);
    recycled_.push_back(b.index);
  }
  /// The region that an address is in, at its first byte or behind; null if there is none.
  region* region_at(std::uint64_t address) {
    std::uint64_t const window = address >> 32;
    return window >= first_buffer_window && window - first_buffer_window < regions_.size()
               ? &regions_[window - first_buffer_window]
               : nullptr;
  }
  /// Global memory that the last launch has accessed.
  accesses const& accessed() const { return accessed_; }

  /// Unwritten memory for `count` elements: a kernel that reads it before it is written has a fault.
  template <class T>
  ptx::buffer buffer(std::size_t count) {
    return add("buffer " + std::to_string(buffers_++), count * sizeof(T), false);
  }
  /// Memory with the contents of a contiguous range.
  template <std::ranges::contiguous_range R>
  ptx::buffer buffer(R const& values) {
    using T = std::ranges::range_value_t<R>;
    static_assert(std::is_trivially_copyable_v<T>, "a buffer holds trivially copyable elements");
    auto const b = add("buffer " + std::to_string(buffers_++), std::ranges::size(values) * sizeof(T), true);
    if (!std::ranges::empty(values))
      std::memcpy(regions_[b.index].bytes.data(), std::ranges::data(values), std::ranges::size(values) * sizeof(T));
    return b;
  }
  /// What the buffer holds, from its offset on. Bytes that were never written are 0xcd.
  template <class T>
  std::vector<T> read(ptx::buffer b) const {
    auto const& bytes = regions_.at(b.index).bytes;
    std::vector<T> out((bytes.size() - std::min(b.offset, bytes.size())) / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + b.offset, out.size() * sizeof(T));
    return out;
  }
  template <std::ranges::contiguous_range R>
  void write(ptx::buffer b, R const& values) {
    auto& r = regions_.at(b.index);
    std::size_t const n = std::ranges::size(values) * sizeof(std::ranges::range_value_t<R>);
    if (b.offset + n > r.bytes.size()) throw error("write past the end of " + r.name);
    if (!n) return;
    std::memcpy(r.bytes.data() + b.offset, std::ranges::data(values), n);
    std::fill_n(r.state.begin() + b.offset, n, byte_written);
  }
  /// Bytes of the buffer that no kernel and no copy has written.
  std::size_t unwritten(ptx::buffer b) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(regions_.at(b.index).state, [](auto s) { return !(s & byte_written); }));
  }

  /// Runs a kernel: `name` is its name or a part that only one kernel's name has. Arguments are as in C++: buffers for
  /// pointers, and values of exactly the parameters' sizes. Throws ptx::error where they do not fit, or for an opcode
  /// that the interpreter lacks; what the kernel does wrong is in the report.
  template <class... Args>
  report launch(module const& m, std::string_view name, dim3 grid, dim3 block, std::uint32_t dynamic_shared,
                Args const&... args) {
    std::vector<std::vector<std::uint8_t>> values;
    (values.push_back(bytes_of_argument(args)), ...);
    return launch_bytes(m, name, grid, block, dynamic_shared, values);
  }
  /// The same with arguments as bytes, for launches that are made from a recorded list.
  report launch_bytes(module const& m, std::string_view name, dim3 grid, dim3 block, std::uint32_t dynamic_shared,
                      std::vector<std::vector<std::uint8_t>> const& values);
  /// The kernel, decoded, with the addresses of the module's variables.
  kernel_code const& bound(module const& m, std::string_view name);
  /// The module's variable of that name (a __device__ or __constant__ variable), as device memory.
  ptx::buffer variable_of(module const& m, std::string const& name);

 private:
  static constexpr std::size_t freed_buffers = 4096;  // before an address is used again

  std::vector<region> regions_;
  std::deque<std::size_t> recycled_;
  accesses accessed_;
  std::map<kernel_code const*, std::pair<std::shared_ptr<kernel_code const>, std::unique_ptr<kernel_code>>> bound_;
  std::size_t buffers_ = 0;
  std::uint32_t time_ = 0;
  std::map<std::pair<std::string const*, std::string>, ptx::buffer> variables_;
  std::vector<std::shared_ptr<std::string const>> modules_;  // keeps the keys alive

  void collect_accesses(std::uint32_t start);
  void forget_accesses();
  ptx::buffer add(std::string name, std::size_t bytes, bool written) {
    if (bytes > 0xffff'ffffu - 2 * buffer_start) throw error(name + " has more than 2 GiB");
    regions_.emplace_back(std::move(name), bytes, written);
    return {regions_.size() - 1, 0};
  }

  template <class T>
  static std::vector<std::uint8_t> bytes_of_argument(T const& v) {
    if constexpr (std::is_same_v<T, ptx::buffer>) {
      return bytes_of_argument(v.address());
    } else {
      static_assert(std::is_trivially_copyable_v<T>, "an argument of a kernel is trivially copyable");
      std::vector<std::uint8_t> out(sizeof(T));
      std::memcpy(out.data(), &v, sizeof(T));
      return out;
    }
  }
};

}  // namespace neap::testing::ptx
