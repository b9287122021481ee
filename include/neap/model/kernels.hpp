// The kernels of a backend as function pointers: of one operator, or of all operators of a set, by their row in its table.
//
// Compiling all kernels of the standard set takes a compiler half a minute or more. A program of several source files
// defines NEAP_EXTERN_KERNELS in all of them and compiles the kernels in one:
//
//   #include <neap/model/kernels.hpp>
//   NEAP_COMPILE_KERNELS
//
// (With CMake: neap_compile_kernels(my_program) does both.) That one file may include backend/kernels/sort_positions.hpp
// first: gradients of embeddings then sort by Thrust.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/ir/operator.hpp>
#include <neap/ir/standard_operators.hpp>

#include <array>
#include <type_traits>

namespace neap::inline v0 {

/// Runs an operator's kernel: run(backend, operator struct, arguments).
template <class Backend>
using kernel_function = void (*)(Backend&, void const*, kernel_arguments const&);

/// A backend has a kernel for an operator: run(backend, op, arguments) is found by argument-dependent lookup.
template <class Backend, class Op>
concept has_kernel = requires(Backend& b, Op const& op, kernel_arguments const& a) { run(b, op, a); };

namespace detail {

template <class Backend, class Op>
void run_kernel(Backend& b, void const* op, kernel_arguments const& a) {
  if constexpr (std::is_empty_v<Op>) run(b, Op{}, a);
  else run(b, *static_cast<Op const*>(op), a);
}
template <class Backend, class Op>
constexpr kernel_function<Backend> kernel_or_null() {
  if constexpr (has_kernel<Backend, Op>) return &run_kernel<Backend, Op>;
  else return nullptr;
}
template <class Backend, class List>
struct kernel_rows;
template <class Backend, class... Op>
struct kernel_rows<Backend, type_list<Op...>> {
  static constexpr std::array<kernel_function<Backend>, sizeof...(Op)> rows{kernel_or_null<Backend, Op>()...};
};

}  // namespace detail

/// Row k: the kernel of operator k of the set; nullptr where the backend has none (transfers, opaque operators).
template <class Backend, class Ops>
std::span<kernel_function<Backend> const> kernel_table() {
  return detail::kernel_rows<Backend, typename Ops::list>::rows;
}

#if defined(NEAP_EXTERN_KERNELS)
extern template std::span<kernel_function<host_backend> const> kernel_table<host_backend, standard_operators>();
#endif
/// What one source file of a program has where the others define NEAP_EXTERN_KERNELS.
#define NEAP_COMPILE_KERNELS                                          \
  template std::span<neap::kernel_function<neap::host_backend> const> \
  neap::kernel_table<neap::host_backend, neap::standard_operators>();

/// The kernel of one operator. Compiles that kernel only, or none with NEAP_EXTERN_KERNELS.
template <class Backend, class Op>
kernel_function<Backend> kernel_of() {
  static_assert(has_kernel<Backend, Op>,
                "neap: the backend has no kernel for this operator: write  void run(Backend&, my_op const&, "
                "neap::kernel_arguments const&)  in the operator's namespace");
#if defined(NEAP_EXTERN_KERNELS)
  if constexpr (std::is_same_v<Backend, host_backend> && standard_operators::contains<Op>)
    return kernel_table<host_backend, standard_operators>()[static_cast<std::size_t>(
        find_kind(operator_table(standard_operators::facets), &facets_of<Op>))];
  else
#endif
    return &detail::run_kernel<Backend, Op>;
}

}  // namespace neap::inline v0
