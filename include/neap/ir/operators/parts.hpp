// What joins the parts of ops that fission has cut: room for the whole, into which each part's piece is placed, and
// partial results that are combined into the first one. Both write in place, so that beside the whole there is one piece.
//
//   whole0 = blank[8, 4]     whole1 = place(whole0, piece 0)     whole2 = place(whole1, piece 1)
//   sum1 = combine_into(partial 0, partial 1)                    sum2 = combine_into(sum1, partial 2)
#pragma once

#include <neap/ir/operators/binary.hpp>

namespace neap { inline namespace v0 { namespace op {

/// -> a tensor in which nothing has been written yet. It costs nothing and is never run; its elements have no values
/// until they are placed.
struct blank {
  static constexpr std::string_view name = "blank";
  extents dims, strides;  // strides: none for a dense tensor
  dtype element = dtype::f32;
  std::int64_t bytes = -1;  // of the storage; negative: as many as it needs
  static constexpr auto attributes() {
    return std::array{field<&blank::dims>("dims"), field<&blank::strides>("strides"), field<&blank::element>("element"),
                      field<&blank::bytes>("bytes")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
  work cost(work_context const&) const { return {}; }
};
template <class Backend>
void run(Backend&, blank const&, kernel_arguments const&);

/// whole, piece -> the whole with the piece from `start` on along an axis, written in place.
struct place {
  static constexpr std::string_view name = "place";
  static constexpr layouts takes = layouts::any;
  std::int64_t axis = 0, start = 0;
  static constexpr auto attributes() { return std::array{field<&place::axis>("axis"), field<&place::start>("start")}; }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
  work cost(work_context const& c) const;
};
template <class Backend>
void run(Backend& b, place const& op, kernel_arguments const& a);

/// x, y -> the elements of x and y combined, written over x.
struct combine_into {
  static constexpr std::string_view name = "combine_into";
  static constexpr layouts takes = layouts::any;
  combine how = combine::sum;
  static constexpr auto attributes() { return std::array{field<&combine_into::how>("how")}; }
  void infer(shape_context& c) const;
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend& b, combine_into const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/parts.ipp>
#endif
