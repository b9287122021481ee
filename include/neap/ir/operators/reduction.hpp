// Reductions over axes, running sums, and the place of the largest element.
#pragma once

#include <neap/core/kernel_options.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/binary.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace op {

namespace detail {

/// Axes to reduce, marked; no axes mean all of them.
struct reduced_axes {
  bool at[max_rank]{};
  int list[max_rank]{}, count = 0;

  reduced_axes(extents const& axes, int rank);
  std::span<int const> span() const { return span_of(list, static_cast<std::size_t>(count)); }
  shape kept(shape const& x, bool keepdim) const;
};

/// Sums of integers are i64, whatever their type; a mean of integers is none.
void infer_reduction(shape_context& c, extents const& axes, bool keepdim, combine how);
void relate_reduction(dim_context& c, extents const& axes, bool keepdim, combine how);
work reduction_work(work_context const& c);
bytes_t reduction_workspace(work_context const& c, extents const& axes);
/// A reduced value as it broadcasts against what it was reduced from.
value_id with_kept_axes(gradient_context& c, value_id v, extents const& axes, bool keepdim);
}  // namespace detail

#define NEAP_REDUCTION_FACETS(self, how)                                                          \
  extents axes;         /* none: all; negative ones count from the end */                         \
  bool keepdim = false; /* reduced axes stay, with extent 1 */                                    \
  static constexpr auto attributes() {                                                            \
    return std::array{field<&self::axes>("axes"), field<&self::keepdim>("keepdim")};              \
  }                                                                                               \
  void infer(shape_context& c) const { detail::infer_reduction(c, axes, keepdim, combine::how); } \
  void relate(dim_context& c) const { detail::relate_reduction(c, axes, keepdim, combine::how); } \
  work cost(work_context const& c) const { return detail::reduction_work(c); }                    \
  bytes_t workspace(work_context const& c) const { return detail::reduction_workspace(c, axes); }

/// The sum along axes; of integers and booleans (how many are true) as i64.
struct sum {
  static constexpr std::string_view name = "sum";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr neap::reduction kind = neap::reduction::sum;
  NEAP_REDUCTION_FACETS(sum, sum)
  void gradient(gradient_context& c) const {
    c.give(0, c.emit(broadcast_to{c.type(c.in(0)).dims}, {detail::with_kept_axes(c, c.grad(), axes, keepdim)}));
  }
};
/// The mean along axes of a floating type.
struct mean {
  static constexpr std::string_view name = "mean";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr neap::reduction kind = neap::reduction::mean;
  NEAP_REDUCTION_FACETS(mean, mean)
  void gradient(gradient_context& c) const {
    auto const x = c.type(c.in(0));
    double const terms = static_cast<double>(std::max<std::int64_t>(1, x.count())) /
                         static_cast<double>(std::max<std::int64_t>(1, c.type(c.out(0)).count()));
    value_id const g = c.emit(mul_scalar{1 / terms}, {c.grad()});
    c.give(0, c.emit(broadcast_to{x.dims}, {detail::with_kept_axes(c, g, axes, keepdim)}));
  }
};

namespace detail {
/// The gradient of a largest or smallest element is shared among all that equal it.
void extremum_gradient(gradient_context& c, extents const& axes, bool keepdim);
}  // namespace detail

/// The largest element along axes; a NaN wins.
struct max_reduce {
  static constexpr std::string_view name = "max_reduce";
  static constexpr neap::reduction kind = neap::reduction::max;
  NEAP_REDUCTION_FACETS(max_reduce, max)
  void gradient(gradient_context& c) const { detail::extremum_gradient(c, axes, keepdim); }
};
/// The smallest element along axes; a NaN wins.
struct min_reduce {
  static constexpr std::string_view name = "min_reduce";
  static constexpr neap::reduction kind = neap::reduction::min;
  NEAP_REDUCTION_FACETS(min_reduce, min)
  void gradient(gradient_context& c) const { detail::extremum_gradient(c, axes, keepdim); }
};
#undef NEAP_REDUCTION_FACETS

template <class Op>
concept reduction_operator = requires {
  { Op::kind } -> std::convertible_to<neap::reduction>;
};
template <class Backend, reduction_operator Op>
void run(Backend& b, Op const& op, kernel_arguments const& a);

/// The place of the largest element along an axis, as i64 (the first of equals; a NaN is larger than all).
struct arg_max {
  static constexpr std::string_view name = "arg_max";
  std::int64_t axis = -1;
  static constexpr auto attributes() { return std::array{field<&arg_max::axis>("axis")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const { return detail::reduction_work(c); }
  void gradient(gradient_context&) const {}  // steps have no slope
};
template <class Backend>
void run(Backend& b, arg_max const& op, kernel_arguments const& a);

/// The sums of the first elements along an axis, up to each; from the end back if `reverse`. Of integers and booleans as
/// i64.
struct cumsum {
  static constexpr std::string_view name = "cumsum";
  static constexpr precision_rule precision = precision_use::full;
  std::int64_t axis = -1;
  bool reverse = false;
  static constexpr auto attributes() {
    return std::array{field<&cumsum::axis>("axis"), field<&cumsum::reverse>("reverse")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void gradient(gradient_context& c) const { c.give(0, c.emit(cumsum{axis, !reverse}, {c.grad()})); }
};
template <class Backend>
void run(Backend& b, cumsum const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/reduction.ipp>
#endif
