// The kernels of operators as function pointers: an operator's row in one table gives the standard ones, its facets give
// any other's.
//
// Compiling all standard kernels takes longer than most programs. Where NEAP_SEPARATE_COMPILATION is defined they are compiled
// in two files of the program (neap/src/kernels.hpp, neap/src/image_kernels.hpp). Without that name, each
// source file that makes tensors, reads their data or runs a plan compiles the kernels, and files that only include this
// one do not: the class below is a template for that reason alone. With NEAP_ONE_FILE (core/one_file.hpp) operators bring their own.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/ir/operator.hpp>
#include <neap/ir/operators/kernels/common.hpp>
#include <neap/ir/operators/kernels/unary.hpp>
#include <neap/ir/standard_operators.hpp>
#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/kernels/standard.hpp>
#endif

#include <array>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

template <class Backend, class List>
struct kernel_rows;
template <class Backend, class... Op>
struct kernel_rows<Backend, type_list<Op...>> {
  static constexpr std::array<kernel_function<Backend>, sizeof...(Op)> rows{kernel_or_null<Backend, Op>()...};
};

/// The kernels of the standard operators on the host, in the order of the set.
std::span<kernel_function<host_backend> const> standard_kernels();

/// Defines standard_kernels() where it is instantiated for standard_operators.
template <class Ops>
struct compile_standard_kernels {
  [[gnu::used]] friend std::span<kernel_function<host_backend> const> standard_kernels() {
    return kernel_rows<host_backend, typename Ops::list>::rows;
  }
};
template <class>
struct standard_operators_of {
  using type = standard_operators;
};

/// Said in templates that programs instantiate: this program computes with tensors.
template <class T>
constexpr void computes() {
#if !defined(NEAP_SEPARATE_COMPILATION) && !defined(NEAP_ONE_FILE)
  (void)sizeof(compile_standard_kernels<typename standard_operators_of<T>::type>);
#endif
}

}  // namespace detail

/// Row k: the kernel of operator k of the set on a backend; nullptr where it has none (transfers, opaque operators).
template <class Backend, class Ops>
std::span<kernel_function<Backend> const> kernel_table() {
  return detail::kernel_rows<Backend, typename Ops::list>::rows;
}

/// An operator's kernel on the host; nullptr if it has none.
kernel_function<host_backend> host_kernel(operator_facets const& f);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/kernels.ipp>
#endif
