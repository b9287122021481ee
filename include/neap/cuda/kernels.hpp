// The kernels of the standard operators on a GPU, as tables that one .cu file of a program fills (neap/src/cuda.hpp):
// the other files are C++, and need no nvcc.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/scratch.hpp>
#include <neap/cuda/update_call.hpp>
#include <neap/execute/kernel_check.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

/// In the order of the standard set; nullptr where there is no kernel.
std::span<kernel_function<cuda_backend> const> standard_cuda_kernels();
/// What they take of the backend's scratch memory; nullptr: nothing.
std::span<scratch_function const> standard_cuda_scratch();

using updates_function = void (*)(cuda_backend&, std::span<update_call const>);
/// Kernels that make several updates of their kind in one launch; nullptr: each has its own.
std::span<updates_function const> standard_cuda_updates();

template <>
struct standard_kernels_on<cuda_backend> {
  static std::span<kernel_function<cuda_backend> const> rows() { return standard_cuda_kernels(); }
};

/// What an op takes of the backend's scratch memory.
inline bytes_t scratch_bytes(cuda_backend& b, op_graph const& g, op_id o, work_context const& c) {
  auto const& f = g.facets(o);
  auto const bytes =
      f.standard_row >= 0 ? standard_cuda_scratch()[static_cast<std::size_t>(f.standard_row)] : b.own_scratch(f);
  return bytes ? bytes(b, g.attributes(o), c) : 0;
}

}}}  // namespace neap::v0::detail
