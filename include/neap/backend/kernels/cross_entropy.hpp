// Losses: cross-entropy over logits and class numbers, and the mean squared error. Cross-entropy saves one number a row
// (the logarithm of the sum of exponentials), not the probabilities; its backward pass writes the gradient in one pass,
// over the logits if asked to.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/math.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/units.hpp>

#include <cstdint>
#include <string>

namespace neap::inline v0 {

/// What becomes of the losses of the rows or elements.
enum class loss_reduction : std::uint8_t { none, mean, sum };

namespace detail {

template <class T>
struct cross_entropy_rows {
  using C = compute_t<T>;
  row_view<T const> logit_rows;
  std::int64_t const* target;
  C* loss;       // [rows]
  C* logsumexp;  // [rows], may be null
  std::int64_t columns, ignore_index;
  C smoothing;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = logit_rows(b.id);
    C const top = b.reduce_each(
        columns, lowest_of<C>, [=](std::int64_t i) { return static_cast<C>(x[i]); }, max_op{});
    C const sum = b.reduce_each(
        columns, C(0), [=](std::int64_t i) { return math::exp(static_cast<C>(x[i]) - top); }, sum_op{});
    C const lse = top + math::log(sum);
    std::int64_t const t = target[b.id];
    if (logsumexp) logsumexp[b.id] = lse;
    if (t == ignore_index) {
      loss[b.id] = C(0);
      return;
    }
    C expected = static_cast<C>(x[t]);
    if (smoothing != C(0)) {
      C const all = b.reduce_each(
          columns, C(0), [=](std::int64_t i) { return static_cast<C>(x[i]); }, sum_op{});
      expected = (C(1) - smoothing) * expected + smoothing / static_cast<C>(columns) * all;
    }
    loss[b.id] = lse - expected;
  }
};

/// The sum of the rows' losses, and how many rows count; one block.
template <class C, class T>
struct sum_losses {
  C const* loss;
  std::int64_t const* target;  // may be null: all count
  T* out;                      // may be null
  C* counted;                  // may be null
  std::int64_t rows, ignore_index;
  bool mean;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    C const* const l = loss;
    std::int64_t const* const t = target;
    std::int64_t const ignored = ignore_index;
    C const n = t ? static_cast<C>(b.reduce_each(
                        rows, std::int64_t{0},
                        [=](std::int64_t i) { return static_cast<std::int64_t>(t[i] != ignored); }, sum_op{}))
                  : static_cast<C>(rows);
    if (counted) *counted = n;
    if (!out) return;
    C const sum = b.reduce_each(
        rows, C(0), [=](std::int64_t i) { return l[i]; }, sum_op{});
    *out = convert<T>(mean ? sum / n : sum);
  }
};

template <class T>
struct cross_entropy_backward_rows {
  using C = compute_t<T>;
  row_view<T> dlogit_rows;
  row_view<T const> logit_rows;
  std::int64_t const* target;
  C const* logsumexp;
  T const* dloss;    // one, or one a row
  C const* counted;  // null unless the loss is a mean
  std::int64_t columns, ignore_index;
  bool each_row;
  C smoothing;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = logit_rows(b.id);
    T* const dx = dlogit_rows(b.id);
    std::int64_t const t = target[b.id];
    C const lse = logsumexp[b.id];
    C g = static_cast<C>(dloss[each_row ? b.id : 0]);
    if (counted) g /= *counted;
    if (t == ignore_index) {
      b.each(columns, [=](std::int64_t i) { dx[i] = convert<T>(C(0)); });
      return;
    }
    C const at_target = static_cast<C>(x[t]), of_target = C(1) - smoothing,
            of_each = smoothing / static_cast<C>(columns);
    b.sync();
    b.each(columns, [=](std::int64_t i) { dx[i] = convert<T>((math::exp(static_cast<C>(x[i]) - lse) - of_each) * g); });
    b.sync();
    b.each(1, [=](std::int64_t) { dx[t] = convert<T>((math::exp(at_target - lse) - of_each - of_target) * g); });
  }
};

inline void check_targets(std::int64_t const* target, std::int64_t rows, std::int64_t classes, std::int64_t ignored) {
  for (std::int64_t i = 0; i < rows; ++i)
    if (target[i] != ignored && (target[i] < 0 || target[i] >= classes))
      throw error("cross_entropy: target " + std::to_string(target[i]) + " at row " + std::to_string(i) +
                  " is not a class below " + std::to_string(classes));
}

}  // namespace detail

/// Bytes of workspace of cross_entropy and of cross_entropy_backward for logits of this type.
inline bytes_t cross_entropy_workspace(tensor_type const& logits) {
  std::int64_t const rows = detail::row_count(logits.dims);
  return checked_mul(checked_add(rows, 8), 8);
}

/// loss = logsumexp(row) - row[target], over logits [..., classes] and i64 targets [...]: one a row (none, f32 or f64 as
/// the logits are computed in), or the mean or sum in the logits' type over the rows whose target is not `ignore_index`
/// (the mean over no rows is NaN). With a smoothing s the target is 1 - s of its class and s / classes of each. Saves logsumexp [rows] in f32 (f64 for f64) if it has data. Throws neap::error if
/// a target is no class, where the backend's memory is the host's.
template <class Backend>
void cross_entropy_forward(Backend& b, tensor_ref const& loss, tensor_ref const& logsumexp, tensor_ref const& logits,
                           tensor_ref const& target, loss_reduction how, std::int64_t ignore_index, void* workspace,
                           double smoothing = 0) {
  with_floating(logits.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    char const* const name = "cross_entropy";
    std::int64_t const columns = logits.extent(-1), rows = detail::row_count(logits.dims);
    auto const* const t = detail::vector_of<std::int64_t const>(target, rows, name);
    if constexpr (Backend::addresses_host_memory) detail::check_targets(t, rows, columns, ignore_index);
    C* const losses = how == loss_reduction::none ? detail::vector_of<C>(loss, rows, name) : static_cast<C*>(workspace);
    detail::cross_entropy_rows<T> const kernel{detail::rows_of<T const>(logits, name),
                                               t,
                                               losses,
                                               detail::vector_of<C>(logsumexp, rows, name),
                                               columns,
                                               ignore_index,
                                               static_cast<C>(smoothing)};
    b.launch(rows, kernel, columns);
    if (how == loss_reduction::none) return;
    detail::sum_losses<C, T> const sum{
        losses, t, detail::vector_of<T>(loss, 1, name), nullptr, rows, ignore_index, how == loss_reduction::mean};
    b.launch(1, sum, rows);
  });
}

/// dlogits = (softmax(logits) - [class is target], smoothed) * dloss, 0 in ignored rows; dloss is one number, or one a row for
/// loss_reduction::none, in the logits' type. dlogits may be logits.
template <class Backend>
void cross_entropy_backward(Backend& b, tensor_ref const& dlogits, tensor_ref const& dloss, tensor_ref const& logits,
                            tensor_ref const& logsumexp, tensor_ref const& target, loss_reduction how,
                            std::int64_t ignore_index, void* workspace, double smoothing = 0) {
  detail::expect_same_shape(dlogits, logits, "cross_entropy_backward");
  with_floating(logits.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    char const* const name = "cross_entropy_backward";
    std::int64_t const columns = logits.extent(-1), rows = detail::row_count(logits.dims);
    auto const* const t = detail::vector_of<std::int64_t const>(target, rows, name);
    if constexpr (Backend::addresses_host_memory) detail::check_targets(t, rows, columns, ignore_index);
    C* const counted = how == loss_reduction::mean ? static_cast<C*>(workspace) : nullptr;
    if (counted) b.launch(1, detail::sum_losses<C, T>{nullptr, t, nullptr, counted, rows, ignore_index, false}, rows);
    bool const each_row = how == loss_reduction::none;
    detail::cross_entropy_backward_rows<T> const kernel{detail::rows_of<T>(dlogits, name),
                                                        detail::rows_of<T const>(logits, name),
                                                        t,
                                                        detail::vector_of<C const>(logsumexp, rows, name),
                                                        detail::vector_of<T const>(dloss, each_row ? rows : 1, name),
                                                        counted,
                                                        columns,
                                                        ignore_index,
                                                        each_row,
                                                        static_cast<C>(smoothing)};
    b.launch(rows, kernel, columns);
  });
}

namespace detail {

/// One block a chunk of the elements: the chunk's sum of squared differences.
template <class T>
struct squared_error_chunks {
  using C = compute_t<T>;
  static constexpr std::int64_t chunk = 16384;
  T const *x, *y;
  C* partial;
  std::int64_t n;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk;
    T const *const p = x + first, *const q = y + first;
    C const sum = b.reduce_each(
        n - first < chunk ? n - first : chunk, C(0),
        [=](std::int64_t i) {
          C const d = static_cast<C>(p[i]) - static_cast<C>(q[i]);
          return d * d;
        },
        sum_op{});
    partial[b.id] = sum;
  }
};

struct squared_difference {
  template <class C>
  NEAP_HD C operator()(C x, C y) const {
    return (x - y) * (x - y);
  }
};
struct squared_error_slope {
  double scale;
  template <class C>
  NEAP_HD C operator()(C g, C x, C y) const {
    return g * static_cast<C>(scale) * (x - y);
  }
};

}  // namespace detail

/// Bytes of workspace of mse for operands of this type.
inline bytes_t mse_workspace(tensor_type const& x) {
  return checked_mul(x.count() / detail::squared_error_chunks<float>::chunk + 1, 8);
}

/// loss = (x - y)^2: elementwise, or its mean or sum. For mean and sum x and y are contiguous and of one floating type.
template <class Backend>
void mse_forward(Backend& b, tensor_ref const& loss, tensor_ref const& x, tensor_ref const& y, loss_reduction how,
                 void* workspace) {
  if (how == loss_reduction::none) return map(b, detail::squared_difference{}, loss, x, y);
  with_floating(x.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    std::int64_t const n = x.count();
    detail::squared_error_chunks<T> const kernel{detail::vector_of<T const>(x, n, "mse"),
                                                 detail::vector_of<T const>(y, n, "mse"), static_cast<C*>(workspace),
                                                 n};
    std::int64_t const blocks = (n + kernel.chunk - 1) / kernel.chunk;
    b.launch(blocks, kernel, kernel.chunk);
    // The mean is over the elements, not the chunks.
    T* const out = detail::vector_of<T>(loss, 1, "mse");
    b.launch(1, detail::sum_losses<C, C>{kernel.partial, nullptr, kernel.partial, nullptr, blocks, 0, false}, blocks);
    C const divisor = how == loss_reduction::mean ? static_cast<C>(n) : C(1);
    C const* const sum = kernel.partial;
    b.elementwise(1, [=](std::int64_t) { *out = detail::convert<T>(*sum / divisor); });
  });
}

/// dx = 2 (x - y) * dloss, over the number of elements if the loss is a mean; dloss is one number, or one an element.
/// The gradient to y is the negative: swap x and y. dx may be x or y.
template <class Backend>
void mse_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dloss, tensor_ref const& x, tensor_ref const& y,
                  loss_reduction how) {
  double const scale = how == loss_reduction::mean ? 2.0 / static_cast<double>(x.count()) : 2.0;
  map(b, detail::squared_error_slope{scale}, dx, dloss, x, y);
}

}  // namespace neap::inline v0
