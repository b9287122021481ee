// Kernels of operators on a backend. A backend that lacks one for an operator of its set does not compile, and the message
// names the operator.
#pragma once

#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/model/kernels.hpp>

#include <span>
#include <type_traits>

namespace neap { inline namespace v0 {

/// Operators that an executable treats itself: transfers, and those whose meaning is not known.
template <class Op>
inline constexpr bool runs_without_kernel = std::is_same_v<Op, op::store> || std::is_same_v<Op, op::load> ||
                                            std::is_same_v<Op, op::wait> || std::is_same_v<Op, op::opaque>;

namespace detail {

/// Where the standard operators' kernels on a backend are compiled in one place of a program, as those of the host are: a
/// specialisation has  static std::span<kernel_function<Backend> const> rows(),  in the order of the standard set; nullptr
/// where there is no kernel.
template <class Backend>
struct standard_kernels_on {};
template <class Backend>
concept has_standard_kernels = requires { standard_kernels_on<Backend>::rows(); };

/// Instantiated once an operator, so that the compiler's trace names Backend and Op.
template <class Backend, class Op>
struct kernel_check {
  static_assert(
      runs_without_kernel<Op> || has_kernel<Backend, Op>,
      "neap: the backend has no kernel for an operator of its set (it is the Op of kernel_check<Backend, Op>): "
      "write  void run(Backend&, Op const&, neap::kernel_arguments const&)  in the operator's namespace");
  static constexpr bool ok = true;
};

/// The operators that a backend of one's own has kernels of: those of its set  Backend::operators, the standard ones if it
/// names none.
template <class Backend>
struct operators_on {
  using list = standard_operators::list;
};
template <class Backend>
  requires requires { typename Backend::operators; }
struct operators_on<Backend> {
  using list = typename Backend::operators::list;
};

template <class Backend, class... Op>
kernel_function<Backend> kernel_among(operator_facets const& f, type_list<Op...>) {
  static_assert((kernel_check<Backend, Op>::ok && ...));
  kernel_function<Backend> found = nullptr;
  (void)((&facets_of<Op> == &f && (found = kernel_or_null<Backend, Op>(), true)) || ...);
  return found;
}

/// The kernel of an operator on a backend; nullptr if there is none. On the host, operators have their kernels with them.
template <class Backend>
kernel_function<Backend> kernel_on(Backend const& backend, operator_facets const& f) {
  if constexpr (std::is_same_v<Backend, host_backend>) return host_kernel(f);
  else if constexpr (has_standard_kernels<Backend>)
    return f.standard_row >= 0 ? standard_kernels_on<Backend>::rows()[static_cast<std::size_t>(f.standard_row)]
                               : backend.own_kernel(f);
  else return kernel_among<Backend>(f, typename operators_on<Backend>::list{});
}

}  // namespace detail

}}  // namespace neap::v0
