// A backend that lacks a kernel for an operator of the set does not compile, and the message names the operator.
#pragma once

#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/model/kernels.hpp>

#include <array>
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
      runs_without_kernel<Op> ||
          (is_standard<Op> && (std::is_same_v<Backend, host_backend> || has_standard_kernels<Backend>)) ||
          has_kernel<Backend, Op>,
      "neap: the backend has no kernel for an operator of the set (it is the Op of kernel_check<Backend, Op>): "
      "write  void run(Backend&, Op const&, neap::kernel_arguments const&)  in the operator's namespace");
  static constexpr bool ok = true;
};
template <class Backend, class List>
struct kernel_checks;
template <class Backend, class... Op>
struct kernel_checks<Backend, type_list<Op...>> {
  static constexpr bool ok = (kernel_check<Backend, Op>::ok && ...);
};

/// Kernels of a set's own operators; nullptr for standard ones.
template <class Backend, class List>
struct own_kernel_rows;
template <class Backend, class... Op>
struct own_kernel_rows<Backend, type_list<Op...>> {
  template <class O>
  static constexpr kernel_function<Backend> row() {
    if constexpr (is_standard<O>) return nullptr;
    else return kernel_or_null<Backend, O>();
  }
  static constexpr std::array<kernel_function<Backend>, sizeof...(Op)> rows{row<Op>()...};
};

/// The kernel of an op of a graph over Ops; nullptr if there is none. On the host operators need not be in the set.
template <class Backend, class Ops>
kernel_function<Backend> kernel_in(op_graph const& g, op_id o) {
  if constexpr (std::is_same_v<Backend, host_backend>) {
    return host_kernel(g.facets(o));
  } else if constexpr (has_standard_kernels<Backend>) {
    if (int const row = g.facets(o).standard_row; row >= 0)
      return standard_kernels_on<Backend>::rows()[static_cast<std::size_t>(row)];
    auto const& own = own_kernel_rows<Backend, typename Ops::list>::rows;
    return g.record(o).kind < own.size() ? own[g.record(o).kind] : nullptr;
  } else {
    auto const rows = kernel_table<Backend, Ops>();
    return g.record(o).kind < rows.size() ? rows[g.record(o).kind] : nullptr;
  }
}

}  // namespace detail

}}  // namespace neap::v0
