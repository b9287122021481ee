// Which function runs an op on a backend: one row a kind of the operator set, found when compiling. A backend that lacks
// a kernel for an operator of the set does not compile, and the message names the operator.
#pragma once

#include <neap/ir/opaque.hpp>
#include <neap/ir/operator.hpp>
#include <neap/ir/operators/transfer.hpp>

#include <array>
#include <type_traits>

namespace neap::inline v0 {

template <class Backend>
using kernel_function = void (*)(Backend&, void const* op, kernel_arguments const&);

/// Whether `run(backend, op, arguments)` is found for an operator.
template <class Op, class Backend>
concept has_kernel = requires(Backend& b, Op const& op, kernel_arguments const& a) { run(b, op, a); };

/// Operators that an executable treats itself: transfers, and those whose meaning is not known.
template <class Op>
inline constexpr bool runs_without_kernel =
    std::is_same_v<Op, op::store> || std::is_same_v<Op, op::load> || std::is_same_v<Op, op::opaque>;

namespace detail {

template <class Op, class Backend>
struct kernel_of {
  static_assert(runs_without_kernel<Op> || has_kernel<Op, Backend>,
                "neap: this backend has no kernel for this operator: it lacks  void run(Backend&, Op const&, "
                "neap::kernel_arguments const&)  beside the operator (Op and Backend are named in kernel_of<Op, Backend>)");
  static constexpr kernel_function<Backend> get() {
    if constexpr (runs_without_kernel<Op> || !has_kernel<Op, Backend>) {
      return nullptr;
    } else {
      return [](Backend& b, void const* o, kernel_arguments const& a) {
        if constexpr (std::is_empty_v<Op>) run(b, Op{}, a);
        else run(b, *static_cast<Op const*>(o), a);
      };
    }
  }
};

template <class List, class Backend>
struct kernel_rows;
template <class... Op, class Backend>
struct kernel_rows<type_list<Op...>, Backend> {
  static constexpr std::array<kernel_function<Backend>, sizeof...(Op)> rows{kernel_of<Op, Backend>::get()...};
};

}  // namespace detail

/// Row k runs ops of kind k of a graph over Ops; null for transfers and opaque operators.
template <class Ops, class Backend>
inline constexpr auto const& kernel_table = detail::kernel_rows<typename Ops::list, Backend>::rows;

}  // namespace neap::inline v0
