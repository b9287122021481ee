// Kernels that add up many f32 numbers, each beside the same sum in double. tests/backend/block.cpp runs all with a million
// elements, bench/sum_errors.cpp with ten million.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/conv2d.hpp>
#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/cumsum.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/indexed.hpp>
#include <neap/backend/kernels/interpolate.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/matmul.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/kernels/pool2d.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/backend/kernels/softmax.hpp>
#include <neap/core/philox.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace neap_test {

/// What the elements are: all 0.1, or drawn from [0, 1), or from [-1, 2).
enum class summed_values { equal, positive, signed_ones };
inline char const* name_of(summed_values v) {
  return v == summed_values::equal ? "0.1" : v == summed_values::positive ? "[0,1)" : "[-1,2)";
}

struct f32_tensor {
  std::vector<float> at;
  neap::tensor_ref ref;
  f32_tensor(neap::shape dims, summed_values v, std::uint64_t key) : f32_tensor(dims) {
    neap::random_stream draw{key};
    for (auto& x : at)
      x = v == summed_values::equal ? 0.1f : v == summed_values::positive ? draw.uniform() : draw.uniform() * 3 - 1;
  }
  explicit f32_tensor(neap::shape dims, float value = 0)
      : at(static_cast<std::size_t>(neap::elements(dims)), value),
        ref{at.data(), neap::dtype::f32, dims, neap::dense_strides(dims)} {}
  f32_tensor(f32_tensor const&) = delete;
  operator neap::tensor_ref const&() const { return ref; }
  double operator[](std::int64_t i) const { return static_cast<double>(at[static_cast<std::size_t>(i)]); }
};

/// What a kernel gave, and what it should have.
struct compared_sums {
  std::vector<float> got;
  std::vector<double> expected;
  void add(f32_tensor const& t, std::vector<double> const& to) {
    got.insert(got.end(), t.at.begin(), t.at.end());
    expected.insert(expected.end(), to.begin(), to.end());
  }
  /// The largest relative error.
  double error() const {
    double worst = got.size() == expected.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < got.size(); ++i) {
      double const e = std::abs(static_cast<double>(got[i]) / expected[i] - 1);
      if (!(e <= worst)) worst = e;
    }
    return worst;
  }
};

/// run(backend, elements, values); about so many elements are read.
struct sum_case {
  std::string name;
  std::function<compared_sums(neap::host_backend&, std::int64_t, summed_values)> run;
  double bound = 1e-6;  // of the relative error
};

namespace sum_cases_detail {

using namespace neap;

/// The sums over rows of f(row, column), and over columns.
template <class F>
std::vector<double> column_sums(std::int64_t rows, std::int64_t columns, F const& f) {
  std::vector<double> sums(static_cast<std::size_t>(columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) sums[static_cast<std::size_t>(c)] += f(r, c);
  return sums;
}
template <class F>
std::vector<double> row_sums(std::int64_t rows, std::int64_t columns, F const& f) {
  std::vector<double> sums(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) sums[static_cast<std::size_t>(r)] += f(r, c);
  return sums;
}
inline std::vector<double> over(std::vector<double> x, double divisor) {
  for (auto& v : x) v /= divisor;
  return x;
}
inline std::vector<double> room(bytes_t bytes) { return std::vector<double>(static_cast<std::size_t>(bytes / 8 + 1)); }

/// Sums of [outer, n / outer / inner, inner] over the middle, over both others, and over all. Transposed: of a tensor
/// whose last two axes are swapped in memory.
inline sum_case reduction_case(std::string name, reduction kind, std::int64_t outer, std::int64_t inner,
                               bool transposed = false) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const middle = elements / outer / inner;
            f32_tensor const x({outer, middle, inner}, v, 1);
            auto const at = [&](std::int64_t o, std::int64_t m, std::int64_t i) {
              return transposed ? x[(o * inner + i) * middle + m] : x[(o * middle + m) * inner + i];
            };
            tensor_ref in = x;
            if (transposed) in.strides = {middle * inner, 1, middle};
            f32_tensor kept({outer, inner}), others({middle}), all(shape{});
            std::vector<double> of_kept(static_cast<std::size_t>(outer * inner)),
                of_others(static_cast<std::size_t>(middle)), of_all(1);
            for (std::int64_t o = 0; o < outer; ++o)
              for (std::int64_t m = 0; m < middle; ++m)
                for (std::int64_t i = 0; i < inner; ++i) {
                  double const e = at(o, m, i);
                  of_kept[static_cast<std::size_t>(o * inner + i)] += e;
                  of_others[static_cast<std::size_t>(m)] += e, of_all[0] += e;
                }
            double const many = kind == reduction::mean ? 1 : 0;
            auto const share = [&](std::int64_t n) { return many != 0 ? static_cast<double>(n) : 1.0; };
            auto work = room(1 << 20);
            int const axes[]{0, 1, 2}, sides[]{0, 2}, between[]{1};
            reduce(b, kind, kept, in, between, work.data());
            reduce(b, kind, all, in, axes, work.data());
            compared_sums sums;
            sums.add(kept, over(of_kept, share(middle)));
            sums.add(all, over(of_all, share(outer * middle * inner)));
            if (v != summed_values::signed_ones) {  // few terms of both signs cancel
              auto more = room(reduce_workspace({dtype::f32, in.dims}, dtype::f32, sides));
              reduce(b, kind, others, in, sides, more.data());
              sums.add(others, over(of_others, share(outer * inner)));
            }
            return sums;
          }};
}

/// A norm of [rows, elements / rows]: the statistics, and the gradients of weight and bias.
inline sum_case row_norm_case(std::string name, bool centred, std::int64_t columns_or_rows, bool few_columns) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const other = elements / columns_or_rows;
            std::int64_t const columns = few_columns ? columns_or_rows : other,
                               rows = few_columns ? other : columns_or_rows;
            f32_tensor const x({rows, columns}, v, 2), dy({rows, columns}, v, 3), w({columns}, 1.f);
            f32_tensor y({rows, columns}), mean({rows}), rstd({rows}), dw({columns}), dc({columns});
            compared_sums sums;
            if (!few_columns) {
              if (centred) layer_norm(b, y, mean, rstd, x, {}, {}, 0.01);
              else rms_norm(b, y, rstd, x, {}, 0.01);
              auto const n = static_cast<double>(columns);
              auto const m = over(row_sums(rows, columns, [&](auto r, auto c) { return x[r * columns + c]; }), n);
              auto const s = over(row_sums(rows, columns,
                                           [&](auto r, auto c) {
                                             double const d =
                                                 x[r * columns + c] - (centred ? m[static_cast<std::size_t>(r)] : 0);
                                             return d * d;
                                           }),
                                  n);
              std::vector<double> roots;
              for (double e : s) roots.push_back(1 / std::sqrt(e + 0.01));
              if (centred) sums.add(mean, m);
              sums.add(rstd, roots);
            }
            for (auto& m : mean.at) m = -0.3f;
            for (auto& r : rstd.at) r = 1.7f;
            auto work = room(layer_norm_backward_workspace({dtype::f32, x.ref.dims}));
            if (centred) layer_norm_backward(b, y, dw, dc, dy, x, mean, rstd, w, work.data());
            else rms_norm_backward(b, y, dw, dy, x, rstd, w, work.data());
            if (!few_columns) return sums;
            double const m = centred ? static_cast<double>(-0.3f) : 0, r = static_cast<double>(1.7f);
            sums.add(dw, column_sums(rows, columns, [&](auto i, auto c) {
                       return dy[i * columns + c] * (x[i * columns + c] - m) * r;
                     }));
            if (centred) sums.add(dc, column_sums(rows, columns, [&](auto i, auto c) { return dy[i * columns + c]; }));
            return sums;
          }};
}

/// Batch norm of [elements / 4 / plane, 4, plane]: statistics of the batch, and the gradients.
inline sum_case batch_norm_case(std::string name, std::int64_t plane) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            constexpr std::int64_t channels = 4;
            std::int64_t const batch = elements / channels / plane;
            shape const dims{batch, channels, plane}, c{channels};
            f32_tensor const x(dims, v, 4), dy(dims, v, 5);
            f32_tensor y(dims), mean(c), rstd(c), dw(c), dc(c);
            auto const each = [&](auto const& f) {
              return column_sums(batch * plane, channels, [&](std::int64_t k, std::int64_t at) {
                return f((k / plane * channels + at) * plane + k % plane, static_cast<std::size_t>(at));
              });
            };
            auto const n = static_cast<double>(batch * plane);
            batch_norm(b, y, mean, rstd, x, {}, {}, 0.01);
            auto const m = over(each([&](auto i, auto) { return x[i]; }), n);
            auto s = over(each([&](auto i, auto k) { return (x[i] - m[k]) * (x[i] - m[k]); }), n);
            for (double& e : s) e = 1 / std::sqrt(e + 0.01);
            compared_sums sums;
            sums.add(mean, m), sums.add(rstd, s);
            for (auto& e : mean.at) e = -0.3f;
            for (auto& e : rstd.at) e = 1.7f;
            auto work = room(batch_norm_workspace({dtype::f32, dims}));
            batch_norm_backward(b, y, dw, dc, dy, x, mean, rstd, {}, work.data());
            double const shift = static_cast<double>(-0.3f), scale = static_cast<double>(1.7f);
            sums.add(dw, each([&](auto i, auto) { return dy[i] * (x[i] - shift) * scale; }));
            sums.add(dc, each([&](auto i, auto) { return dy[i]; }));
            return sums;
          }};
}

inline compared_sums group_norm_sums(host_backend& b, std::int64_t elements, summed_values v) {
  constexpr std::int64_t channels = 4, plane = 3;
  std::int64_t const batch = elements / channels / plane;
  shape const dims{batch, channels, plane}, statistics{batch, 2}, c{channels};
  f32_tensor const x(dims, v, 6), dy(dims, v, 7), mean(statistics, -0.3f), rstd(statistics, 1.7f);
  f32_tensor dx(dims), dw(c), dc(c);
  auto work = room(group_norm_backward_workspace({dtype::f32, dims}));
  group_norm_backward(b, dx, dw, dc, dy, x, mean, rstd, {}, 2, work.data());
  auto const each = [&](auto const& f) {
    return column_sums(batch * plane, channels, [&](std::int64_t k, std::int64_t at) {
      return f((k / plane * channels + at) * plane + k % plane);
    });
  };
  compared_sums sums;
  sums.add(dw, each([&](std::int64_t i) {
             return dy[i] * (x[i] - static_cast<double>(-0.3f)) * static_cast<double>(1.7f);
           }));
  sums.add(dc, each([&](std::int64_t i) { return dy[i]; }));
  return sums;
}

inline compared_sums long_group_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const plane = elements / 4;
  shape const dims{1, 4, plane}, statistics{1, 2};
  f32_tensor const x(dims, v, 8);
  f32_tensor y(dims), mean(statistics), rstd(statistics);
  group_norm(b, y, mean, rstd, x, {}, {}, 2, 0.01);
  auto const n = static_cast<double>(2 * plane);
  auto const m = over(row_sums(2, 2 * plane, [&](auto r, auto c) { return x[r * 2 * plane + c]; }), n);
  auto s = over(row_sums(2, 2 * plane,
                         [&](auto r, auto c) {
                           double const d = x[r * 2 * plane + c] - m[static_cast<std::size_t>(r)];
                           return d * d;
                         }),
                n);
  for (double& e : s) e = 1 / std::sqrt(e + 0.01);
  compared_sums sums;
  sums.add(mean, m), sums.add(rstd, s);
  return sums;
}

/// Cross-entropy of [rows, classes], the mean and the sum over the rows.
inline sum_case cross_entropy_case(std::string name, std::int64_t given, bool few_classes) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const classes = few_classes ? given : elements / given, rows = elements / classes;
            f32_tensor const x({rows, classes}, v, 9);
            std::vector<std::int64_t> target(static_cast<std::size_t>(rows));
            for (std::int64_t i = 0; i < rows; ++i) target[static_cast<std::size_t>(i)] = i * 7 % classes;
            tensor_ref const t{target.data(), dtype::i64, {rows}, {1}};
            f32_tensor mean(shape{}), sum(shape{});
            auto work = room(cross_entropy_workspace({dtype::f32, x.ref.dims}));
            cross_entropy_forward(b, mean, {}, x, t, loss_reduction::mean, -100, work.data());
            cross_entropy_forward(b, sum, {}, x, t, loss_reduction::sum, -100, work.data());
            auto const each = row_sums(rows, classes, [&](auto r, auto c) { return std::exp(x[r * classes + c]); });
            double all = 0;
            for (std::int64_t i = 0; i < rows; ++i)
              all += std::log(each[static_cast<std::size_t>(i)]) - x[i * classes + target[static_cast<std::size_t>(i)]];
            compared_sums sums;
            sums.add(mean, {all / static_cast<double>(rows)}), sums.add(sum, {all});
            return sums;
          }};
}

inline compared_sums squared_error_sums(host_backend& b, std::int64_t elements, summed_values v) {
  f32_tensor const x({elements}, v, 10), y({elements}, -0.2f);
  f32_tensor mean(shape{}), sum(shape{});
  auto work = room(mse_workspace({dtype::f32, x.ref.dims}));
  mse_forward(b, mean, x, y, loss_reduction::mean, work.data());
  mse_forward(b, sum, x, y, loss_reduction::sum, work.data());
  double all = 0;
  for (std::int64_t i = 0; i < elements; ++i) all += (x[i] - y[i]) * (x[i] - y[i]);
  compared_sums sums;
  sums.add(mean, {all / static_cast<double>(elements)}), sums.add(sum, {all});
  return sums;
}

/// Some elements of softmax of two long rows, and of its gradient.
inline compared_sums softmax_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const n = elements / 2;
  f32_tensor const x({2, n}, v, 11), dy({2, n}, v, 12), half({2, n}, 0.5f);
  f32_tensor y({2, n}), dx({2, n}), some({4});
  softmax(b, y, x);
  softmax_backward(b, dx, dy, half);  // 0.5 (dy - sum(0.5 dy))
  auto const e = row_sums(2, n, [&](auto r, auto c) { return std::exp(x[r * n + c]); });
  auto const g = row_sums(2, n, [&](auto r, auto c) { return 0.5 * dy[r * n + c]; });
  some.at = {y.at[0], y.at[static_cast<std::size_t>(n)], dx.at[0], dx.at[static_cast<std::size_t>(n)]};
  compared_sums sums;
  sums.add(some, {std::exp(x[0]) / e[0], std::exp(x[n]) / e[1], 0.5 * (dy[0] - g[0]), 0.5 * (dy[n] - g[1])});
  return sums;
}

inline compared_sums bias_gradient_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const images = elements / 60;
  f32_tensor const dy({images, 4, 3, 5}, v, 13);
  f32_tensor db({4});
  conv2d_bias_gradient(b, dy, db);
  compared_sums sums;
  sums.add(db, column_sums(images * 15, 4, [&](auto k, auto c) { return dy[(k / 15 * 4 + c) * 15 + k % 15]; }));
  return sums;
}

inline compared_sums embedding_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const n = elements / 4;
  f32_tensor const dy({n, 4}, v, 14);
  f32_tensor table({3, 4}), picked({2, 4});
  std::vector<std::int64_t> index(static_cast<std::size_t>(n), 1);  // most of them one row
  for (std::size_t i = 0; i < index.size(); i += 5) index[i] = 2;
  auto work = room(embedding_backward_workspace(3, n));
  embedding_backward(b, table, dy, {index.data(), dtype::i64, {n}, {1}}, work.data());
  compared_sums sums;
  picked.at.assign(table.at.begin() + 4, table.at.end());
  auto of_rows = column_sums(
      n, 8, [&](auto i, auto c) { return index[static_cast<std::size_t>(i)] == c / 4 + 1 ? dy[i * 4 + c % 4] : 0; });
  sums.add(picked, of_rows);
  return sums;
}

/// Terms [n, columns] added by number to 3 rows, or along the other axis.
inline sum_case index_add_case(std::string name, std::int64_t columns, bool turned) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const n = elements / columns;
            f32_tensor const from(turned ? shape{columns, n} : shape{n, columns}, v, 18);
            shape const dims = turned ? shape{columns, 3} : shape{3, columns};
            f32_tensor const base(dims, 0.5f);
            f32_tensor to(dims);
            std::vector<std::int64_t> index(static_cast<std::size_t>(n));
            for (std::size_t i = 0; i < index.size(); ++i) index[i] = i % 5 == 0 ? 2 : static_cast<std::int64_t>(i % 2);
            auto work = room(numbered_sums_workspace({dtype::f32, dims}, n));
            index_add(b, sum_op{}, to, base, {index.data(), dtype::i64, {n}, {1}}, from, turned ? 1 : 0, work.data());
            auto sums = column_sums(n, 3 * columns, [&](auto i, auto c) {
              std::int64_t const row = turned ? c % 3 : c / columns, column = turned ? c / 3 : c % columns;
              return index[static_cast<std::size_t>(i)] == row ? from[turned ? column * n + i : i * columns + column]
                                                               : 0;
            });
            for (double& s : sums) s += 0.5;
            compared_sums all;
            all.add(to, sums);
            return all;
          }};
}

inline compared_sums scatter_add_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const n = elements / 2;
  f32_tensor const from({2, n}, v, 19);
  f32_tensor to({2, 3});
  std::vector<std::int64_t> place(static_cast<std::size_t>(2 * n));
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<std::int64_t>(i % 7 % 3);
  auto work = room(numbered_sums_workspace({dtype::f32, {2, 3}}, n));
  numbered_sums const sums = numbered_sums_of(b, to, n, work.data());
  scatter_add(b, sums, from, {place.data(), dtype::i64, {2, n}, {n, 1}}, 1);
  compared_sums all;
  all.add(to, column_sums(n, 6, [&](auto i, auto c) {
            std::int64_t const at = c / 3 * n + i;
            return place[static_cast<std::size_t>(at)] == c % 3 ? from[at] : 0;
          }));
  return all;
}

/// The gradient of a weight [4, 4], from n / 8 rows.
inline compared_sums product_sums(host_backend& b, std::int64_t elements, summed_values v) {
  std::int64_t const rows = elements / 8;
  f32_tensor const x({rows, 4}, v, 20), dy({rows, 4}, v, 21);
  f32_tensor dw({4, 4});
  auto work = room(matmul_workspace(x, dy, dw, {.transpose_a = true}));
  matmul(b, x, dy, dw, {.transpose_a = true}, work.data());
  compared_sums sums;
  sums.add(dw, column_sums(rows, 16, [&](auto r, auto c) { return x[r * 4 + c / 4] * dy[r * 4 + c % 4]; }));
  return sums;
}

/// The norm of all gradients, and Adafactor's means of rows and columns after a step.
inline sum_case optimizer_case(std::string name, std::int64_t columns_or_rows, bool few_columns) {
  return {name, [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const other = elements / columns_or_rows;
            std::int64_t const columns = few_columns ? columns_or_rows : other,
                               rows = few_columns ? other : columns_or_rows;
            f32_tensor const g({rows, columns}, v, 15);
            f32_tensor w({rows, columns}, 1.f), of_column({columns}), of_row({rows}), norm({1});
            auto const square = [&](auto r, auto c) { return g[r * columns + c] * g[r * columns + c]; };
            auto work = room(std::max(add_sum_of_squares_workspace({dtype::f32, g.ref.dims}),
                                      adafactor_workspace({dtype::f32, g.ref.dims})));
            double total = 0, all = 0;
            add_sum_of_squares(b, {&total, dtype::f64, {}, {}}, g, work.data());
            adafactor_update(b, w, g, of_column, of_row, 1, {}, work.data());
            auto const by_row = row_sums(rows, columns, square);
            for (double e : by_row) all += e;
            norm.at[0] = static_cast<float>(total);
            compared_sums sums;
            sums.add(norm, {all});
            if (few_columns) sums.add(of_column, over(column_sums(rows, columns, square), static_cast<double>(rows)));
            else sums.add(of_row, over(by_row, static_cast<double>(columns)));
            return sums;
          }};
}

inline compared_sums pool_sums(host_backend& b, std::int64_t elements, summed_values v) {
  auto const side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements / 2)));
  f32_tensor const x({1, 2, side, side}, v, 16);
  f32_tensor y({1, 2, 1, 1});
  adaptive_avg_pool2d(b, x, y);
  compared_sums sums;
  sums.add(y, over(row_sums(2, side * side, [&](auto r, auto c) { return x[r * side * side + c]; }),
                   static_cast<double>(side * side)));
  return sums;
}

/// The gradient of a filter [outs, ins / groups, k, k], from images [elements / ins / 36, ins, 6, 6]: of two outputs and
/// two inputs at most.
struct filter_form {
  std::int64_t k, stride = 1, groups = 1, ins = 2, outs = 2;
};
inline sum_case filter_gradient_case(std::string name, filter_form f, double bound = 1e-6) {
  return {name,
          [=](host_backend& b, std::int64_t elements, summed_values v) {
            std::int64_t const k = f.k, images = elements / f.ins / 36, in = f.ins / f.groups;
            conv2d_options const o{{f.stride, f.stride}, {k / 2, k / 2}, {1, 1}, f.groups};
            f32_tensor const x({images, f.ins, 6, 6}, v, 22);
            f32_tensor dw({f.outs, in, k, k});
            f32_tensor const dy(conv2d_shape(x.ref.dims, dw.ref.dims, o), v, 23);
            auto work = room(conv2d_weight_gradient_workspace(x.ref.dims, dw.ref.dims, o, dtype::f32, b.threads()));
            conv2d_weight_gradient(b, x, dy, dw, o, work.data());
            std::int64_t const side = dy.ref.dims[2], few = std::min<std::int64_t>(in, 2);
            f32_tensor some({2, few, k * k});
            for (std::int64_t at = 0; at < 2 * few * k * k; ++at)
              some.at[static_cast<std::size_t>(at)] =
                  dw.at[static_cast<std::size_t>(at / (few * k * k) * in * k * k + at % (few * k * k))];
            auto const term = [&](std::int64_t row, std::int64_t at) {
              std::int64_t const n = row / (side * side), i = row / side % side, j = row % side;
              std::int64_t const to = at / (few * k * k);
              std::int64_t const from = at / (k * k) % few + to / (f.outs / f.groups) * in;
              std::int64_t const r = i * f.stride + at / k % k - k / 2, c = j * f.stride + at % k - k / 2;
              if (r < 0 || r >= 6 || c < 0 || c >= 6) return 0.0;
              return x[((n * f.ins + from) * 6 + r) * 6 + c] * dy[((n * f.outs + to) * side + i) * side + j];
            };
            compared_sums sums;
            sums.add(some, column_sums(images * side * side, 2 * few * k * k, term));
            return sums;
          },
          bound};
}

/// Gradients of pools whose windows all reach the place in the middle of the image.
inline compared_sums pool_gradient_sums(host_backend& b, std::int64_t elements, summed_values v) {
  auto const w = static_cast<std::int64_t>(std::sqrt(std::sqrt(static_cast<double>(elements))));
  pool2d_options const o{{w, w}, {1, 1}};
  shape const image{1, 1, 2 * w - 1, 2 * w - 1}, pooled{1, 1, w, w};
  f32_tensor const dy(pooled, v, 24);
  f32_tensor of_mean(image), of_maximum(image), middle({2});
  avg_pool2d_gradient(b, dy, of_mean, o);
  std::vector<std::byte> places(static_cast<std::size_t>(bytes_of(max_pool2d_place(o), w * w)));
  double all = 0;
  for (std::int64_t i = 0; i < w * w; ++i) {
    std::int64_t const tap = (w - 1 - i / w) * w + w - 1 - i % w;
    if (max_pool2d_place(o) == dtype::u8) places[static_cast<std::size_t>(i)] = static_cast<std::byte>(tap);
    else reinterpret_cast<std::int32_t*>(places.data())[i] = static_cast<std::int32_t>(tap);
    all += dy[i];
  }
  max_pool2d_gradient(b, dy, {places.data(), max_pool2d_place(o), pooled, dense_strides(pooled)}, of_maximum, o);
  auto const at = static_cast<std::size_t>((w - 1) * (2 * w - 1) + w - 1);
  middle.at = {of_mean.at[at], of_maximum.at[at]};
  compared_sums sums;
  sums.add(middle, {all / static_cast<double>(w * w), all});
  return sums;
}

/// Gradients of images [1, 2, 2, 2] that were resized to many elements.
inline compared_sums resizing_gradient_sums(host_backend& b, std::int64_t elements, summed_values v) {
  auto const side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements / 2)));
  f32_tensor const dy({1, 2, side, side}, v, 25);
  compared_sums sums;
  auto const expect = [&](f32_tensor const& dx, auto const& weight) {
    sums.add(dx, column_sums(side * side, 8, [&](std::int64_t at, std::int64_t to) {
               return dy[to / 4 * side * side + at] * weight(at / side, to / 2 % 2) * weight(at % side, to % 2);
             }));
  };
  f32_tensor nearest({1, 2, 2, 2}), bilinear({1, 2, 2, 2}), pooled({1, 2, 2, 2});
  interpolate_gradient(b, dy, nearest, {});
  expect(nearest, [&](std::int64_t i, std::int64_t to) { return i * 2 / side == to ? 1.0 : 0.0; });
  interpolate_gradient(b, dy, bilinear, {interpolation::bilinear, true});
  expect(bilinear, [&](std::int64_t i, std::int64_t to) {
    double const t = static_cast<double>(i) / static_cast<double>(side - 1);
    return to == 1 ? t : 1 - t;
  });
  adaptive_avg_pool2d_gradient(b, dy, pooled);
  expect(pooled, [&](std::int64_t i, std::int64_t to) {
    std::int64_t const begin = i * 2 / side, end = ((i + 1) * 2 + side - 1) / side;
    return to >= begin && to < end ? 1 / static_cast<double>(end - begin) : 0.0;
  });
  return sums;
}

inline compared_sums running_sums(host_backend& b, std::int64_t elements, summed_values v) {
  f32_tensor const x({elements / 2, 2}, v, 17);
  f32_tensor y({elements / 2, 2}), last({2});
  cumsum(b, y, x, 0, false);
  last.at = {y.at[y.at.size() - 2], y.at.back()};
  compared_sums sums;
  sums.add(last, column_sums(elements / 2, 2, [&](auto r, auto c) { return x[r * 2 + c]; }));
  return sums;
}

}  // namespace sum_cases_detail

inline std::vector<sum_case> sum_cases() {
  using namespace sum_cases_detail;
  return {
      reduction_case("sum [1,n,1]", reduction::sum, 1, 1),
      reduction_case("sum [1,n/2,2]", reduction::sum, 1, 2),
      reduction_case("sum [2,n/2,1]", reduction::sum, 2, 1),
      reduction_case("sum [10,n/50,5]", reduction::sum, 10, 5),
      reduction_case("sum [3,n/900,300]", reduction::sum, 3, 300),
      reduction_case("sum [2,n/6,3] transposed", reduction::sum, 2, 3, true),
      reduction_case("mean [1,n/2,2]", reduction::mean, 1, 2),
      reduction_case("mean [40,n/1000,25]", reduction::mean, 40, 25),
      row_norm_case("layer_norm of 2 rows", true, 2, false),
      row_norm_case("layer_norm gradients of 4 columns", true, 4, true),
      row_norm_case("layer_norm gradients of 700 columns", true, 700, true),
      row_norm_case("rms_norm of 2 rows", false, 2, false),
      row_norm_case("rms_norm gradients of 4 columns", false, 4, true),
      batch_norm_case("batch_norm [n/4,4]", 1),
      batch_norm_case("batch_norm [n/28,4,7]", 7),
      batch_norm_case("batch_norm [n/4000,4,1000]", 1000),
      {"group_norm of 2 groups", long_group_sums},
      {"group_norm gradients [n/12,4,3]", group_norm_sums},
      cross_entropy_case("cross_entropy of 2 classes", 2, true),
      cross_entropy_case("cross_entropy of 5 rows", 5, false),
      {"mse", squared_error_sums},
      {"softmax of 2 rows", softmax_sums},
      {"conv2d bias gradient [n/60,4,3,5]", bias_gradient_sums},
      {"embedding gradient", embedding_sums},
      index_add_case("index_add of 40 columns", 40, false),
      index_add_case("index_add of 2 columns", 2, false),
      index_add_case("index_add along rows", 3, true),
      {"scatter_add", scatter_add_sums},
      {"matmul [4,n/8] [n/8,4]", product_sums},
      optimizer_case("clipping and adafactor of 4 columns", 4, true),
      optimizer_case("clipping and adafactor of 4 rows", 4, false),
      {"adaptive_avg_pool2d to 1", pool_sums},
      {"gradients of pools, at one place", pool_gradient_sums},
      {"gradients of resizing 2 x 2 places", resizing_gradient_sums},
      filter_gradient_case("conv2d filter gradient 1 x 1", {.k = 1}),
      filter_gradient_case("conv2d filter gradient 3 x 3", {.k = 3}),
      filter_gradient_case("conv2d filter gradient 3 x 3 of stride 2", {.k = 3, .stride = 2}),
      filter_gradient_case("conv2d filter gradient 3 x 3 of 2 groups", {.k = 3, .groups = 2}),
      filter_gradient_case("conv2d filter gradient 3 x 3 of 16 channels", {.k = 3, .ins = 16, .outs = 16}),
      filter_gradient_case("conv2d filter gradient 3 x 3 of stride 2, 16 channels",
                           {.k = 3, .stride = 2, .ins = 16, .outs = 16}),
      // As matrix products: 256 terms stay in registers, which equal terms make the most of.
      filter_gradient_case("conv2d filter gradient 3 x 3 of 16 to 128 channels",
                           {.k = 3, .stride = 2, .ins = 16, .outs = 128}, 2e-6),
      {"cumsum", running_sums},
  };
}

}  // namespace neap_test
