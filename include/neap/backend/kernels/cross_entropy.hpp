// Losses: cross-entropy over logits and class numbers, and the mean squared error. Cross-entropy saves one number a row,
// not the probabilities: the logarithm of the sum of exponentials, taken relative to the row's largest logit. The largest
// logit is found again by the backward pass: added to the logarithm it would take its digits where all logits are large.
// The backward pass writes over the logits on request.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/kernel_options.hpp>
#include <neap/core/math.hpp>
#include <neap/core/units.hpp>

#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

namespace detail {

template <class T>
struct cross_entropy_rows {
  using element = T;
  using C = compute_t<T>;
  row_layout logit_rows;
  std::int64_t const* target;
  void* loss;     // [rows] of what is computed in
  void* log_sum;  // the same, may be null
  std::int64_t columns, ignore_index;
  double smoothing;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(logit_rows, b.id);
    C const top = b.reduce_each(
        columns, lowest_of<C>, [=](std::int64_t i) { return static_cast<C>(x[i]); }, max_op{});
    C const sum = b.reduce_each(
        columns, C(0), [=](std::int64_t i) { return math::exp(static_cast<C>(x[i]) - top); }, sum_op{});
    C const log_of_sum = math::log(sum);
    std::int64_t const t = target[b.id];
    C *const saved = log_sum ? static_cast<C*>(log_sum) + b.id : nullptr, *const to = static_cast<C*>(loss) + b.id;
    if (t == ignore_index) {
      b.once([=] {
        if (saved) *saved = log_of_sum;
        *to = C(0);
      });
      return;
    }
    C expected = static_cast<C>(x[t]) - top;
    if (C const s = static_cast<C>(smoothing); s != C(0)) {
      C const all = b.reduce_each(
          columns, C(0), [=](std::int64_t i) { return static_cast<C>(x[i]) - top; }, sum_op{});
      expected = (C(1) - s) * expected + s / static_cast<C>(columns) * all;
    }
    b.once([=] {
      if (saved) *saved = log_of_sum;
      *to = log_of_sum - expected;
    });
  }
};

/// The sum of the rows' losses, and how many rows count; one block. C is what is computed in.
template <class C>
struct sum_losses {
  void const* loss;
  std::int64_t const* target;  // may be null: all count
  void* out;                   // of the floating type `out_type`; may be null
  dtype out_type;
  void* counted;                             // may be null
  std::int64_t rows, targets, ignore_index;  // how many there are of losses, and of targets
  double divisor;                            // of the sum; 0: the number of targets that count

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    C const* const l = static_cast<C const*>(loss);
    std::int64_t const* const t = target;
    std::int64_t const ignored = ignore_index;
    C const n = t ? static_cast<C>(b.reduce_each(
                        targets, std::int64_t{0},
                        [=](std::int64_t i) { return static_cast<std::int64_t>(t[i] != ignored); }, sum_op{}))
                  : static_cast<C>(rows);
    sum_losses const k = *this;
    b.once([=] {
      if (k.counted) *static_cast<C*>(k.counted) = n;
    });
    if (!out) return;
    C const sum = b.reduce_each(
        rows, C(0), [=](std::int64_t i) { return l[i]; }, sum_op{});
    C const result = sum / (divisor == 0 ? n : static_cast<C>(divisor));
    b.once([=] {
      switch (k.out_type) {
        case dtype::f64: *static_cast<double*>(k.out) = convert<double>(result); break;
        case dtype::f32: *static_cast<float*>(k.out) = convert<float>(result); break;
        case dtype::bf16: *static_cast<bf16*>(k.out) = convert<bf16>(result); break;
        default: *static_cast<f16*>(k.out) = convert<f16>(result);
      }
    });
  }
};
template <class Backend>
void run_sum_losses(Backend& b, dtype computed, void const* loss, std::int64_t const* target, void* out, dtype out_type,
                    void* counted, std::int64_t rows, std::int64_t targets, std::int64_t ignore_index, double divisor) {
  auto const run = [&](auto tag) {
    b.launch(1,
             sum_losses<typename decltype(tag)::type>{loss, target, out, out_type, counted, rows, targets, ignore_index,
                                                      divisor},
             rows);
  };
  if (computed == dtype::f64) run(type_tag<double>{});
  else run(type_tag<float>{});
}

template <class T>
struct cross_entropy_backward_rows {
  using element = T;
  using C = compute_t<T>;
  row_layout dlogit_rows, logit_rows;
  std::int64_t const* target;
  void const* log_sum;  // of what is computed in
  void const* dloss;    // of what is computed in: one, or one a row
  void const* counted;  // of what is computed in; null unless the loss is a mean
  std::int64_t columns, ignore_index;
  bool each_row;
  double smoothing;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(logit_rows, b.id);
    T* const dx = row_at<T>(dlogit_rows, b.id);
    std::int64_t const t = target[b.id];
    C const log_of_sum = static_cast<C const*>(log_sum)[b.id];
    C g = static_cast<C const*>(dloss)[each_row ? b.id : 0];
    if (counted) g /= *static_cast<C const*>(counted);
    if (t == ignore_index) {
      b.each(columns, [=](std::int64_t i) { dx[i] = convert<T>(C(0)); });
      return;
    }
    C const top = b.reduce_each(
        columns, lowest_of<C>, [=](std::int64_t i) { return static_cast<C>(x[i]); }, max_op{});
    C const at_target = static_cast<C>(x[t]) - top, of_target = C(1) - static_cast<C>(smoothing),
            of_each = static_cast<C>(smoothing) / static_cast<C>(columns);
    b.sync();
    b.each(columns, [=](std::int64_t i) {
      dx[i] = convert<T>((math::exp(static_cast<C>(x[i]) - top - log_of_sum) - of_each) * g);
    });
    b.sync();
    b.once([=] { dx[t] = convert<T>((math::exp(at_target - log_of_sum) - of_each - of_target) * g); });
  }
};

inline void check_targets(std::int64_t const* target, std::int64_t rows, std::int64_t classes, std::int64_t ignored) {
  for (std::int64_t i = 0; i < rows; ++i)
    if (target[i] != ignored && (target[i] < 0 || target[i] >= classes))
      throw_error({"cross_entropy: target ", target[i], " at row ", i, " is not a class below ", classes});
}

}  // namespace detail

/// Bytes of workspace of cross_entropy and of cross_entropy_backward for logits of this type.
inline bytes_t cross_entropy_workspace(tensor_type const& logits) {
  std::int64_t const rows = detail::row_count(logits.dims);
  return checked_mul(checked_add(rows, 8), 8);
}

/// loss = logsumexp(row) - row[target], over logits [..., classes] and i64 targets [...], in f32 (f64 for f64): one a row
/// (none), or the mean or sum over the rows whose target is not `ignore_index` (the mean over no rows is NaN). With a
/// smoothing s the target is 1 - s of its class and s / classes of each. Saves log_sum [rows] = logsumexp(row) - max(row)
/// in f32 (f64 for f64) if it has data. `of_mean`, if it has data: all the targets that a mean is over,
/// where these rows are a part of more. Throws neap::error if a target is no class, where the backend's
/// memory is the host's.
template <class Backend>
void cross_entropy_forward(Backend& b, tensor_ref const& loss, tensor_ref const& log_sum, tensor_ref const& logits,
                           tensor_ref const& target, loss_reduction how, std::int64_t ignore_index, void* workspace,
                           double smoothing = 0, tensor_ref const& of_mean = {}) {
  char const* const name = "cross_entropy";
  dtype const element = logits.element, c = computed_in(element);
  std::int64_t const columns = logits.extent(-1), rows = detail::row_count(logits.dims);
  auto const* const t = detail::vector_of<std::int64_t const>(target, rows, name);
  if constexpr (Backend::addresses_host_memory) detail::check_targets(t, rows, columns, ignore_index);
  detail::row_layout const from = detail::rows_of(logits, element, name);
  void* const losses = how == loss_reduction::none ? detail::vector_of(loss, c, rows, name) : workspace;
  void* const saved = detail::vector_of(log_sum, c, rows, name);
  with_floating(element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    b.launch(rows, detail::cross_entropy_rows<T>{from, t, losses, saved, columns, ignore_index, smoothing}, columns);
  });
  if (how == loss_reduction::none) return;
  std::int64_t const all = of_mean.data ? of_mean.count() : rows;
  auto const* const counts = of_mean.data ? detail::vector_of<std::int64_t const>(of_mean, all, name) : t;
  detail::run_sum_losses(b, c, losses, counts, detail::vector_of(loss, c, 1, name), c, nullptr, rows, all, ignore_index,
                         how == loss_reduction::mean ? 0 : 1);
}

/// dlogits = (softmax(logits) - [class is target], smoothed) * dloss, 0 in ignored rows; dloss is one number, or one a row for
/// loss_reduction::none, in f32 (f64 for f64). dlogits may be logits. `of_mean` as in cross_entropy_forward.
template <class Backend>
void cross_entropy_backward(Backend& b, tensor_ref const& dlogits, tensor_ref const& dloss, tensor_ref const& logits,
                            tensor_ref const& log_sum, tensor_ref const& target, loss_reduction how,
                            std::int64_t ignore_index, void* workspace, double smoothing = 0,
                            tensor_ref const& of_mean = {}) {
  detail::expect_same_shape(dlogits, logits, "cross_entropy_backward");
  char const* const name = "cross_entropy_backward";
  dtype const element = logits.element, c = computed_in(element);
  std::int64_t const columns = logits.extent(-1), rows = detail::row_count(logits.dims);
  auto const* const t = detail::vector_of<std::int64_t const>(target, rows, name);
  if constexpr (Backend::addresses_host_memory) detail::check_targets(t, rows, columns, ignore_index);
  void* const counted = how == loss_reduction::mean ? workspace : nullptr;
  std::int64_t const all = of_mean.data ? of_mean.count() : rows;
  auto const* const counts = of_mean.data ? detail::vector_of<std::int64_t const>(of_mean, all, name) : t;
  if (counted) detail::run_sum_losses(b, c, nullptr, counts, nullptr, c, counted, rows, all, ignore_index, 1);
  bool const each_row = how == loss_reduction::none;
  detail::row_layout const to = detail::rows_of(dlogits, element, name);
  detail::row_layout const from = detail::rows_of(logits, element, name);
  void const* const saved = detail::vector_of(log_sum, c, rows, name);
  void const* const g = detail::vector_of(dloss, c, each_row ? rows : 1, name);
  with_floating(element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    b.launch(rows,
             detail::cross_entropy_backward_rows<T>{to, from, t, saved, g, counted, columns, ignore_index, each_row,
                                                    smoothing},
             columns);
  });
}

namespace detail {

/// One block a chunk of the elements: the chunk's sum of squared differences.
template <class T>
struct squared_error_chunks {
  using element = T;
  using C = compute_t<T>;
  static constexpr std::int64_t chunk = 16384;
  void const *x, *y;
  void* partial;  // of what is computed in
  std::int64_t n;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk;
    T const *const p = static_cast<T const*>(x) + first, *const q = static_cast<T const*>(y) + first;
    C const sum = b.reduce_each(
        n - first < chunk ? n - first : chunk, C(0),
        [=](std::int64_t i) {
          C const d = static_cast<C>(p[i]) - static_cast<C>(q[i]);
          return d * d;
        },
        sum_op{});
    C* const to = static_cast<C*>(partial) + b.id;
    b.once([=] { *to = sum; });
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
  dtype const element = x.element, c = computed_in(element);
  std::int64_t const n = x.count();
  void const *const p = detail::vector_of(x, element, n, "mse"), *const q = detail::vector_of(y, element, n, "mse");
  constexpr std::int64_t chunk = detail::squared_error_chunks<float>::chunk;
  std::int64_t const blocks = (n + chunk - 1) / chunk;
  with_floating(element, [&](auto tag) {
    b.launch(blocks, detail::squared_error_chunks<typename decltype(tag)::type>{p, q, workspace, n}, chunk);
  });
  // The mean is over the elements, not the chunks.
  detail::run_sum_losses(b, c, workspace, nullptr, detail::vector_of(loss, element, 1, "mse"), element, nullptr, blocks,
                         0, 0, how == loss_reduction::mean ? static_cast<double>(n) : 1);
}

/// dx = 2 (x - y) * dloss, over the number of elements if the loss is a mean; dloss is one number, or one an element.
/// The gradient to y is the negative: swap x and y. dx may be x or y. `of_mean`: how many elements the mean is over where
/// these are a part of more.
template <class Backend>
void mse_backward(Backend& b, tensor_ref const& dx, tensor_ref const& dloss, tensor_ref const& x, tensor_ref const& y,
                  loss_reduction how, std::int64_t of_mean = 0) {
  double const n = static_cast<double>(of_mean > 0 ? of_mean : x.count());
  double const scale = how == loss_reduction::mean ? 2.0 / n : 2.0;
  map(b, detail::squared_error_slope{scale}, dx, dloss, x, y);
}

}}  // namespace neap::v0
