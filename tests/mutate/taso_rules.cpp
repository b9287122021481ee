// Every rule on a graph where it applies and, where something is asked for, on graphs where it must not.
#include <neap/mutate/taso_rules.hpp>

#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>

#include "../support/differences.hpp"
#include "../support/graph_maker.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_algebra.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

candidate made_of(graph g) {
  auto order = reverse_post_order{}(g);
  return {std::move(g), std::move(order), {}};
}

/// Every application of a mutator to a graph of f64, checked and executed; how many there were.
std::size_t applications(rewriter const& r, graph const& g) {
  auto const c = made_of(g);
  host_backend backend;
  auto const sources = random_sources(g, 7);
  auto const expected = run_plainly(g, c.order, sources, backend);
  std::size_t n = 0;
  auto stream = checked(r)(c);
  while (auto m = stream.next()) {
    CAPTURE(describe(*m, c));
    auto const e = apply_mutation(*m, c);
    if (!e) continue;
    ++n;
    auto const valid = verify(e->graph);
    REQUIRE_MESSAGE(valid.ok(), valid.message());
    auto const ordered = check_order(e->graph, e->order);
    REQUIRE_MESSAGE(ordered.ok(), ordered.message());
    REQUIRE(e->graph.digest() != g.digest());
    auto const got = run_plainly(e->graph, e->order, sources, backend);
    REQUIRE(difference(expected.kept, got.kept) < 1e-12);
    REQUIRE(difference(expected.sources, got.sources) < 1e-12);
    auto const again = apply_mutation(*m, c);
    REQUIRE(again->graph == e->graph);
    REQUIRE(again->order == e->order);
  }
  return n;
}

struct example {
  rule const* what;
  void (*make)(maker&);
};

// Values of these shapes: a, b, c, d alike; x [3, 4], p and q [4, 5]; images [2, 3, 6, 6].
#define APPLIES(name, ...)       \
  example {                      \
    &rules::name, [](maker& m) { \
      (void)m;                   \
      __VA_ARGS__                \
    }                            \
  }
#define ABCD [[maybe_unused]] auto a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3}), d = m.in({2, 3});
#define XPQ [[maybe_unused]] auto x = m.in({3, 4}), p = m.weight({4, 5}), q = m.weight({4, 5});
#define IMAGES                                                                                      \
  [[maybe_unused]] auto x = m.in({2, 3, 6, 6}), y = m.in({2, 3, 6, 6}), k = m.weight({4, 3, 3, 3}), \
                        l = m.weight({2, 3, 3, 3});

example const positive[] = {
    APPLIES(regroup_sum, ABCD m.keep(c + (a + b));),
    APPLIES(share_addend, ABCD m.keep(c + (c + (a + b)));),
    APPLIES(chain_addend, ABCD m.keep((b + a) + c + c);),
    APPLIES(gather_addend, ABCD m.keep((a + b) + (c + b));),
    APPLIES(distribute, ABCD m.keep((a + b) * c);),
    APPLIES(distribute, auto a = m.in({2, 3}); auto b = m.in({3}); auto c = m.in({2, 1}); m.keep(c * (a + b));),
    APPLIES(factor, ABCD m.keep(c* a + b * c);),
    APPLIES(factor_product, ABCD m.keep(a* b + c * (a * b));),
    APPLIES(factor_product, ABCD auto e = a * b; m.keep(e + c * e);),
    APPLIES(factor_out, ABCD m.keep(d*(b + a * b));),
    APPLIES(distribute_product, ABCD m.keep(d*(b + a * b));),
    APPLIES(share_factor, ABCD m.keep(c*(c*(a* b)));),
    APPLIES(chain_factor, ABCD m.keep(c*(c*(a* b)));),
    APPLIES(regroup_product, ABCD m.keep(c*(a* b));),
    APPLIES(gather_factor, ABCD m.keep((a * b) * (b * c));),
    APPLIES(distribute_difference, ABCD m.keep(c*(a - b));),
    APPLIES(factor_difference, ABCD m.keep(c* a - c * b);),
    APPLIES(add_negative, ABCD m.keep(a + (-b));),
    APPLIES(subtract_negative, ABCD m.keep(a - (-b));),
    APPLIES(negate_twice, ABCD m.keep(tanh(-(-a)));),
    APPLIES(negate_twice, ABCD m.keep(-(-a));),
    // What is written in place afterwards becomes a copy.
    APPLIES(negate_twice, auto x = m.in({2, 3}); m.keep(m.put(op::accumulate{}, {-(-x), m.in({2, 3})}));),
    APPLIES(multiply_negative, ABCD m.keep((-a) * b);),
    APPLIES(scale_twice, ABCD m.keep(0.5 * (3.0 * a));),
    APPLIES(shift_twice, ABCD m.keep(0.5 + (3.0 + a));),
    APPLIES(scale_by_one, ABCD m.keep(tanh(1.0 * a));),
    APPLIES(shift_by_zero, ABCD m.keep(tanh(-0.0 + a));),
    APPLIES(scale_sum, ABCD m.keep(0.1 * a + 0.1 * b);),
    APPLIES(scale_product, ABCD m.keep(a * (0.1 * b));),
    APPLIES(scale_after_left, XPQ m.keep(mm(0.1 * x, p));),
    APPLIES(scale_after_right, XPQ m.keep(mm(x, 0.1 * p));),
    APPLIES(scale_before_left, XPQ m.keep(0.1 * mm(x, p));),
    APPLIES(scale_before_right, XPQ m.keep(0.1 * mm(x, p));),
    APPLIES(scale_after_conv, IMAGES m.keep(conv(0.1 * x, k));),
    APPLIES(scale_kernel, IMAGES m.keep(0.1 * conv(x, k));),
    APPLIES(scale_after_sum, ABCD m.keep(summed(0.1 * a, {1}));),
    APPLIES(scale_after_sum_to, ABCD m.keep(summed_to(0.1 * a, {3}));),
    APPLIES(sum_once, ABCD m.keep(summed(a, {1}) + summed(b, {1}));),
    APPLIES(sum_apart, ABCD m.keep(summed(a + b, {0}));),
    APPLIES(sum_to_once, ABCD m.keep(summed_to(a, {3}) + summed_to(b, {3}));),
    APPLIES(sum_to_apart, ABCD m.keep(summed_to(a + b, {2, 1}));),
    APPLIES(sum_to_twice, auto x = m.in({2, 3, 4}); m.keep(summed_to(summed_to(x, {3, 4}), {4}));),
    APPLIES(sum_to_itself, ABCD m.keep(tanh(summed_to(a, {2, 3})));),
    APPLIES(one_product, XPQ m.keep(mm(x, p) + mm(x, q));),
    APPLIES(one_product, XPQ auto r = m.in({5, 3}); auto z = m.in({5, 3});
            m.keep(mm(x, r, true, true) + mm(x, z, true, true));),
    APPLIES(one_product_left, XPQ auto y = m.in({3, 4}); m.keep(mm(x, p) + mm(y, p));),
    APPLIES(one_product_difference, XPQ m.keep(mm(x, p) - mm(x, q));),
    APPLIES(one_convolution, IMAGES auto n = m.weight({4, 3, 3, 3}); m.keep(conv(x, k, 1) + conv(x, n, 1));),
    APPLIES(longer_product, XPQ auto y = m.in({3, 2}); auto r = m.weight({2, 5}); m.keep(mm(x, p) + mm(y, r));),
    APPLIES(longer_product, auto a = m.in({4, 3}); auto b = m.in({5, 4}); auto c = m.in({2, 3}); auto d = m.in({5, 2});
            m.keep(mm(a, b, true, true) + mm(c, d, true, true));),
    APPLIES(right_first, XPQ auto r = m.weight({5, 2}); m.keep(mm(mm(x, p), r));),
    APPLIES(right_first, auto a = m.in({6, 4, 3}); auto b = m.in({5, 4}); auto c = m.in({2, 5});
            m.keep(mm(mm(a, b, true, true), c, false, true));),
    APPLIES(left_first, XPQ auto r = m.weight({2, 3}); m.keep(mm(r, mm(x, p)));),
    APPLIES(left_first, auto a = m.in({3, 2}); auto b = m.in({4, 3}); auto c = m.in({5, 4});
            m.keep(mm(a, mm(b, c, true, true), true));),
    APPLIES(transposed_left, XPQ auto y = m.in({4, 3}); m.keep(mm(permuted(y, {1, 0}), p));),
    APPLIES(transposed_right, XPQ auto r = m.in({6, 5, 4}); m.keep(mm(x, permuted(r, {0, 2, 1})));),
    APPLIES(transposed_product, XPQ m.keep(tanh(permuted(mm(x, p), {1, 0})));),
    APPLIES(transposed_product, auto a = m.in({4, 3}); auto b = m.in({7, 5, 4});
            m.keep(tanh(permuted(mm(a, b, true, true), {0, 2, 1})));),
    APPLIES(keep_rows_apart, XPQ auto y = m.in({2, 3, 4}); m.keep(mm(reshaped(y, {6, 4}), p));),
    APPLIES(join_rows, XPQ auto y = m.in({2, 3, 4}); m.keep(mm(y, p));),
    APPLIES(pointwise_convolution, IMAGES auto n = m.weight({5, 3, 1, 1}); m.keep(conv(x, n));),
    APPLIES(concat_columns, XPQ auto r = m.weight({4, 2}); m.keep(cat(1, {mm(x, p), mm(x, r)}));),
    APPLIES(concat_columns, XPQ auto r = m.weight({2, 4}); auto z = m.weight({5, 4});
            m.keep(cat(-1, {mm(x, r, false, true), mm(x, z, false, true)}));),
    APPLIES(concat_rows, XPQ auto y = m.in({2, 4}); m.keep(cat(0, {mm(x, p), mm(y, p)}));),
    APPLIES(concat_rows, auto a = m.in({2, 4, 3}); auto b = m.in({1, 4, 3}); auto w = m.in({4, 5});
            m.keep(cat(0, {mm(a, w, true), mm(b, w, true)}));),
    APPLIES(concat_rows, auto a = m.in({2, 4, 3}); auto b = m.in({2, 4, 6}); auto w = m.in({2, 4, 5});
            m.keep(cat(1, {mm(a, w, true), mm(b, w, true)}));),
    APPLIES(concat_sums, ABCD m.keep(cat(1, {a + b, c + d}));),
    APPLIES(sum_of_concats, ABCD m.keep(cat(0, {a, c}) + cat(0, {b, d}));),
    APPLIES(concat_unary, ABCD m.keep(cat(1, {tanh(a), tanh(b)}));),
    APPLIES(unary_concat, ABCD m.keep(tanh(cat(1, {a, b})));),
    APPLIES(concat_channels, IMAGES m.keep(cat(1, {conv(x, k, 1, 2), conv(x, l, 1, 2)}));),
    APPLIES(concat_channels_shifted, IMAGES auto f = m.weight({4}); auto g = m.weight({2});
            m.keep(cat(1, {conv(x, k, f), conv(x, l, g)}));),
    APPLIES(concat_padded, IMAGES auto n = m.weight({2, 3, 1, 1}); m.keep(cat(1, {conv(x, n, 0), conv(x, k, 1)}));),
    APPLIES(concat_padded, IMAGES auto n = m.weight({2, 3, 5, 5});
            m.keep(cat(1, {conv(x, l, 1, 2), conv(x, n, 2, 2)}));),
    APPLIES(concat_padded_second, IMAGES auto n = m.weight({2, 3, 1, 1});
            m.keep(cat(1, {conv(x, k, 1), conv(x, n, 0)}));),
    APPLIES(concat_images, IMAGES m.keep(cat(0, {conv(x, k), conv(y, k)}));),
    APPLIES(concat_images_shifted, IMAGES auto f = m.weight({4}); m.keep(cat(0, {conv(x, k, f), conv(y, k, f)}));),
    APPLIES(merge_columns, XPQ auto r = m.weight({4, 2}); m.keep(tanh(mm(x, p))); m.keep(tanh(mm(x, r)));),
    APPLIES(merge_columns, XPQ auto r = m.weight({2, 4}); auto z = m.weight({3, 4}); m.keep(mm(x, r, false, true));
            m.keep(mm(x, z, false, true));),
    APPLIES(merge_rows, XPQ auto y = m.in({2, 4}); m.keep(tanh(mm(x, p))); m.keep(mm(y, p));),
    APPLIES(merge_rows, auto a = m.in({2, 4, 3}); auto b = m.in({2, 4, 2}); auto w = m.in({4, 5});
            m.keep(mm(a, w, true)); m.keep(tanh(mm(b, w, true)));),
    APPLIES(merge_channels, IMAGES m.keep(tanh(conv(x, k, 1, 2))); m.keep(tanh(conv(x, l, 1, 2)));),
    APPLIES(merge_padded, IMAGES auto n = m.weight({2, 3, 1, 1}); m.keep(tanh(conv(x, n, 0, 2)));
            m.keep(conv(x, k, 1, 2));),
    APPLIES(merge_images, IMAGES m.keep(tanh(conv(x, k, 1))); m.keep(tanh(conv(y, k, 1)));),
    APPLIES(permute_twice, auto x = m.in({2, 3, 4}); m.keep(tanh(permuted(permuted(x, {1, 2, 0}), {0, 2, 1})));),
    APPLIES(permute_nothing, ABCD m.keep(tanh(permuted(a, {0, 1})));),
    APPLIES(reshape_twice, ABCD m.keep(reshaped(reshaped(tanh(a), {6}), {3, 2}));),
    APPLIES(reshape_nothing, ABCD m.keep(tanh(reshaped(a, {2, 3})));),
    APPLIES(broadcast_twice, auto x = m.in({3, 1}); m.keep(tanh(broadcast(broadcast(x, {3, 4}), {2, 3, 4})));),
    APPLIES(broadcast_nothing, ABCD m.keep(tanh(broadcast(a, {2, 3})));),
    APPLIES(slice_twice, ABCD m.keep(tanh(cut(cut(a, -1, 1, 3), 1, 1, 2)));),
    APPLIES(slice_nothing, ABCD m.keep(tanh(cut(a, 1, 0, 3)));),
    APPLIES(slice_of_pad, ABCD m.keep(tanh(cut(padded(a, 1, 2, 1), -1, 3, 5)));),
    APPLIES(unary_permuted, ABCD m.keep(tanh(tanh(permuted(a, {1, 0}))));),
    APPLIES(permuted_unary, ABCD m.keep(tanh(permuted(0.3 * a, {1, 0})));),
    APPLIES(unary_reshaped, ABCD m.keep(tanh(reshaped(a, {6})));),
    APPLIES(reshaped_unary, ABCD m.keep(reshaped(tanh(a), {6}) * m.in({6}));),
    APPLIES(unary_broadcast, auto x = m.in({3}); m.keep(tanh(broadcast(x, {2, 3})) * m.in({2, 3}));),
    APPLIES(sliced_unary, ABCD m.keep(tanh(cut(tanh(a), 0, 1, 2)));),
    APPLIES(sum_permuted, ABCD m.keep(permuted(a, {1, 0}) + permuted(b, {1, 0}));),
    APPLIES(product_permuted, ABCD m.keep(permuted(a, {1, 0}) * permuted(b, {1, 0}));),
    APPLIES(sum_reshaped, ABCD m.keep(reshaped(a, {6}) + reshaped(b, {6}));),
    APPLIES(product_reshaped, ABCD m.keep(reshaped(a, {6}) * reshaped(b, {6}));),
    APPLIES(sliced_sum, ABCD m.keep(tanh(cut(a + b, 1, 1, 3)));),
    APPLIES(sliced_columns, XPQ m.keep(tanh(cut(mm(x, p), -1, 1, 3)));),
    APPLIES(sliced_rows, auto a = m.in({4, 3}); auto b = m.in({2, 4, 5}); m.keep(tanh(cut(mm(a, b, true), 1, 1, 3)));),
    APPLIES(concat_concats, ABCD m.keep(cat(1, {cat(1, {a, b}), c, cat(-1, {d})}));),
    APPLIES(concat_pieces, ABCD m.keep(cat(1, {cut(a, 1, 0, 1), cut(a, 1, 1, 3), b}));),
    APPLIES(concat_pieces, ABCD m.keep(tanh(cat(0, m.put_all(op::split{0, 2}, {a}))));),
    APPLIES(concat_pieces, ABCD m.keep(cat(1, {b, cut(a, 1, 1, 2), cut(a, 1, 2, 3)}));),
    APPLIES(slice_of_concat, ABCD m.keep(tanh(cut(cat(1, {a, b, c}), 1, 3, 5)));),
    APPLIES(slice_of_concat, ABCD m.keep(tanh(cut(cat(1, {a, b, c}), -1, 2, 6)));),
    APPLIES(copy_twice, ABCD m.keep(copied(copied(a)));),
    APPLIES(no_copy, ABCD m.keep(tanh(copied(permuted(a, {1, 0}))));),
    APPLIES(cast_and_back, m.element = dtype::f32; auto x = m.in({2, 3});
            m.keep(cast_to(tanh(cast_to(cast_to(x, dtype::f64), dtype::f32)), dtype::f64));),
    APPLIES(cast_once, m.element = dtype::f32; auto x = m.in({2, 3});
            m.keep(cast_to(cast_to(x, dtype::f32), dtype::f64));),
    APPLIES(cast_nothing, ABCD m.keep(tanh(cast_to(a, dtype::f64)));),
};

example const negative[] = {
    APPLIES(regroup_sum, ABCD auto e = a + b; m.keep(c + e); m.keep(tanh(e));),  // somebody else reads a + b
    APPLIES(regroup_sum, ABCD auto e = a + b; m.keep(c + e); m.keep(e);),        // a + b is kept
    APPLIES(distribute, ABCD auto e = a + b; m.keep(c * e); m.keep(d * e);),
    APPLIES(share_addend, ABCD m.keep(c + (d + (a + b)));),
    APPLIES(gather_addend, ABCD m.keep((a + b) + (c + d));),
    APPLIES(factor, ABCD m.keep(a* b + c * d);),
    APPLIES(factor_product, ABCD m.keep(a* b + c * (a * d));),
    APPLIES(gather_factor, ABCD m.keep((a * b) * (c * d));),
    APPLIES(factor_difference, ABCD m.keep(a* b - c * d);),
    APPLIES(scale_twice, ABCD m.keep(0.1 * (0.3 * a));),  // 0.1 * 0.3 is no double
    APPLIES(shift_twice, ABCD m.keep(1e-20 + (3.0 + a));),
    APPLIES(scale_by_one, ABCD m.keep(tanh(1.5 * a));),
    APPLIES(shift_by_zero, ABCD m.keep(tanh(1.0 + a));),
    APPLIES(shift_by_zero, ABCD m.keep(tanh(0.0 + a));),
    APPLIES(scale_sum, ABCD m.keep(0.1 * a + 0.2 * b);),
    APPLIES(sum_once, ABCD m.keep(summed(a, {1}) + summed(m.in({2, 5}), {1}));),
    APPLIES(sum_once, ABCD m.keep(summed(a, {0, 1}) + summed(b, {1}));),
    APPLIES(sum_apart, ABCD m.keep(summed(a + m.in({3}), {0}));),  // the vector counts once for every row
    APPLIES(sum_to_apart, ABCD m.keep(summed_to(a + m.in({3}), {3}));),
    APPLIES(sum_to_itself, ABCD m.keep(tanh(summed_to(a, {1, 3})));),
    APPLIES(one_product, XPQ auto y = m.in({3, 4}); m.keep(mm(x, p) + mm(y, q));),
    APPLIES(one_product, XPQ auto r = m.in({4, 4}); auto z = m.in({4, 4}); m.keep(mm(x, r) + mm(x, z, false, true));),
    APPLIES(longer_product, XPQ auto y = m.in({6, 3, 2}); auto r = m.in({2, 5}); m.keep(mm(x, p) + mm(y, r));),
    APPLIES(right_first, auto a = m.in({3, 4}); auto b = m.in({4, 3}); auto c = m.in({3, 2});
            m.keep(mm(mm(a, b), c, true));),
    APPLIES(left_first, auto a = m.in({3, 4}); auto b = m.in({3, 4}); auto c = m.in({4, 4});
            m.keep(mm(a, mm(b, c), false, true));),
    APPLIES(transposed_left, auto x = m.in({2, 3, 4}); auto p = m.in({4, 5}); m.keep(mm(permuted(x, {1, 0, 2}), p));),
    APPLIES(transposed_product, auto x = m.in({2, 3, 4}); auto p = m.in({4, 5});
            m.keep(tanh(permuted(mm(x, p), {1, 0, 2})));),
    APPLIES(keep_rows_apart, auto x = m.in({2, 6, 2}); auto p = m.in({4, 5}); m.keep(mm(reshaped(x, {6, 4}), p));),
    APPLIES(keep_rows_apart, auto x = m.in({2, 3, 4}); auto p = m.in({6, 5});
            m.keep(mm(reshaped(x, {6, 4}), p, true));),
    APPLIES(pointwise_convolution, IMAGES m.keep(conv(x, k));),
    APPLIES(pointwise_convolution, IMAGES auto n = m.weight({5, 3, 1, 1}); m.keep(conv(x, n, 0, 2));
            m.keep(conv(x, n, 1));),
    APPLIES(pointwise_convolution, IMAGES auto n = m.weight({3, 1, 1, 1}); m.keep(conv(x, n, 0, 1, 3));),
    APPLIES(concat_columns, XPQ m.keep(cat(0, {mm(x, p), mm(x, q)}));),  // MAGIS's ConcatMatmul does it all the same
    APPLIES(concat_columns, XPQ auto y = m.in({3, 4}); m.keep(cat(1, {mm(x, p), mm(y, q)}));),
    APPLIES(concat_rows, XPQ auto y = m.in({3, 4}); m.keep(cat(1, {mm(x, p), mm(y, p)}));),
    APPLIES(concat_rows, auto a = m.in({2, 3, 4}); auto b = m.in({2, 3, 4}); auto w = m.in({2, 4, 5});
            m.keep(cat(0, {mm(a, w), mm(b, w)}));),
    APPLIES(concat_sums, ABCD m.keep(cat(0, {a + m.in({3}), c + m.in({3})}));),
    APPLIES(concat_unary, ABCD m.keep(cat(0, {tanh(a), -b}));),
    APPLIES(concat_unary, ABCD m.keep(cat(0, {2.0 * a, 3.0 * b}));),
    APPLIES(concat_channels, IMAGES auto n = m.weight({4, 3, 3, 3}); m.keep(cat(0, {conv(x, k), conv(x, n)}));),
    APPLIES(concat_channels, IMAGES m.keep(cat(1, {conv(x, k), conv(y, l)}));),
    APPLIES(concat_channels, auto x = m.in({2, 4, 6, 6}); auto k = m.weight({4, 2, 3, 3});
            auto l = m.weight({2, 2, 3, 3}); m.keep(cat(1, {conv(x, k, 0, 1, 2), conv(x, l, 0, 1, 2)}));),
    APPLIES(concat_padded, IMAGES auto n = m.weight({4, 3, 1, 1});
            m.keep(cat(1, {conv(x, n, 0, 4), conv(x, k, 0, 3)}));),
    APPLIES(concat_padded, auto x = m.in({2, 3, 5, 5}); auto n = m.weight({2, 3, 2, 2});
            auto k = m.weight({2, 3, 3, 3});
            m.keep(cat(1, {conv(x, n, 0, 2), conv(x, k, 0, 2)}));),  // the kernels' extents differ by an odd number
    APPLIES(concat_images, IMAGES m.keep(cat(1, {conv(x, k), conv(y, k)}));),
    APPLIES(merge_columns, XPQ auto y = m.in({3, 4}); m.keep(mm(x, p)); m.keep(mm(y, q));),
    APPLIES(merge_columns, auto x = m.in({4, 4}); auto p = m.in({4, 4});
            m.keep(mm(x, mm(x, p)));),  // one reads the other
    APPLIES(merge_channels, IMAGES m.keep(conv(x, k, 1)); m.keep(conv(x, l, 0));),
    APPLIES(merge_channels, auto x = m.in({2, 4, 6, 6}); auto k = m.weight({4, 2, 3, 3});
            auto l = m.weight({2, 2, 3, 3}); m.keep(conv(x, k, 0, 1, 2)); m.keep(conv(x, l, 0, 1, 2));),
    APPLIES(permute_nothing, ABCD m.keep(tanh(permuted(a, {1, 0})));),
    APPLIES(reshape_nothing, ABCD m.keep(tanh(reshaped(a, {6})));),
    APPLIES(slice_twice, ABCD m.keep(tanh(cut(cut(a, 0, 0, 1), 1, 1, 2)));),
    APPLIES(slice_nothing, ABCD m.keep(tanh(cut(a, 1, 0, 2)));),
    APPLIES(slice_of_pad, ABCD m.keep(tanh(cut(padded(a, 1, 2, 1), 1, 1, 4)));),
    APPLIES(slice_of_pad, ABCD m.keep(tanh(cut(padded(a, 0, 2, 1), 1, 1, 2)));),
    APPLIES(sum_permuted, ABCD m.keep(permuted(a, {1, 0}) + permuted(m.in({1, 3}), {1, 0}));),
    APPLIES(sum_reshaped, ABCD m.keep(reshaped(a, {6}) + reshaped(m.in({3, 2}), {6}));),
    APPLIES(sliced_sum, ABCD m.keep(tanh(cut(a + m.in({2, 1}), 1, 1, 2)));),
    APPLIES(sliced_columns, XPQ m.keep(tanh(cut(mm(x, p), 0, 1, 3)));),
    APPLIES(concat_concats, ABCD m.keep(cat(0, {cat(1, {a, b}), cat(1, {c, d})}));),
    APPLIES(concat_pieces, ABCD m.keep(cat(1, {cut(a, 1, 1, 3), cut(a, 1, 0, 1)}));),
    APPLIES(concat_pieces, ABCD m.keep(cat(0, {cut(a, 1, 0, 1), cut(a, 1, 1, 2)}));),
    APPLIES(slice_of_concat, ABCD m.keep(tanh(cut(cat(0, {a, b, c}), 1, 0, 2)));),
    APPLIES(no_copy, ABCD auto e = copied(a); m.keep(e);),  // an output is not an input
    APPLIES(no_copy, auto x = m.in({2, 3}); auto y = copied(x); auto z = m.put(op::accumulate{}, {y, m.in({2, 3})});
            m.keep(z);),
    APPLIES(cast_and_back,
            ABCD m.keep(cast_to(cast_to(a, dtype::f32), dtype::f64));),  // f32 has not all numbers of f64
    APPLIES(cast_once, ABCD m.keep(cast_to(cast_to(a, dtype::f32), dtype::f64));),
};
#undef APPLIES
#undef ABCD
#undef XPQ
#undef IMAGES

rewriter only(rule const* const& r) { return {{&r, 1}}; }

}  // namespace

TEST_CASE("every rule applies where it should, and what it makes computes the same") {
  for (auto const& e : positive) {
    CAPTURE(e.what->name);
    maker m;
    e.make(m);
    CHECK(applications(only(e.what), m.done()) > 0);
  }
  for (auto const* r : taso_rules{}.rules) {
    CAPTURE(r->name);
    CHECK(std::any_of(std::begin(positive), std::end(positive), [&](example const& e) { return e.what == r; }));
  }
}
TEST_CASE("no rule applies where it must not") {
  for (auto const& e : negative) {
    CAPTURE(e.what->name);
    maker m;
    e.make(m);
    CHECK(applications(only(e.what), m.done()) == 0);
  }
}
TEST_CASE("all rules at once on every one of these graphs") {
  std::size_t n = 0;
  for (auto const* list : {&positive[0], &negative[0]})
    for (auto const* e = list; e != list + (list == &positive[0] ? std::size(positive) : std::size(negative)); ++e) {
      CAPTURE(e->what->name);
      maker m;
      e->make(m);
      n += applications(taso_rules{}, m.done());
    }
  CHECK(n > 240);
}

namespace {

/// What a value of sums and products is, whatever the order of their arguments.
digest formula(op_graph const& g, value_id v) {
  auto const o = g.producer(v);
  if (o == nothing<op_id>) return digest{}.mix(index(v));
  digest d{0, 0};
  for (auto x : g.inputs(o)) d = d + formula(g, x).mix(7u);
  return d.mix(g.facets(o).name);
}
using formula_of = expr (*)(expr, expr, expr, expr);
struct magis_rule {
  formula_of from, to;
};
#define F(...) [](expr a, expr b, expr c, expr d) { return ((void)a, (void)b, (void)c, (void)d, __VA_ARGS__); }
magis_rule const of_magis[] = {
    {F(c + (c + (a + b))), F((a + c) + (b + c))},  // 0
    {F(c + (a + b)), F(b + (a + c))},              // 1
    {F((a + b) + (b + c)), F(b + (b + (a + c)))},  // 2
    {F(c + (c + (a + b))), F(b + (c + (a + c)))},  // 3
    {F(c + (c + (a + b))), F((b + c) + (a + c))},  // 4
    {F(c + (a + b)), F(a + (b + c))},              // 5
    {F((a + b) + (a + c)), F(a + (a + (b + c)))},  // 6
    {F(c + (c + (a + b))), F(a + (c + (b + c)))},  // 7
    {F(c * (a + b)), F(c* a + c * b)},             // 8
    {F(c * (a + b)), F(a* c + c * b)},             // 9
    {F(a * b + c * (a * b)), F(b*(a + a * c))},    // 10
    {F(d * (b + a * b)), F(b*(d + a * d))},        // 11
    {F(c * (a + b)), F(a* c + b * c)},             // 12
    {F(c * (c * (a * b))), F((a * c) * (b * c))},  // 13
    {F(c * (a * b)), F(b*(a* c))},                 // 14
    {F((a * b) * (b * c)), F(b*(b*(a* c)))},       // 15
    {F(c * (c * (a * b))), F(b*(c*(a* c)))},       // 16
    {F(a * b + c * (a * b)), F(a*(b + b * c))},    // 17
    {F(d * (a + a * b)), F(a*(d + b * d))},        // 18
    {F(c * (a + b)), F(b* c + a * c)},             // 19
    {F(c * (c * (a * b))), F((b * c) * (a * c))},  // 20
    {F(c * (a * b)), F(a*(b* c))},                 // 21
    {F(d * (b + a * b)), F(b* d + a * (b * d))},   // 22
    {F((a * b) * (a * c)), F(a*(a*(b* c)))},       // 23
    {F(c * (c * (a * b))), F(a*(c*(b* c)))},       // 24
    {F(c * (a + b)), F(c* b + a * c)},             // 25
    {F(c * (a + b)), F(c* b + c * a)},             // 26
};
#undef F

}  // namespace

TEST_CASE("what each of MAGIS's 27 rules of sums and products makes, one of ours makes") {
  static_assert(std::size(of_magis) == 27);
  for (auto const& r : of_magis) {
    CAPTURE(&r - of_magis);
    auto const made = [](formula_of f) {
      maker m;
      auto const a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3}), d = m.in({2, 3});
      m.keep(f(a, b, c, d));
      return m.done();
    };
    auto const c = made_of(made(r.from));
    auto const to = made(r.to);
    auto const wanted = formula(to, to.kept()[0]);
    bool found = false;
    auto stream = taso_rules{}(c);
    while (auto m = stream.next())
      if (auto const e = m->apply(c)) found = found || formula(e->graph, e->graph.kept()[0]) == wanted;
    CHECK(found);
  }
}

TEST_CASE("thousands of applications to random graphs, in walks, checked and executed") {
  std::size_t n = 0, executed = 0;
  std::vector<std::size_t> of_rule(taso_rules{}.rules.size());
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(400u); ++seed) {
    CAPTURE(seed);
    auto c = made_of(random_algebra(seed).make(10 + seed % 14));
    auto const sources = random_sources(c.graph, seed);
    auto const expected = run_plainly(c.graph, c.order, sources, backend);
    random_stream draw(seed, 6);
    for (int step = 0; step < 8; ++step) {
      std::vector<edited> all;
      auto stream = checked(taso_rules{})(c);
      while (auto m = stream.next()) {
        CAPTURE(describe(*m, c));
        auto e = m->apply(c);
        if (!e) continue;
        ++n;
        for (std::size_t k = 0; k < of_rule.size(); ++k) of_rule[k] += taso_rules{}.rules[k] == m->what;
        REQUIRE(check_order(e->graph, e->order));
        all.push_back(*std::move(e));
      }
      if (all.empty()) break;
      auto& next = all[draw.below(static_cast<std::uint32_t>(all.size()))];
      auto const valid = verify(next.graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const got = run_plainly(next.graph, next.order, sources, backend);
      ++executed;
      REQUIRE(difference(expected.kept, got.kept) < 1e-9);
      REQUIRE(difference(expected.sources, got.sources) < 1e-9);
      c = {std::move(next.graph), std::move(next.order), {}};
    }
  }
  CHECK(n > testing::cases(10000u));
  CHECK(executed > testing::cases(2000u));
  if (!testing::sanitized)
    CHECK(std::count(of_rule.begin(), of_rule.end(), 0u) < 40);  // most rules come up by themselves
}
