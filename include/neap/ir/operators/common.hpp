// What operators of all families share: rules for shapes, layouts and broadcasting, and the bridge from an operator that
// is a scalar function to its kernel.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/ir/operator.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace neap { inline namespace v0 { namespace op {

struct copy;
struct sum_to;

namespace detail {
using neap::detail::streaming_work;
using neap::detail::touched_bytes;

void require_floating(shape_context& c, int i);
void require_same_element(shape_context& c, int i, int j);
void require_same_type(shape_context& c, int i, int j);
void require_dims(shape_context& c, int i, shape const& dims, std::string_view what);
void require_rank(shape_context& c, int i, int least, std::string_view what);
/// The elements of input i must follow one another; `dense()` makes it so.
void require_dense(shape_context& c, int i);
/// Likewise those of each row.
void require_dense_rows(shape_context& c, int i);
/// An axis of input i as a number from 0; negative ones count from the end.
int require_axis(shape_context& c, int i, std::int64_t axis);
inline int plain_axis(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

/// The shape that all inputs from `first` on broadcast to: aligned from the last axis, extents of 1 stretch.
shape broadcast(shape_context& c, int first = 0);
/// All axes are the same, aligned from the last. (Called, not copied: a hundred operators say so.)
[[gnu::noinline]] inline void relate_all_aligned(dim_context& c) {
  for (int i = 0; i < c.arity(); ++i)
    for (int j = 0; j < c.output_count(); ++j) c.aligned(i, j);
}
/// Axes of equal number and extent are the same, except the last `but_last`.
[[gnu::noinline]] inline void relate_leading(dim_context& c, int input, int output, int but_last) {
  int const rank = std::min(c.in(input).rank(), c.out(output).rank());
  for (int k = 0; k < rank && k < c.in(input).rank() - but_last; ++k)
    if (c.in(input).dims[k] == c.out(output).dims[k]) c.same(input, k, output, k);
}

/// An argument that may be absent.
tensor_ref optional(std::span<tensor_ref const> list, std::size_t i);

inline constexpr std::string_view grad_suffix = "_grad", and_result = "_grad_and_result", at_argument = "_grad_at";
/// "relu" -> "relu_grad", when compiling; or with another suffix.
template <class Op, std::string_view const& Suffix = grad_suffix>
struct gradient_name {
  static constexpr auto text = [] {
    constexpr std::string_view base = Op::name, suffix = Suffix;
    std::array<char, base.size() + suffix.size()> t{};
    std::copy(base.begin(), base.end(), t.begin());
    std::copy(suffix.begin(), suffix.end(), t.begin() + base.size());
    return t;
  }();
  static constexpr std::string_view value{text.data(), text.size()};
};

}  // namespace detail

/// v itself if its elements follow one another, else a dense copy of it.
value_id dense(op_emitter& to, value_id v);
inline value_id dense(gradient_context& c, value_id v);
/// v itself if the elements of each of its rows follow one another, else a dense copy of it.
inline value_id dense_rows(op_emitter& to, value_id v);
inline value_id dense_rows(gradient_context& c, value_id v);
/// A gradient as one of a value of the given shape: summed over the axes along which that value was broadcast.
value_id reduced_to(gradient_context& c, value_id g, shape const& dims);

/// An operator that is a scalar function: operator()(C...) of `map_inputs` numbers gives one. Its kernel maps it.
template <class Op>
concept scalar_operator = requires {
  { Op::map_inputs } -> std::convertible_to<int>;
};

template <class Backend, scalar_operator Op>
void run(Backend& b, Op const& op, kernel_arguments const& a);

/// Facets of a scalar function of N inputs of one element type, broadcast to one shape.
template <int N, bool Floating>
struct scalar_function {
  static constexpr int map_inputs = N;
  static constexpr layouts takes = layouts::any;
  static constexpr bool elementwise = true;
  static constexpr precision_rule precision = precision_use::common;
  static constexpr bool integral = !Floating;  // integers are computed as integers
  void infer(shape_context& c) const { infer_as(c); }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }

  static void infer_as(shape_context& c) {
    c.require_arity(N, N);
    for (int i = 1; i < N; ++i) detail::require_same_element(c, 0, i);
    if (Floating) detail::require_floating(c, 0);
    c.fresh(tensor_type{c.in(0).element, detail::broadcast(c)});
  }
};

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/common.ipp>
#endif
