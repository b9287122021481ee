// The algebraic rules: those of MAGIS (which are TASO's, SOSP'19), and those that attention and convolution nets need
// besides. Each is a constant of its own, `using_rules<rules::distribute>` is it as a mutator, `taso_rules{}` are all.
//
// Sums and products match in either order of their arguments, so that MAGIS's 27 rules of sums and products are eleven here:
// a comment gives their numbers. Where a rule of MAGIS's is wrong or matches nothing, ours has what makes it right:
//
// - ConcatMatmul takes a concat along any axis for one along the columns. Ours look at the axis (columns, rows, batch).
// - MergeMatmul1 and ConcatMatmul1 bind their arguments in the wrong order, and match nothing useful.
// - ConcatConv2d pads the smaller kernel and leaves the padding of the images, which shifts the result or changes its size.
//   Ours requires that the images' paddings differ by what the kernels' do.
// - MergeFlexMatmul puts the concatenated weights after an update of one of them. Here no op reads a storage after the op
//   that overwrites it, whatever the rule (mutate/rewrite.hpp).
// - Scales are joined only where the product of the two numbers is exact.
#pragma once

#include <neap/mutate/rewrite.hpp>

#include <algorithm>
#include <cmath>

namespace neap { inline namespace v0 {

namespace pattern::rules {

namespace detail {

/// An axis from 0.
constexpr int plain(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }
/// Of a match with a product in slot s: the axis of rows of a left factor, of columns of a right one, of what is summed.
inline int rows_axis(match const& m, letter l) { return m.rank(l) - (m.as<op::matmul>(s).transpose_a ? 1 : 2); }
inline int columns_axis(match const& m, letter l) { return m.rank(l) - (m.as<op::matmul>(s).transpose_b ? 2 : 1); }
inline int left_inner(match const& m, letter l) { return m.rank(l) - (m.as<op::matmul>(s).transpose_a ? 2 : 1); }
inline int right_inner(match const& m, letter l) { return m.rank(l) - (m.as<op::matmul>(s).transpose_b ? 1 : 2); }

inline bool like(match const& m, letter l, letter r) { return m.type(l) == m.type(r); }
/// The axis of the concat or slice in a slot, whose result has `rank` axes.
template <class Op>
int axis_of(match const& m, slot k) {
  auto const o = m.op(k);
  return plain(m.as<Op>(k).axis, m.graph().type(m.graph().output(o)).rank());
}
inline int result_rank(match const& m, slot k) { return m.result_dims(k).rank(); }

inline bool swaps_last_two(extents const& axes) {
  int const r = axes.rank();
  for (int k = 0; k < r - 2; ++k)
    if (axes[k] != k) return false;
  return r >= 2 && axes[r - 2] == r - 1;
}
/// Whether two doubles' product is a double; their sum, where nothing cancels: (x + 5) - 5 is not x in floating point.
inline bool exact_product(double f, double g) {
  return std::isfinite(f * g) && std::fma(f, g, -(f * g)) == 0 && std::abs(f * g) > 1e-290;
}
inline bool exact_sum(double f, double g) {
  double const n = f + g;
  return f * g >= 0 && std::isfinite(n) && n - f == g && n - g == f;
}
/// Whether every number of one floating type is one of another.
inline bool has_all_of(dtype to, dtype from) {
  return to == from || to == dtype::f64 || (to == dtype::f32 && (from == dtype::f16 || from == dtype::bf16));
}
inline std::int64_t rows_of(extents const& dims) {
  std::int64_t n = 1;
  for (int k = 0; k < dims.rank() - 1; ++k) n *= dims[k];
  return n;
}
/// Kernel a, padded by as much on all sides, is as large as kernel b, and image paddings make up for it: s is the
/// convolution with a, t that with b.
inline bool pads_to(match const& m, letter small, letter large) {
  auto const &f = m.as<op::conv2d>(s), &g = m.as<op::conv2d>(t);
  if (f.groups != 1 || g.groups != 1 || !(f.stride == g.stride) || !(f.dilation == g.dilation)) return false;
  bool differs = false;
  for (int k : {0, 1}) {
    auto const more = m.dims(large)[2 + k] - m.dims(small)[2 + k];
    if (more < 0 || more % 2 != 0 || g.padding[k] - f.padding[k] != f.dilation[k] * (more / 2)) return false;
    differs = differs || more != 0;
  }
  return differs;
}
template <int Axis, letter const& Small, letter const& Large>
op::pad kernel_pad(match const& m) {
  auto const n = (m.dims(Large)[Axis] - m.dims(Small)[Axis]) / 2;
  return {Axis, n, n, 0};
}

template <int Axis>
inline constexpr auto along = [](match const&) { return op::concat{Axis}; };

/// Where an argument of a concat is a piece of something: of what, and from where on.
struct piece {
  value_id of = nothing<value_id>;
  std::int64_t start = 0, stop = 0;
};
inline piece piece_of(op_graph const& g, value_id v, int axis) {
  auto const o = g.producer(v);
  if (o == nothing<op_id> || g.record(o).part != nothing<part_id> || !g.may_replace(o)) return {};
  int const rank = g.type(v).rank();
  if (auto const* x = g.means<op::slice>(o); x && plain(x->axis, rank) == axis)
    return {g.inputs(o)[0], x->start, x->stop};
  if (auto const* x = g.means<op::split>(o); x && plain(x->axis, rank) == axis) {
    auto const n = g.type(v).dims[axis];
    auto const k = static_cast<std::int64_t>(index(v) - index(g.output(o)));
    return {g.inputs(o)[0], k * n, (k + 1) * n};
  }
  return {};
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------- sums and products

/// MAGIS 1, 5.
inline constexpr rule regroup_sum("regroup a sum", (c + (a + b)) >> (a + (b + c)));
/// MAGIS 0, 4.
inline constexpr rule share_addend("share an addend", (c + (c + (a + b))) >> ((a + c) + (b + c)));
/// MAGIS 3, 7.
inline constexpr rule chain_addend("add one after another", (c + (c + (a + b))) >> (b + (c + (a + c))));
/// MAGIS 2, 6.
inline constexpr rule gather_addend("gather an addend", ((a + b) + (b + c)) >> (b + (b + (a + c))));
/// MAGIS 8, 9, 12, 19, 25, 26.
inline constexpr rule distribute("distribute", (c * (a + b)) >> (c * a + c * b));
inline constexpr rule factor("factor", (c * a + c * b) >> (c * (a + b)));
/// MAGIS 10, 17.
inline constexpr rule factor_product("factor a product", (a * b + c * (a * b)) >> (b * (a + a * c)));
/// MAGIS 11, 18.
inline constexpr rule factor_out("factor out", (d * (b + a * b)) >> (b * (d + a * d)));
/// MAGIS 22.
inline constexpr rule distribute_product("distribute a product", (d * (b + a * b)) >> (b * d + a * (b * d)));
/// MAGIS 13, 20.
inline constexpr rule share_factor("share a factor", (c * (c * (a * b))) >> ((a * c) * (b * c)));
/// MAGIS 16, 24.
inline constexpr rule chain_factor("multiply one after another", (c * (c * (a * b))) >> (b * (c * (a * c))));
/// MAGIS 14, 21.
inline constexpr rule regroup_product("regroup a product", (c * (a * b)) >> (b * (a * c)));
/// MAGIS 15, 23.
inline constexpr rule gather_factor("gather a factor", ((a * b) * (b * c)) >> (b * (b * (a * c))));

inline constexpr rule distribute_difference("distribute over a difference", (c * (a - b)) >> (c * a - c * b));
inline constexpr rule factor_difference("factor a difference", (c * a - c * b) >> (c * (a - b)));
inline constexpr rule add_negative("add a negative", (a + neg(b)) >> (a - b));
inline constexpr rule subtract_negative("subtract a negative", (a - neg(b)) >> (a + b));
inline constexpr rule negate_twice("negate twice", neg(neg(a)) >> a);
inline constexpr rule multiply_negative("multiply by a negative", (a * neg(b)) >> neg(a * b));

// ---------------------------------------------------------------------------------------------- numbers

inline constexpr rule scale_twice(
    "scale twice", mul_scalar[s](mul_scalar[t](x)) >> made<[](match const& m) {
                     return op::mul_scalar{m.as<op::mul_scalar>(s).value * m.as<op::mul_scalar>(t).value};
                   }>(x),
    [](match const& m) { return detail::exact_product(m.as<op::mul_scalar>(s).value, m.as<op::mul_scalar>(t).value); });
inline constexpr rule shift_twice(
    "shift twice", add_scalar[s](add_scalar[t](x)) >> made<[](match const& m) {
                     return op::add_scalar{m.as<op::add_scalar>(s).value + m.as<op::add_scalar>(t).value};
                   }>(x),
    [](match const& m) { return detail::exact_sum(m.as<op::add_scalar>(s).value, m.as<op::add_scalar>(t).value); });
inline constexpr rule scale_by_one("scale by one", mul_scalar[s](x) >> x,
                                   [](match const& m) { return m.as<op::mul_scalar>(s).value == 1; });
inline constexpr rule shift_by_zero("shift by -0", add_scalar[s](x) >> x, [](match const& m) {
  auto const by = m.as<op::add_scalar>(s).value;
  return by == 0 && std::signbit(by);  // -0 + 0 is not -0
});
inline constexpr rule scale_sum("scale a sum", (mul_scalar[s](a) + mul_scalar[s](b)) >> mul_scalar[s](a + b));
inline constexpr rule scale_product("scale a product", (mul_scalar[s](a) * b) >> mul_scalar[s](a * b));
inline constexpr rule scale_after_left("scale after a product, left",
                                       matmul[t](mul_scalar[s](a), b) >> mul_scalar[s](matmul[t](a, b)));
inline constexpr rule scale_after_right("scale after a product, right",
                                        matmul[t](a, mul_scalar[s](b)) >> mul_scalar[s](matmul[t](a, b)));
inline constexpr rule scale_before_left("scale before a product, left",
                                        mul_scalar[s](matmul[t](a, b)) >> matmul[t](mul_scalar[s](a), b));
inline constexpr rule scale_before_right("scale before a product, right",
                                         mul_scalar[s](matmul[t](a, b)) >> matmul[t](a, mul_scalar[s](b)));
inline constexpr rule scale_after_conv("scale after a convolution",
                                       conv2d[t](mul_scalar[s](x), w) >> mul_scalar[s](conv2d[t](x, w)));
inline constexpr rule scale_kernel("scale the kernel",
                                   mul_scalar[s](conv2d[t](x, w)) >> conv2d[t](x, mul_scalar[s](w)));
inline constexpr rule scale_after_sum("scale after summing", sum[t](mul_scalar[s](x)) >> mul_scalar[s](sum[t](x)));
inline constexpr rule scale_after_sum_to("scale after summing to a shape",
                                         sum_to[t](mul_scalar[s](x)) >> mul_scalar[s](sum_to[t](x)));
inline constexpr rule sum_once("sum once", (sum[s](a) + sum[s](b)) >> sum[s](a + b),
                               [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sum_apart("sum apart", sum[s](a + b) >> (sum[s](a) + sum[s](b)),
                                [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sum_to_once("sum to a shape once", (sum_to[s](a) + sum_to[s](b)) >> sum_to[s](a + b),
                                  [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sum_to_apart("sum to a shape apart", sum_to[s](a + b) >> (sum_to[s](a) + sum_to[s](b)),
                                   [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sum_to_twice("sum to a shape twice", sum_to[s](sum_to[t](x)) >> sum_to[s](x));
inline constexpr rule sum_to_itself("sum to its own shape", sum_to[s](x) >> x,
                                    [](match const& m) { return m.as<op::sum_to>(s).dims == m.dims(x); });

// ---------------------------------------------------------------------------------------------- products of matrices

inline constexpr rule one_product("one product", (matmul[s](x, a) + matmul[s](x, b)) >> matmul[s](x, a + b),
                                  [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule one_product_left("one product, left", (matmul[s](a, x) + matmul[s](b, x)) >> matmul[s](a + b, x),
                                       [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule one_product_difference("one product of a difference",
                                             (matmul[s](x, a) - matmul[s](x, b)) >> matmul[s](x, a - b),
                                             [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule one_convolution("one convolution", (conv2d[s](x, a) + conv2d[s](x, b)) >> conv2d[s](x, a + b),
                                      [](match const& m) { return detail::like(m, a, b); });
/// A sum of products is one product along a longer axis: the gradient of what several layers read.
inline constexpr rule longer_product(
    "one longer product",
    (matmul[s](a, b) + matmul[s](c, d)) >>
        matmul[s](made<[](match const& m) { return op::concat{detail::left_inner(m, a)}; }>(a, c),
                  made<[](match const& m) { return op::concat{detail::right_inner(m, b)}; }>(b, d)),
    [](match const& m) { return m.rank(a) == m.rank(c) && m.rank(b) == m.rank(d); });
inline constexpr rule right_first(
    "right product first", matmul[s](matmul[t](a, b), c) >> made<[](match const& m) {
                             return op::matmul{m.as<op::matmul>(t).transpose_a, false};
                           }>(a, made<[](match const& m) {
                                return op::matmul{m.as<op::matmul>(t).transpose_b, m.as<op::matmul>(s).transpose_b};
                              }>(b, c)),
    [](match const& m) { return !m.as<op::matmul>(s).transpose_a; });
inline constexpr rule left_first(
    "left product first",
    matmul[s](a, matmul[t](b, c)) >> made<[](match const& m) {
      return op::matmul{false, m.as<op::matmul>(t).transpose_b};
    }>(made<[](match const& m) {
         return op::matmul{m.as<op::matmul>(s).transpose_a, m.as<op::matmul>(t).transpose_a};
       }>(a, b),
                                     c),
    [](match const& m) { return !m.as<op::matmul>(s).transpose_b; });
inline constexpr rule transposed_left(
    "a transposed left factor", matmul[s](permute[t](a), b) >> made<[](match const& m) {
                                  return op::matmul{!m.as<op::matmul>(s).transpose_a, m.as<op::matmul>(s).transpose_b};
                                }>(a, b),
    [](match const& m) { return detail::swaps_last_two(m.as<op::permute>(t).axes); });
inline constexpr rule transposed_right(
    "a transposed right factor", matmul[s](a, permute[t](b)) >> made<[](match const& m) {
                                   return op::matmul{m.as<op::matmul>(s).transpose_a, !m.as<op::matmul>(s).transpose_b};
                                 }>(a, b),
    [](match const& m) { return detail::swaps_last_two(m.as<op::permute>(t).axes); });
inline constexpr rule transposed_product(
    "a transposed product", permute[t](matmul[s](a, b)) >> made<[](match const& m) {
                              return op::matmul{!m.as<op::matmul>(s).transpose_b, !m.as<op::matmul>(s).transpose_a};
                            }>(b, a),
    [](match const& m) { return detail::swaps_last_two(m.as<op::permute>(t).axes); });
/// MAGIS's flexible matmul: several axes of rows are one, or are kept apart.
inline constexpr rule keep_rows_apart(
    "rows of several axes",
    matmul[s](reshape[t](x), w) >> made<[](match const& m) { return op::reshape{m.result_dims(s)}; }>(matmul[s](x, w)),
    [](match const& m) {
      return !m.as<op::matmul>(s).transpose_a && m.rank(w) == 2 && m.rank(x) >= 2 && m.result_dims(t).rank() == 2 &&
             m.dims(x).back() == m.result_dims(t).back();
    });
inline constexpr rule join_rows("rows as one axis",
                                matmul[s](x, w) >>
                                    made<[](match const& m) { return op::reshape{m.result_dims(s)}; }>(
                                        matmul[s](made<[](match const& m) {
                                                    return op::reshape{{detail::rows_of(m.dims(x)), m.dims(x).back()}};
                                                  }>(x),
                                                  w)),
                                [](match const& m) {
                                  return !m.as<op::matmul>(s).transpose_a && m.rank(w) == 2 && m.rank(x) > 2 &&
                                         m.layout(x).is_dense();
                                });
/// A convolution by one element is a product: MAGIS's flexible convolution.
inline constexpr rule pointwise_convolution(
    "a convolution by one element",
    conv2d[s](x, w) >> made<[](match const& m) { return op::reshape{m.result_dims(s)}; }>(
                           matmul(made<[](match const& m) {
                                    return op::reshape{{m.dims(w)[0], m.dims(w)[1]}};
                                  }>(w),
                                  made<[](match const& m) {
                                    return op::reshape{{m.dims(x)[0], m.dims(x)[1], m.dims(x)[2] * m.dims(x)[3]}};
                                  }>(x))),
    [](match const& m) {
      auto const& f = m.as<op::conv2d>(s);
      return m.dims(w)[2] == 1 && m.dims(w)[3] == 1 && f.groups == 1 && f.stride == extents{1, 1} &&
             f.padding == extents{0, 0} && m.layout(x).is_dense() && m.layout(w).is_dense();
    });

// ---------------------------------------------------------------------------------------------- joined results

/// MAGIS's ConcatMatmul, along the columns.
inline constexpr rule concat_columns(
    "concat of products, columns",
    concat[t](matmul[s](x, a), matmul[s](x, b)) >>
        matmul[s](x, made<[](match const& m) { return op::concat{detail::columns_axis(m, a)}; }>(a, b)),
    [](match const& m) {
      return m.rank(a) == m.rank(b) && detail::axis_of<op::concat>(m, t) == detail::result_rank(m, t) - 1;
    });
/// MAGIS's ConcatMatmul1, along the rows or an axis of the batch that the right factor has not.
inline constexpr rule concat_rows("concat of products, rows",
                                  concat[t](matmul[s](a, w), matmul[s](b, w)) >>
                                      matmul[s](made<[](match const& m) {
                                                  int const axis = detail::axis_of<op::concat>(m, t), r = m.rank(a);
                                                  return op::concat{axis == r - 2 ? detail::rows_axis(m, a) : axis};
                                                }>(a, b),
                                                w),
                                  [](match const& m) {
                                    int const r = detail::result_rank(m, t), axis = detail::axis_of<op::concat>(m, t);
                                    if (m.rank(a) != r || m.rank(b) != r || axis == r - 1) return false;
                                    if (axis == r - 2) return true;
                                    int const in_w = axis - (r - m.rank(w));
                                    return in_w < 0 || m.dims(w)[in_w] == 1;
                                  });
/// MAGIS's ConcatAdd.
inline constexpr rule concat_sums("concat of sums", concat[t](a + b, c + d) >> (concat[t](a, c) + concat[t](b, d)),
                                  [](match const& m) { return detail::like(m, a, b) && detail::like(m, c, d); });
inline constexpr rule sum_of_concats("sum of concats", (concat[t](a, c) + concat[t](b, d)) >> concat[t](a + b, c + d),
                                     [](match const& m) { return detail::like(m, a, b) && detail::like(m, c, d); });
inline constexpr rule concat_unary("concat of functions",
                                   concat[t](unary[s](a), unary[s](b)) >> unary[s](concat[t](a, b)));
inline constexpr rule unary_concat("function of a concat",
                                   unary[s](concat[t](a, b)) >> concat[t](unary[s](a), unary[s](b)));
/// MAGIS's ConcatConv2d, of kernels of one size.
inline constexpr rule concat_channels(
    "concat of convolutions, channels",
    concat[t](conv2d[s](x, a), conv2d[s](x, b)) >> conv2d[s](x, made<detail::along<0>>(a, b)),
    [](match const& m) { return detail::axis_of<op::concat>(m, t) == 1 && m.as<op::conv2d>(s).groups == 1; });
inline constexpr rule concat_channels_shifted(
    "concat of shifted convolutions, channels",
    concat[t](conv2d[s](x, a, c), conv2d[s](x, b, d)) >>
        conv2d[s](x, made<detail::along<0>>(a, b), made<detail::along<0>>(c, d)),
    [](match const& m) { return detail::axis_of<op::concat>(m, t) == 1 && m.as<op::conv2d>(s).groups == 1; });
/// The same with the smaller kernel padded by zeros.
inline constexpr rule concat_padded(
    "concat of convolutions, the first kernel padded",
    concat[u](conv2d[s](x, a), conv2d[t](x, b)) >>
        conv2d[t](x,
                  made<detail::along<0>>(made<detail::kernel_pad<3, a, b>>(made<detail::kernel_pad<2, a, b>>(a)), b)),
    [](match const& m) { return detail::axis_of<op::concat>(m, u) == 1 && detail::pads_to(m, a, b); });
inline constexpr rule concat_padded_second(
    "concat of convolutions, the second kernel padded",
    concat[u](conv2d[t](x, b), conv2d[s](x, a)) >>
        conv2d[t](x,
                  made<detail::along<0>>(b, made<detail::kernel_pad<3, a, b>>(made<detail::kernel_pad<2, a, b>>(a)))),
    [](match const& m) { return detail::axis_of<op::concat>(m, u) == 1 && detail::pads_to(m, a, b); });
/// MAGIS's ConcatConv2d1.
inline constexpr rule concat_images("concat of convolutions, images",
                                    concat[t](conv2d[s](a, w), conv2d[s](b, w)) >>
                                        conv2d[s](made<detail::along<0>>(a, b), w),
                                    [](match const& m) { return detail::axis_of<op::concat>(m, t) == 0; });
inline constexpr rule concat_images_shifted("concat of shifted convolutions, images",
                                            concat[t](conv2d[s](a, w, c), conv2d[s](b, w, c)) >>
                                                conv2d[s](made<detail::along<0>>(a, b), w, c),
                                            [](match const& m) { return detail::axis_of<op::concat>(m, t) == 0; });

// ---------------------------------------------------------------------------------------------- merged ops

namespace detail {
inline constexpr auto along_columns = [](match const& m) { return op::concat{columns_axis(m, a)}; };
inline constexpr auto along_rows = [](match const& m) { return op::concat{rows_axis(m, a)}; };
/// What the first and the second of two ops make of what they make together, along an axis where a and b have these extents.
template <int Axis, auto Extent>
constexpr term parts_of(term const& merged) {
  return both(made<[](match const& m) {
                return op::slice{Axis, 0, Extent(m, a)};
              }>(merged),
              made<[](match const& m) {
                return op::slice{Axis, Extent(m, a), Extent(m, a) + Extent(m, b)};
              }>(merged));
}
inline std::int64_t columns(match const& m, letter l) { return m.dims(l)[columns_axis(m, l)]; }
inline std::int64_t rows(match const& m, letter l) { return m.dims(l)[rows_axis(m, l)]; }
inline std::int64_t first_extent(match const& m, letter l) { return m.dims(l)[0]; }
}  // namespace detail

/// MAGIS's MergeMatmul and MergeFlexMatmul: queries, keys and values by one product.
inline constexpr rule merge_columns(
    "merge products, columns",
    both(matmul[s](x, a), matmul[s](x, b)) >>
        detail::parts_of<-1, detail::columns>(matmul[s](x, made<detail::along_columns>(a, b))),
    [](match const& m) { return m.rank(a) == m.rank(b); });
/// MAGIS's MergeMatmul1.
inline constexpr rule merge_rows("merge products, rows",
                                 both(matmul[s](a, w), matmul[s](b, w)) >>
                                     detail::parts_of<-2, detail::rows>(matmul[s](made<detail::along_rows>(a, b), w)),
                                 [](match const& m) { return m.rank(a) == m.rank(b); });
/// MAGIS's MergeConv2d, of kernels of one size.
inline constexpr rule merge_channels(
    "merge convolutions, channels",
    both(conv2d[s](x, a), conv2d[s](x, b)) >>
        detail::parts_of<1, detail::first_extent>(conv2d[s](x, made<detail::along<0>>(a, b))),
    [](match const& m) { return m.as<op::conv2d>(s).groups == 1; });
/// The same with the smaller kernel padded by zeros.
inline constexpr rule merge_padded(
    "merge convolutions, one kernel padded",
    both(conv2d[s](x, a), conv2d[t](x, b)) >>
        detail::parts_of<1, detail::first_extent>(conv2d[t](
            x, made<detail::along<0>>(made<detail::kernel_pad<3, a, b>>(made<detail::kernel_pad<2, a, b>>(a)), b))),
    [](match const& m) { return detail::pads_to(m, a, b); });
/// MAGIS's MergeConv2d1.
inline constexpr rule merge_images("merge convolutions, images",
                                   both(conv2d[s](a, w), conv2d[s](b, w)) >>
                                       detail::parts_of<0, detail::first_extent>(conv2d[s](made<detail::along<0>>(a, b),
                                                                                           w)));

// ---------------------------------------------------------------------------------------------- views

inline constexpr rule permute_twice("permute twice", permute[s](permute[t](x)) >> made<[](match const& m) {
                                                       extents axes;
                                                       for (auto k : m.as<op::permute>(s).axes)
                                                         axes.push_back(m.as<op::permute>(t).axes[static_cast<int>(k)]);
                                                       return op::permute{axes};
                                                     }>(x));
inline constexpr rule permute_nothing("permute nothing", permute[s](x) >> x, [](match const& m) {
  auto const& axes = m.as<op::permute>(s).axes;
  for (int k = 0; k < axes.rank(); ++k)
    if (axes[k] != k) return false;
  return true;
});
inline constexpr rule reshape_twice("reshape twice", reshape[s](reshape[t](x)) >> reshape[s](x));
inline constexpr rule reshape_nothing("reshape to the same", reshape[s](x) >> x,
                                      [](match const& m) { return m.as<op::reshape>(s).dims == m.dims(x); });
inline constexpr rule broadcast_twice("broadcast twice", broadcast_to[s](broadcast_to[t](x)) >> broadcast_to[s](x));
inline constexpr rule broadcast_nothing("broadcast to the same", broadcast_to[s](x) >> x,
                                        [](match const& m) { return m.as<op::broadcast_to>(s).dims == m.dims(x); });
inline constexpr rule slice_twice("slice twice", slice[s](slice[t](x)) >> made<[](match const& m) {
                                                   auto const first = m.as<op::slice>(t).start;
                                                   return op::slice{detail::axis_of<op::slice>(m, s),
                                                                    first + m.as<op::slice>(s).start,
                                                                    first + m.as<op::slice>(s).stop};
                                                 }>(x),
                                  [](match const& m) {
                                    return detail::axis_of<op::slice>(m, s) == detail::axis_of<op::slice>(m, t);
                                  });
inline constexpr rule slice_nothing("slice of all", slice[s](x) >> x, [](match const& m) {
  auto const& f = m.as<op::slice>(s);
  return f.start == 0 && f.stop == m.dims(x)[detail::axis_of<op::slice>(m, s)];
});
inline constexpr rule slice_of_pad("slice of a padded tensor", slice[s](pad[t](x)) >> made<[](match const& m) {
                                                                 auto const before = m.as<op::pad>(t).before;
                                                                 return op::slice{detail::axis_of<op::slice>(m, s),
                                                                                  m.as<op::slice>(s).start - before,
                                                                                  m.as<op::slice>(s).stop - before};
                                                               }>(x),
                                   [](match const& m) {
                                     int const axis = detail::axis_of<op::slice>(m, s);
                                     auto const& f = m.as<op::slice>(s);
                                     auto const before = m.as<op::pad>(t).before;
                                     return axis == detail::axis_of<op::pad>(m, t) && f.start >= before &&
                                            f.stop <= before + m.dims(x)[axis];
                                   });
inline constexpr rule unary_permuted("function of a permuted tensor",
                                     unary[s](permute[t](x)) >> permute[t](unary[s](x)));
inline constexpr rule permuted_unary("permuted function", permute[t](unary[s](x)) >> unary[s](permute[t](x)));
inline constexpr rule unary_reshaped("function of a reshaped tensor",
                                     unary[s](reshape[t](x)) >> reshape[t](unary[s](x)));
inline constexpr rule reshaped_unary("reshaped function", reshape[t](unary[s](x)) >> unary[s](reshape[t](x)));
inline constexpr rule unary_broadcast("function of a broadcast tensor",
                                      unary[s](broadcast_to[t](x)) >> broadcast_to[t](unary[s](x)));
inline constexpr rule sliced_unary("slice of a function", slice[t](unary[s](x)) >> unary[s](slice[t](x)));
inline constexpr rule sum_permuted("sum of permuted tensors", (permute[s](a) + permute[s](b)) >> permute[s](a + b),
                                   [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule product_permuted("product of permuted tensors",
                                       (permute[s](a) * permute[s](b)) >> permute[s](a * b),
                                       [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sum_reshaped("sum of reshaped tensors", (reshape[s](a) + reshape[s](b)) >> reshape[s](a + b),
                                   [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule product_reshaped("product of reshaped tensors",
                                       (reshape[s](a) * reshape[s](b)) >> reshape[s](a * b),
                                       [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sliced_sum("slice of a sum", slice[s](a + b) >> (slice[s](a) + slice[s](b)),
                                 [](match const& m) { return detail::like(m, a, b); });
inline constexpr rule sliced_columns(
    "columns of a product",
    slice[t](matmul[s](x, w)) >>
        matmul[s](x, made<[](match const& m) {
                    return op::slice{detail::columns_axis(m, w), m.as<op::slice>(t).start, m.as<op::slice>(t).stop};
                  }>(w)),
    [](match const& m) { return detail::axis_of<op::slice>(m, t) == detail::result_rank(m, t) - 1; });
inline constexpr rule sliced_rows(
    "rows of a product",
    slice[t](matmul[s](x, w)) >>
        matmul[s](made<[](match const& m) {
                    return op::slice{detail::rows_axis(m, x), m.as<op::slice>(t).start, m.as<op::slice>(t).stop};
                  }>(x),
                  w),
    [](match const& m) { return detail::axis_of<op::slice>(m, t) == detail::result_rank(m, t) - 2; });

/// A concat of concats along one axis is one concat.
inline constexpr rule concat_concats("concat of concats", concat[s].of_any(), [](match const& m, graph_editor& edit) {
  auto const& g = m.graph();
  int const axis = detail::axis_of<op::concat>(m, s);
  plain_vector<value_id> all;
  for (auto part : m.arguments()) {
    auto const o = g.producer(part);
    auto const* inner = o == nothing<op_id> ? nullptr : g.means<op::concat>(o);
    bool const joins = inner && g.may_replace(o) && g.record(o).part == nothing<part_id> && g.uses(part).size() == 1 &&
                       !g.is_kept(part) && detail::plain(inner->axis, g.type(part).rank()) == axis;
    if (!joins) all.push_back(part);
    else
      for (auto piece : g.inputs(o)) all.push_back(piece);
  }
  if (all.size() == m.arguments().size()) return nothing<value_id>;
  return edit.emit(view_of(op::concat{axis}), span_of(all)).front();
});
/// Neighbouring pieces of one tensor are one piece of it; all of them are the tensor.
inline constexpr rule concat_pieces("concat of pieces", concat[s].of_any(), [](match const& m, graph_editor& edit) {
  auto const& g = m.graph();
  int const axis = detail::axis_of<op::concat>(m, s);
  plain_vector<value_id> all;
  bool any = false;
  auto const in = m.arguments();
  for (std::size_t i = 0; i < in.size();) {
    auto const first = detail::piece_of(g, in[i], axis);
    auto stop = first.stop;
    std::size_t j = i + 1;
    for (; first.of != nothing<value_id> && j < in.size(); ++j) {
      auto const next = detail::piece_of(g, in[j], axis);
      if (next.of != first.of || next.start != stop) break;
      stop = next.stop;
    }
    bool const whole = first.of != nothing<value_id> && first.start == 0 && stop == g.type(first.of).dims[axis];
    if (whole) all.push_back(first.of);
    else if (j > i + 1) all.push_back(edit.emit(view_of(op::slice{axis, first.start, stop}), {&first.of, 1}).front());
    else all.push_back(in[i]);
    any = any || whole || j > i + 1;
    i = j;
  }
  if (all.size() == 1) return all[0];
  return any ? edit.emit(view_of(op::concat{axis}), span_of(all)).front() : nothing<value_id>;
});
/// A slice of a concat that lies within one part is a slice of that part; one that does not is a concat of fewer.
inline constexpr rule slice_of_concat("slice of a concat", slice[s].of_any(), [](match const& m, graph_editor& edit) {
  auto const& g = m.graph();
  auto const o = g.producer(m.arguments()[0]);
  auto const* joined = o == nothing<op_id> ? nullptr : g.means<op::concat>(o);
  if (!joined || g.record(o).part != nothing<part_id> || !g.may_replace(o)) return nothing<value_id>;
  int const axis = detail::axis_of<op::slice>(m, s);
  if (detail::plain(joined->axis, g.type(m.arguments()[0]).rank()) != axis) return nothing<value_id>;
  auto const& cut = m.as<op::slice>(s);
  plain_vector<value_id> pieces;
  std::int64_t at = 0;
  for (auto part : g.inputs(o)) {
    auto const n = g.type(part).dims[axis];
    auto const first = std::max(cut.start - at, std::int64_t{0}), stop = std::min(cut.stop - at, n);
    at += n;
    if (first >= stop) continue;
    if (first == 0 && stop == n) pieces.push_back(part);
    else pieces.push_back(edit.emit(view_of(op::slice{axis, first, stop}), {&part, 1}).front());
  }
  if (pieces.empty()) return nothing<value_id>;
  if (pieces.size() == 1) return pieces[0];
  if (pieces.size() == g.inputs(o).size()) return nothing<value_id>;
  return edit.emit(view_of(op::concat{axis}), span_of(pieces)).front();
});

// ---------------------------------------------------------------------------------------------- copies and casts

inline constexpr rule copy_twice("copy twice", copy(copy(x)) >> copy(x));
inline constexpr rule no_copy("no copy", copy(x) >> x);
inline constexpr rule cast_and_back("cast and back", cast[s](cast[t](x)) >> x, [](match const& m) {
  return is_floating(m.type(x).element) && m.as<op::cast>(s).to == m.type(x).element &&
         detail::has_all_of(m.as<op::cast>(t).to, m.type(x).element);
});
inline constexpr rule cast_once("cast once", cast[s](cast[t](x)) >> cast[s](x), [](match const& m) {
  return is_floating(m.type(x).element) && detail::has_all_of(m.as<op::cast>(t).to, m.type(x).element);
});
inline constexpr rule cast_nothing("cast to the same", cast[s](x) >> x,
                                   [](match const& m) { return m.as<op::cast>(s).to == m.type(x).element; });

}  // namespace pattern::rules

namespace rules = pattern::rules;

namespace detail {
inline constexpr auto& all_taso_rules =
    rule_list<rules::regroup_sum, rules::share_addend, rules::chain_addend, rules::gather_addend, rules::distribute,
              rules::factor, rules::factor_product, rules::factor_out, rules::distribute_product, rules::share_factor,
              rules::chain_factor, rules::regroup_product, rules::gather_factor, rules::distribute_difference,
              rules::factor_difference, rules::add_negative, rules::subtract_negative, rules::negate_twice,
              rules::multiply_negative, rules::scale_twice, rules::shift_twice, rules::scale_by_one,
              rules::shift_by_zero, rules::scale_sum, rules::scale_product, rules::scale_after_left,
              rules::scale_after_right, rules::scale_before_left, rules::scale_before_right, rules::scale_after_conv,
              rules::scale_kernel, rules::scale_after_sum, rules::scale_after_sum_to, rules::sum_once, rules::sum_apart,
              rules::sum_to_once, rules::sum_to_apart, rules::sum_to_twice, rules::sum_to_itself, rules::one_product,
              rules::one_product_left, rules::one_product_difference, rules::one_convolution, rules::longer_product,
              rules::right_first, rules::left_first, rules::transposed_left, rules::transposed_right,
              rules::transposed_product, rules::keep_rows_apart, rules::join_rows, rules::pointwise_convolution,
              rules::concat_columns, rules::concat_rows, rules::concat_sums, rules::sum_of_concats, rules::concat_unary,
              rules::unary_concat, rules::concat_channels, rules::concat_channels_shifted, rules::concat_padded,
              rules::concat_padded_second, rules::concat_images, rules::concat_images_shifted, rules::merge_columns,
              rules::merge_rows, rules::merge_channels, rules::merge_padded, rules::merge_images, rules::permute_twice,
              rules::permute_nothing, rules::reshape_twice, rules::reshape_nothing, rules::broadcast_twice,
              rules::broadcast_nothing, rules::slice_twice, rules::slice_nothing, rules::slice_of_pad,
              rules::unary_permuted, rules::permuted_unary, rules::unary_reshaped, rules::reshaped_unary,
              rules::unary_broadcast, rules::sliced_unary, rules::sum_permuted, rules::product_permuted,
              rules::sum_reshaped, rules::product_reshaped, rules::sliced_sum, rules::sliced_columns,
              rules::sliced_rows, rules::concat_concats, rules::concat_pieces, rules::slice_of_concat,
              rules::copy_twice, rules::no_copy, rules::cast_and_back, rules::cast_once, rules::cast_nothing>;
}  // namespace detail

/// The mutator of all these rules.
struct taso_rules : rewriter {
  constexpr taso_rules() : rewriter{detail::all_taso_rules} {}
};

}}  // namespace neap::v0
