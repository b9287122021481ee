// Equal parts of an axis as views: one op with several outputs, so that its gradient is one concatenation. (As slices,
// each part's gradient would be padded to the whole, and the wholes added.)
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap { inline namespace v0 { namespace op {

/// x -> views of `parts` equal parts of an axis, in order.
struct split {
  static constexpr std::string_view name = "split";
  static constexpr double flops = 0;
  std::int64_t axis = 0, parts = 1;
  static constexpr auto attributes() { return std::array{field<&split::axis>("axis"), field<&split::parts>("parts")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend&, split const&, kernel_arguments const&);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/split.ipp>
#endif
