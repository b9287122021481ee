// Softmax and its logarithm along the last axis, forward and backward. One block a row: maximum, sum of exponentials,
// scale.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>

#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

/// y = e^(x - max) / sum, or x - max - log(sum).
template <class T, bool Log>
struct softmax_rows {
  using element = T;
  using C = compute_t<T>;
  row_layout x_rows, y_rows;
  std::int64_t columns;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(x_rows, b.id);
    T* const y = row_at<T>(y_rows, b.id);
    C const top = b.reduce_transform(
        columns, lowest_of<C>, [](T v) { return static_cast<C>(v); }, max_op{}, x);
    // A row of nothing but -inf has no distribution: NaN, as the formula says.
    if constexpr (!Log && std::is_same_v<T, C>) {
      C const sum = b.reduce_each(
          columns, C(0),
          [=](std::int64_t i) {
            C const e = math::exp(x[i] - top);
            y[i] = e;
            return e;
          },
          sum_op{});
      C const scale = C(1) / sum;
      b.transform(
          columns, y, [=](T e) { return e * scale; }, y);
    } else {
      C const sum = b.reduce_transform(
          columns, C(0), [=](T v) { return math::exp(static_cast<C>(v) - top); }, sum_op{}, x);
      if constexpr (Log) {
        // Apart from the largest, the logarithm keeps its digits where all elements are large.
        C const log_of_sum = math::log(sum);
        b.transform(
            columns, y, [=](T v) { return convert<T>(static_cast<C>(v) - top - log_of_sum); }, x);
      } else {
        C const scale = C(1) / sum;
        b.transform(
            columns, y, [=](T v) { return convert<T>(math::exp(static_cast<C>(v) - top) * scale); }, x);
      }
    }
  }
};

/// dx = y (dy - sum(y dy)), or dy - e^y sum(dy).
template <class T, bool Log>
struct softmax_backward_rows {
  using element = T;
  using C = compute_t<T>;
  row_layout dy_rows, y_rows, dx_rows;
  std::int64_t columns;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const dy = row_at<T const>(dy_rows, b.id);
    T const* const y = row_at<T const>(y_rows, b.id);
    T* const dx = row_at<T>(dx_rows, b.id);
    C const sum = b.reduce_transform(
        columns, C(0),
        [](T g, [[maybe_unused]] T v) {
          if constexpr (Log) return static_cast<C>(g);
          else return static_cast<C>(v) * static_cast<C>(g);
        },
        sum_op{}, dy, y);
    b.transform(
        columns, dx,
        [=](T of_y, T of_x) {
          C const g = of_y, v = of_x;
          if constexpr (Log) return convert<T>(g - math::exp(v) * sum);
          else return convert<T>(v * (g - sum));
        },
        dy, y);
  }
};

template <bool Log, class Backend>
void run_softmax(Backend& b, tensor_ref const& y, tensor_ref const& x, char const* name) {
  expect_same_shape(y, x, name);
  row_layout const from = rows_of(x, x.element, name), to = rows_of(y, x.element, name);
  std::int64_t const columns = x.extent(-1), rows = x.count() > 0 ? x.count() / columns : 0;
  with_floating(x.element, [&](auto tag) {
    b.launch(rows, softmax_rows<typename decltype(tag)::type, Log>{from, to, columns}, columns);
  });
}

template <bool Log, class Backend>
void run_softmax_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dy, tensor_ref const& y,
                          char const* name) {
  expect_same_shape(dx, dy, name);
  expect_same_shape(dx, y, name);
  dtype const t = y.element;
  row_layout const g = rows_of(dy, t, name), from = rows_of(y, t, name), to = rows_of(dx, t, name);
  std::int64_t const columns = y.extent(-1), rows = y.count() > 0 ? y.count() / columns : 0;
  with_floating(t, [&](auto tag) {
    b.launch(rows, softmax_backward_rows<typename decltype(tag)::type, Log>{g, from, to, columns}, columns);
  });
}

}  // namespace detail

/// y = softmax(x) along the last axis, which must be contiguous. y may be x. All of one shape and floating type.
template <class Backend>
void softmax(Backend& b, tensor_ref const& y, tensor_ref const& x) {
  detail::run_softmax<false>(b, y, x, "softmax");
}
/// y = log(softmax(x)).
template <class Backend>
void log_softmax(Backend& b, tensor_ref const& y, tensor_ref const& x) {
  detail::run_softmax<true>(b, y, x, "log_softmax");
}
/// The gradient from y = softmax(x), not x. dx may be dy or y.
template <class Backend>
void softmax_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dy, tensor_ref const& y) {
  detail::run_softmax_backward<false>(b, dx, dy, y, "softmax_backward");
}
/// The gradient from y = log_softmax(x), not x. dx may be dy or y.
template <class Backend>
void log_softmax_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dy, tensor_ref const& y) {
  detail::run_softmax_backward<true>(b, dx, dy, y, "log_softmax_backward");
}

}}  // namespace neap::v0
