// The kernels of operators as function pointers: an operator's row in one table gives the standard ones, its facets give
// any other's.
//
// Compiling all standard kernels takes longer than most programs. Where NEAP_SEPARATE_COMPILATION is defined, two files of
// the program compile them (neap/src/kernels.hpp, neap/src/image_kernels.hpp). Header-only, the facets of all operators
// have kernels, and a program compiles those of the operators that it can reach.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/ir/operator.hpp>
#include <neap/ir/operators/kernels/common.hpp>
#include <neap/ir/operators/kernels/unary.hpp>
#include <neap/ir/standard_operators.hpp>

#include <array>
#include <span>

namespace neap { inline namespace v0 {

namespace detail {

template <class Backend, class List>
struct kernel_rows;
template <class Backend, class... Op>
struct kernel_rows<Backend, type_list<Op...>> {
  static constexpr std::array<kernel_function<Backend>, sizeof...(Op)> rows{kernel_or_null<Backend, Op>()...};
};

#if defined(NEAP_SEPARATE_COMPILATION)
/// The kernels of the standard operators on the host, in the order of the set (neap/src/kernels.hpp).
std::span<kernel_function<host_backend> const> standard_kernels();
#endif

}  // namespace detail

/// Row k: the kernel of operator k of the standard set on a backend; nullptr where it has none (transfers, opaque operators).
template <class Backend>
std::span<kernel_function<Backend> const> kernel_table() {
  return detail::kernel_rows<Backend, standard_operators::list>::rows;
}

/// An operator's kernel on the host; nullptr if it has none.
kernel_function<host_backend> host_kernel(operator_facets const& f);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/kernels.ipp>
#endif
