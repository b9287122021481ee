// Which operators of neap's compute what a file's nodes do: one row of a table for each operator of PyTorch's, and MAGIS's
// tags. Rewrite rules apply to such nodes, and the verifier looks through them (op_graph::meaning); memory, order and cost
// stay what the file says. A node of a form that is not known has no such operator: a tensor that is read twice, a keyword
// that is not in the row, a divisor whose reciprocal is not exact.
#pragma once

#include <neap/import/aten_call.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>

namespace neap { inline namespace v0 { namespace io {

/// An operator with its attributes.
class known_operator {
 public:
  template <class Op>
    requires std::is_trivially_copyable_v<Op>
  known_operator(Op const& x) : facets_(&facets_of<Op>) {
    static_assert(sizeof(Op) <= sizeof bytes_);
    ::new (static_cast<void*>(bytes_)) Op(x);
  }
  operator_view view() const { return {facets_, bytes_}; }

 private:
  alignas(16) std::byte bytes_[256];
  operator_facets const* facets_;
};

namespace detail { namespace aten_known {

// The rows throw unsupported_argument where the node is of a form that they do not know.

}  // namespace aten_known

}  // namespace detail

/// What a node of PyTorch's computes, if an operator of neap's does the same with its inputs in their order.
std::optional<known_operator> known_aten(aten_node const& n);
/// The same of a node of MAGIS's: its tag, its attributes, the shapes of its inputs and of what it makes.
std::optional<known_operator> known_magis(std::string_view tag, nlohmann::json const& attributes,
                                          std::span<extents const> in, extents const& out);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/known_operators.ipp>
#endif
