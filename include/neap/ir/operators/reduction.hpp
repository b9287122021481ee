// Reductions over axes, running sums, and the place of the largest element.
#pragma once

#include <neap/backend/kernels/arg_max.hpp>
#include <neap/backend/kernels/cumsum.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/ir/operators/binary.hpp>

#include <span>

namespace neap::inline v0::op {

namespace detail {

/// Axes to reduce, marked; no axes mean all of them.
struct reduced_axes {
  bool at[max_rank]{};
  int list[max_rank]{}, count = 0;

  reduced_axes(extents const& axes, int rank) {
    for (auto k : axes) at[plain_axis(k, rank)] = true;
    for (int k = 0; k < rank; ++k)
      if (at[k] = at[k] || axes.empty(); at[k]) list[count++] = k;
  }
  std::span<int const> span() const { return {list, static_cast<std::size_t>(count)}; }
  shape kept(shape const& x, bool keepdim) const {
    shape dims;
    for (int k = 0; k < x.rank(); ++k)
      if (!at[k]) dims.push_back(x[k]);
      else if (keepdim) dims.push_back(1);
    return dims;
  }
};

/// Sums of integers are i64, whatever their type; a mean of integers is none.
inline void infer_reduction(shape_context& c, extents const& axes, bool keepdim, combine how) {
  c.require_arity(1, 1);
  auto element = c.in(0).element;
  c.require(how != combine::mean || is_floating(element), "the mean of integers is none, was given ", c.in(0),
            ": cast it to a floating type first");
  if (how == combine::sum && !is_floating(element)) element = dtype::i64;
  unsigned seen = 0;
  for (auto k : axes) {
    unsigned const bit = 1u << require_axis(c, 0, k);
    c.require(!(seen & bit), "axis ", k, " is given twice in ", axes);
    seen |= bit;
  }
  c.fresh(tensor_type{element, reduced_axes(axes, c.in(0).rank()).kept(c.in(0).dims, keepdim)});
}
inline void relate_reduction(dim_context& c, extents const& axes, bool keepdim, combine how) {
  reduced_axes const r(axes, c.in(0).rank());
  for (int k = 0, j = 0, n = 0; k < c.in(0).rank(); ++k) {
    if (r.at[k]) c.reduced(0, k, n++, how);
    else c.same(0, k, 0, j);
    j += !r.at[k] || keepdim;
  }
}
inline work reduction_work(work_context const& c) {
  work w = streaming_work(c, 0);
  w.flops = static_cast<double>(c.in[0].type.count());
  return w;
}
/// A reduced value as it broadcasts against what it was reduced from.
inline value_id with_kept_axes(gradient_context& c, value_id v, extents const& axes, bool keepdim) {
  if (keepdim) return v;
  auto const& x = c.type(c.in(0)).dims;
  return c.emit(reshape{reduced_axes(axes, x.rank()).kept(x, true)}, {dense(c, v)});
}
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
  bytes_t workspace(work_context const& c) const {                                                \
    return neap::reduce_workspace(c.in[0].type, c.out[0].type.element,                            \
                                  detail::reduced_axes(axes, c.in[0].type.rank()).span());        \
  }

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
inline void extremum_gradient(gradient_context& c, extents const& axes, bool keepdim) {
  auto const element = c.type(c.in(0)).element;
  value_id const y = with_kept_axes(c, c.out(0), axes, keepdim), g = with_kept_axes(c, c.grad(), axes, keepdim);
  value_id const hit = c.emit(cast{element}, {c.emit(equal{}, {c.in(0), y})});
  extents all;
  reduced_axes const r(axes, c.type(c.in(0)).rank());
  for (int k : r.span()) all.push_back(k);
  if (all.empty()) return c.give(0, g);  // a scalar
  value_id const share = c.emit(div{}, {g, c.emit(sum{all, true}, {hit})});
  c.give(0, c.emit(mul{}, {hit, share}));
}
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
void run(Backend& b, Op const& op, kernel_arguments const& a) {
  neap::reduce(b, Op::kind, a.out[0], a.in[0], detail::reduced_axes(op.axes, a.in[0].rank()).span(), a.workspace);
}

/// The place of the largest element along an axis, as i64 (the first of equals; a NaN is larger than all).
struct arg_max {
  static constexpr std::string_view name = "arg_max";
  std::int64_t axis = -1;
  static constexpr auto attributes() { return std::array{field<&arg_max::axis>("axis")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    int const k = detail::require_axis(c, 0, axis);
    shape dims = c.in(0).dims;
    c.require(dims[k] > 0, "axis ", k, " of ", c.in(0), " has no elements");
    dims.erase(k);
    c.fresh(tensor_type{dtype::i64, dims});
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, 0, i < k ? i : i - 1);
  }
  work cost(work_context const& c) const { return detail::reduction_work(c); }
  void gradient(gradient_context&) const {}  // steps have no slope
};
template <class Backend>
void run(Backend& b, arg_max const& op, kernel_arguments const& a) {
  neap::arg_max(b, a.out[0], a.in[0], static_cast<int>(op.axis));
}

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
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    detail::require_axis(c, 0, axis);
    auto const& x = c.in(0);
    c.fresh(tensor_type{is_floating(x.element) ? x.element : dtype::i64, x.dims});
  }
  void relate(dim_context& c) const {
    int const k = detail::plain_axis(axis, c.in(0).rank());
    for (int i = 0; i < c.in(0).rank(); ++i)
      if (i != k) c.same(0, i, 0, i);
  }
  void gradient(gradient_context& c) const { c.give(0, c.emit(cumsum{axis, !reverse}, {c.grad()})); }
};
template <class Backend>
void run(Backend& b, cumsum const& op, kernel_arguments const& a) {
  neap::cumsum(b, a.out[0], a.in[0], detail::plain_axis(op.axis, a.in[0].rank()), op.reverse);
}

}  // namespace neap::inline v0::op
