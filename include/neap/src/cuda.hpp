// The standard operators' kernels on a GPU, for one .cu file of a program that makes trainers or evaluators on a
// cuda_backend:
//
//   #include <neap/src/cuda.hpp>
//
// The other files are C++ and include neap/cuda.hpp. (With CMake: neap_compile_cuda(my_program).) A program that lacks the
// file does not link: the linker misses neap::v0::detail::standard_cuda_kernels().
#pragma once

#include <neap/cuda/kernels.hpp>
#include <neap/cuda/kernels/attention.cuh>
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/kernels/gemm.cuh>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>
#include <neap/ir/standard_operators.hpp>

#include <array>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

template <class Op>
inline constexpr bool runs_on_cuda = kernel_columns[standard_row<Op>] >= kernel_column::all;

template <class List>
struct cuda_rows;
template <class... Op>
struct cuda_rows<type_list<Op...>> {
  template <class O>
  static constexpr kernel_function<cuda_backend> kernel() {
    if constexpr (runs_on_cuda<O>) return &run_kernel<cuda_backend, O>;
    else return nullptr;
  }
  template <class O>
  static constexpr scratch_function scratch() {
    if constexpr (runs_on_cuda<O>) return scratch_or_null<O>();
    else return nullptr;
  }
  template <class O>
  static constexpr updates_function updates() {
    if constexpr (update_states<O> >= 0) return &run_updates<O, cuda_backend>;
    else return nullptr;
  }
  static constexpr std::array<kernel_function<cuda_backend>, sizeof...(Op)> kernels{kernel<Op>()...};
  static constexpr std::array<scratch_function, sizeof...(Op)> scratches{scratch<Op>()...};
  static constexpr std::array<updates_function, sizeof...(Op)> update_launches{updates<Op>()...};
};

std::span<kernel_function<cuda_backend> const> standard_cuda_kernels() { return cuda_rows<op::standard_list>::kernels; }
std::span<scratch_function const> standard_cuda_scratch() { return cuda_rows<op::standard_list>::scratches; }
std::span<updates_function const> standard_cuda_updates() { return cuda_rows<op::standard_list>::update_launches; }

}}}  // namespace neap::v0::detail
