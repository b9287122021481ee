// How PyTorch's operators may be cut: the dimension relations of imported aten nodes, one row of a table for each operator.
// A row's function reads the node's arguments and says loops: "these axes of inputs are these axes of outputs", and how
// the other outputs of parts make the whole. What it says is true of the operator on equal parts with the same other
// arguments, but for those that are a shape, which follow the outputs, and those that say where a tensor begins in its
// storage (as_strided's), which are the part's own; what is not known to be true is not said, and arguments of a form
// that is not known give no relations at all.
//
// Random draws (dropout) are related like any element: a part draws its share of what the whole would draw. Where an
// operator gives its random state beside its result, every part gives the same.
#pragma once

#include <neap/import/aten_call.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

/// The rules. c: the call; letters and names are those of PyTorch's schemas.
namespace aten {

/// Makes a tensor of nothing, or only of a shape; or nothing about it is true of parts.
inline void no_relations(aten_call&) {}

/// Elementwise after broadcasting: aligned from the last axis; an axis of extent 1 is there for all elements.
void pointwise(aten_call& c);

struct row {
  std::string_view op;  // without "aten."
  void (*relate)(aten_call&);
};

/// All rows, by name.
std::span<row const> rows();

}  // namespace aten
}  // namespace detail

/// How a node may be cut; nothing where it is not known. O(uses of tensors * axes).
std::vector<dim_link> aten_links(aten_node const& n);

/// Whether a node makes tensors of zeros alone, as far as its operator and arguments tell.
bool aten_makes_zeros(aten_node const& n);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/aten_links.ipp>
#endif
