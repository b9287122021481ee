// The host's kernels as a device's: an executable of cuda_backend then runs every standard operator on the simulated
// device (support/device), with the host's bits.
#pragma once

#include "device/call.hpp"

#include <neap/cuda/kernels.hpp>
#include <neap/model/kernels.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

/// The bytes from a tensor's first element to its last.
inline std::size_t bytes_of(tensor_ref const& t) {
  std::int64_t last = 0;
  for (int k = 0; k < t.rank(); ++k) {
    if (t.dims[k] == 0) return 0;
    last += (t.dims[k] - 1) * t.strides[k];
  }
  return static_cast<std::size_t>((last + 1) * size_of(t.element));
}

/// Products of matrices take scratch memory, as many bytes as their result, which they overwrite.
inline constexpr auto scratch_row = static_cast<std::size_t>(neap::detail::standard_row<op::matmul>);
inline bytes_t scratch_of_product(cuda_backend&, void const*, work_context const& c) { return c.out[0].type.bytes(); }

/// Puts the host's kernel of a standard operator on a stream of the simulated device.
inline void enqueue_host_kernel(cuda_backend& backend, std::size_t row, void const* op, kernel_arguments const& a) {
  auto const stream = backend.stream();
  auto const& facets = *standard_operators::facets[row];
  std::vector<tensor_ref> given(a.in.begin(), a.in.end()), made(a.out.begin(), a.out.end());
  std::vector<tensor_layout> layouts;
  for (auto const* all : {&given, &made})
    for (auto const& t : *all) layouts.push_back({{t.element, t.dims}, t.strides, 0});
  std::span<tensor_layout const> const types(layouts);
  auto const workspace = static_cast<std::size_t>(
      facets.workspace ? facets.workspace(op, {types.first(given.size()), types.subspan(given.size())}) : 0);
  auto const taken = row == scratch_row ? made[0].count() * size_of(made[0].element) : 0;
  void* const product = backend.scratch(taken);
  auto& s = simulation::current();
  std::string const name(facets.name);
  auto run = [&s, name, row, op, inputs = std::move(given), outputs = std::move(made), scratch = a.workspace, workspace,
              product, taken]() -> outcome {
    auto in = inputs, out = outputs;
    outcome r;
    auto const range = [](void const* p, std::size_t bytes) {
      auto const at = simulation::address(p);
      return access_range{at, at + bytes};
    };
    auto const on_host = [&](void* p, std::size_t bytes, bool writes) -> void* {
      if (bytes == 0) return nullptr;
      auto const there = s.find(p, bytes, name);
      if (!there.bytes) {
        r.error = cudaErrorIllegalAddress;
        return nullptr;
      }
      (writes ? r.writes : r.reads).push_back(range(p, bytes));
      for (std::size_t i = 0; i < bytes; ++i)
        if (writes) there.state[i] |= ptx::byte_written;
      return there.bytes;
    };
    for (auto& t : in) {
      auto const bytes = bytes_of(t);
      auto* const p = t.data;
      t.data = on_host(p, bytes, false);
      if (!t.data || !t.is_dense()) continue;
      auto const state = s.find(p, bytes, name).state;
      for (std::size_t i = 0; i < bytes; ++i)
        if (!(state[i] & ptx::byte_written)) {
          s.report(name + ": reads a byte that was never written");
          break;
        }
    }
    for (auto& t : out) t.data = on_host(t.data, bytes_of(t), true);
    void* const room = on_host(scratch, workspace, true);
    if (void* const p = on_host(product, static_cast<std::size_t>(taken), true))
      std::memset(p, 0x5e, static_cast<std::size_t>(taken));
    if (r.error != cudaSuccess) return r;
    static host_backend host(1);
    neap::detail::standard_kernels()[row](host, op, {in, out, room});
    return r;
  };
  if (auto* const on = s.stream(stream); !on) throw error("enqueue: no such stream");
  else if (auto const e = s.submit(*on, work{device_work::library, name, 0, std::move(run)}); e != cudaSuccess)
    throw error("cuda: launch of a kernel: " + std::string(cudaGetErrorString(e)));
}

template <std::size_t Row>
void run_host_kernel(cuda_backend& b, void const* op, kernel_arguments const& a) {
  enqueue_host_kernel(b, Row, op, a);
}

}  // namespace neap::testing
