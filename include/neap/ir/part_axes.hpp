// The axes along which a part's inputs and outputs are cut, from what is remembered of the ops that were cut.
#pragma once

#include <neap/ir/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// Of one cut: for each input and each output of the part the axis along which it is a piece; -1: a whole one, or, of an
/// output, a partial result.
struct part_axes {
  std::vector<std::int32_t> in, out;
  friend bool operator==(part_axes const&, part_axes const&) = default;
};

namespace detail {

/// The only axis along which extents differ; -1: none, -2: several.
inline std::int32_t cut_axis_of(extents const& part, extents const& whole) {
  std::int32_t axis = -1;
  if (part.rank() != whole.rank()) return -2;
  for (int k = 0; k < part.rank(); ++k)
    if (part[k] != whole[k]) axis = axis == -1 ? k : -2;
  return axis;
}

}  // namespace detail

/// The axes of a part's cuts, the first cut first; none if they are not known, or o is no part. O(inputs + outputs).
inline std::vector<part_axes> axes_of_part(op_graph const& g, op_id o) {
  std::vector<part_axes> cuts;
  std::vector<extents> in, out;
  for (auto v : g.inputs(o)) in.push_back(g.type(v).dims);
  for (auto v : g.outputs(o)) out.push_back(g.type(v).dims);
  auto whole = g.record(o).whole;
  for (auto p = g.record(o).part; p != nothing<part_id>; p = g.part(p).of) {
    if (whole == no_id) return {};
    auto const& w = g.whole(whole);
    if (w.record.input_count != in.size() || w.record.output_count != out.size()) return {};
    part_axes cut;
    auto const compare = [&](std::vector<extents>& parts, std::vector<std::int32_t>& axes, auto const& layout_of) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        auto const& dims = layout_of(i).type.dims;
        axes.push_back(detail::cut_axis_of(parts[i], dims));
        if (axes.back() == -2) return false;
        parts[i] = dims;
      }
      return true;
    };
    if (!compare(in, cut.in, [&](std::size_t i) -> tensor_layout const& { return g.input_layout(w, i); }) ||
        !compare(out, cut.out, [&](std::size_t j) -> tensor_layout const& { return g.output_layout(w, j); }))
      return {};
    cuts.insert(cuts.begin(), std::move(cut));
    whole = w.record.whole;
  }
  return cuts;
}

}}  // namespace neap::v0
