// The standard set of operators, and the graph over it.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/attention.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/conv2d.hpp>
#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/matmul_update.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/multinomial.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/operators/update.hpp>
#if !defined(NEAP_SEPARATE_COMPILATION) && !defined(__CUDACC__)  // facets have kernels
#include <neap/ir/operators/kernels/standard.hpp>
#endif

namespace neap { inline namespace v0 {

struct standard_operators : detail::extended<op::standard_list>::type {};

namespace detail {
template <class... Op>
constexpr bool is_name_among(std::string_view name, type_list<Op...>) {
  for (std::string_view const other : {std::string_view(Op::name)...})
    if (name == other) return true;
  return false;
}
/// Whether a standard operator has this name.
inline bool is_standard_name(std::string_view name) { return is_name_among(name, op::standard_list{}); }
}  // namespace detail

}}  // namespace neap::v0
