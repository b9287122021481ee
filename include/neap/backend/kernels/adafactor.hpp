// Adafactor's update (Shazeer and Stern 2018, algorithms 4 and 5): Adam's second moment of a matrix weight is kept as the
// means of its rows and of its columns, some rows + columns numbers where Adam keeps two of the weight's size, and there is
// no first moment:
//
//   R = mean of g^2 over each row,  C = over each column,  both running:  x += t^-power * (fresh - x)
//   u[i, j] = g[i, j] / sqrt(R[i] C[j] / mean(R))
//   w -= rate * max(epsilon, rms(w)) / max(1, rms(u) / threshold) * u
//
// A weight of one axis keeps the mean of each element's square instead of R C / mean(R). The steps u are worked out twice
// rather than kept: nothing of the weight's size is needed beside it.
#pragma once

#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

struct adafactor_options {
  double rate = 1e-2, power = 0.8, epsilon = 1e-3, threshold = 1, decay = 0;
};

namespace detail {

/// Added to squares, so that a gradient of nothing but zeros moves nothing.
inline constexpr double adafactor_floor = 1e-30;

/// One block a group of rows: moves the rows' means of squares (`row`, none: there is one row), and adds the squares of
/// the group's columns up in `partial` (group, column).
template <class T>
struct square_means {
  using element = T;
  using C = compute_t<T>;
  void const* gradient;
  row_groups groups;
  std::int64_t columns;
  C fresh;  // the share of what is new
  C *row, *partial;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    C* const sums = partial + b.id * columns;
    std::int64_t const first = b.id * groups.size, left = groups.rows - first;
    std::int64_t const end = first + (left < groups.size ? left : groups.size);
    for (std::int64_t r = first; r < end; ++r) {
      T const* const g = static_cast<T const*>(gradient) + r * columns;
      if ((r - first) % sum_run == 0) {
        C* const to[]{sums};
        add_rows(b, r == first, r, r + sum_run < end ? r + sum_run : end, columns, to,
                 [this, &b](std::int64_t k, std::int64_t column, std::int64_t n, auto const& part) {
                   T const* const x = static_cast<T const*>(gradient) + k * columns + column;
                   auto const own = part[0];
                   b.each(n, [=](std::int64_t j) { own[j] += static_cast<C>(x[j]) * static_cast<C>(x[j]); });
                 });
      }
      if (!row) continue;
      C const sum = b.reduce_each(
          columns, C(0),
          [=](std::int64_t j) {
            C const x = g[j];
            return x * x;
          },
          sum_op{});
      C* const to = row + r;
      C const share = fresh, count = static_cast<C>(columns);
      b.once([=] {
        C const before = *to;
        *to = before + share * (sum / count + static_cast<C>(adafactor_floor) - before);
      });
    }
  }
};

/// One block a tile of columns: moves the columns' means of squares to the sums of the groups.
template <class C>
struct column_means {
  static constexpr int tile = 256;
  C* partial;
  std::int64_t groups, rows, columns;
  C fresh;
  C* column;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * tile, n = columns - first < tile ? columns - first : tile;
    typename Block::template slots<sum_t<C>, tile> sums;
    auto const sum = sums.place();
    b.each(n, [=](std::int64_t j) { sum[j] = 0; });
    for (std::int64_t k = 0; k < groups; ++k) {
      C const* const more = partial + k * columns + first;
      b.each(n, [=](std::int64_t j) { sum[j] += more[j]; });
    }
    C* const to = column + first;
    C const share = fresh, count = static_cast<C>(rows);
    b.each(n, [=](std::int64_t j) {
      to[j] += share * (static_cast<C>(sum[j]) / count + static_cast<C>(adafactor_floor) - to[j]);
    });
  }
};

/// What the blocks of a step tell one another.
struct adafactor_numbers {
  double row_mean;  // of R
  double step;      // what u is multiplied by
};

template <class C>
struct mean_of_rows {
  C const* row;
  std::int64_t rows;
  adafactor_numbers* numbers;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    C const* const r = row;
    double const sum = b.reduce_each(
        rows, 0.0, [=](std::int64_t i) { return static_cast<double>(r[i]); }, sum_op{});
    mean_of_rows const k = *this;
    b.once([=] { k.numbers->row_mean = sum / static_cast<double>(k.rows); });
  }
};

/// One block a group of rows: the sums of u^2 and w^2 to `partial` (group, two), or, where there is none, the step.
template <class T>
struct adafactor_step {
  using element = T;
  using C = compute_t<T>;
  void* weight;
  void const* gradient;
  row_groups groups;
  std::int64_t columns;
  C const *row, *column;
  C keep;
  adafactor_numbers const* numbers;
  double* partial;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    double u_squares = 0, w_squares = 0;
    C const k = keep, step = partial ? C(0) : static_cast<C>(numbers->step);
    C const* const c = column;
    std::int64_t const first = b.id * groups.size;
    for (std::int64_t r = first; r < first + groups.size && r < groups.rows; ++r) {
      T* const w = static_cast<T*>(weight) + r * columns;
      T const* const g = static_cast<T const*>(gradient) + r * columns;
      C const share = row ? row[r] / static_cast<C>(numbers->row_mean) : C(1);
      auto const u = [=](std::int64_t j) {
        C const x = g[j];
        return x / math::sqrt(share * c[j]);
      };
      if (!partial) {
        b.each(columns, [=](std::int64_t j) { w[j] = static_cast<T>(k * static_cast<C>(w[j]) - step * u(j)); });
        continue;
      }
      u_squares += b.reduce_each(
          columns, C(0), [=](std::int64_t j) { return u(j) * u(j); }, sum_op{});
      w_squares += b.reduce_each(
          columns, C(0),
          [=](std::int64_t j) {
            C const x = w[j];
            return x * x;
          },
          sum_op{});
    }
    if (!partial) return;
    double* const to = partial + 2 * b.id;
    b.once([=] { to[0] = u_squares, to[1] = w_squares; });
  }
};

struct adafactor_length {
  double const* partial;
  std::int64_t groups, count;
  adafactor_options options;
  adafactor_numbers* numbers;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    double const* const p = partial;
    auto const rms = [&](int which) {
      double const sum = b.reduce_each(
          groups, 0.0, [=](std::int64_t i) { return p[2 * i + which]; }, sum_op{});
      return math::sqrt(sum / static_cast<double>(count));
    };
    double const u = rms(0) / options.threshold, w = rms(1);
    // A NaN stays one.
    double const step = options.rate * (w <= options.epsilon ? options.epsilon : w) / (u <= 1 ? 1.0 : u);
    adafactor_numbers* const to = numbers;
    b.once([=] { to->step = step; });
  }
};

/// Where what an update needs lies in its workspace, in bytes.
struct adafactor_places {
  bytes_t partial, columns, end;
  adafactor_places(weight_matrix const& m, dtype state) {
    auto const groups = row_groups(m.rows).count;
    partial = 64, columns = partial + align_up(groups * 16, 64);
    end = columns + checked_mul(groups * m.columns, size_of(state));
  }
};

}  // namespace detail

/// Bytes of workspace of adafactor_update for a weight of this type.
inline bytes_t adafactor_workspace(tensor_type const& weight) {
  detail::weight_matrix const m(weight.dims);
  return m.count() == 0 ? 0 : detail::adafactor_places(m, computed_in(weight.element)).end;
}

/// One step of Adafactor, as above; the weight decays by rate * decay. `column` has the means of the columns (of a weight
/// of fewer than two axes: of its elements), `row` those of the rows (of such a weight it is empty); both are f64 of an f64
/// weight, f32 of others, and start from 0. `step` counts from 1; the gradient has the weight's type.
template <class Backend>
void adafactor_update(Backend& b, tensor_ref const& weight, tensor_ref const& gradient, tensor_ref const& column,
                      tensor_ref const& row, std::int64_t step, adafactor_options const& options, void* workspace) {
  detail::expect(step >= 1, "adafactor: the first step has number 1");
  detail::weight_matrix const m(weight.dims);
  if (m.count() == 0) return;
  char const* const name = "adafactor";
  detail::row_groups const groups(m.rows);
  with_floating(weight.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    detail::adafactor_places const at(m, dtype_of<C>);
    auto* const work = static_cast<std::byte*>(workspace);
    auto* const numbers = reinterpret_cast<detail::adafactor_numbers*>(work);
    auto* const partial = reinterpret_cast<double*>(work + at.partial);
    auto* const sums = reinterpret_cast<C*>(work + at.columns);
    auto* const w = detail::vector_of<T>(weight, m.count(), name);
    auto const* const g = detail::vector_of<T const>(gradient, m.count(), name);
    C *const c = detail::vector_of<C>(column, m.columns, name), *const r = row.data
                                                                               ? detail::vector_of<C>(row, m.rows, name)
                                                                               : nullptr;
    C const fresh = static_cast<C>(std::pow(static_cast<double>(step), -options.power));
    auto const block = groups.size * m.columns;
    b.launch(groups.count, detail::square_means<T>{g, groups, m.columns, fresh, r, sums}, block);
    using means = detail::column_means<C>;
    b.launch((m.columns + means::tile - 1) / means::tile, means{sums, groups.count, m.rows, m.columns, fresh, c},
             groups.count * means::tile);
    if (r) b.launch(1, detail::mean_of_rows<C>{r, m.rows, numbers}, m.rows);
    detail::adafactor_step<T> run{
        w, g, groups, m.columns, r, c, static_cast<C>(1 - options.rate * options.decay), numbers, partial};
    b.launch(groups.count, run, block);
    b.launch(1, detail::adafactor_length{partial, groups.count, m.count(), options, numbers}, groups.count);
    run.partial = nullptr;
    b.launch(groups.count, run, block);
  });
}

}}  // namespace neap::v0
