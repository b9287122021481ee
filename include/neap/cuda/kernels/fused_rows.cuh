// Functions of rows and channels with programs beside them (op::fused_rows) on a GPU. Norms and their gradients between
// additions, which are what training steps of transformers have, are one launch: the norm's own kernel, and the additions
// on its rows while they are in the cache. So are norms of channels between chains (fused_channels.cuh). Anything else is
// launched one after the other, the programs as op::fused. Both give the same bits, and which of them it is depends on
// types, extents and layouts alone.
#pragma once

#include <neap/cuda/kernels/fused.cuh>
#include <neap/cuda/kernels/fused_channels.cuh>
#include <neap/ir/operators/kernels/fused_rows.hpp>

#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

namespace detail {

/// What is added to rows: a + b -> sum; nothing where there is no sum.
struct row_sum {
  row_layout a, b, sum;
};

/// A kernel of rows between two sums.
template <class K>
struct rows_between_sums {
  using element = typename K::element;
  using C = compute_t<element>;
  K kernel;
  row_sum before, after;
  std::int64_t rows, columns, at_once;  // at_once: how many rows a block of the kernel does

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * at_once, end = first + at_once < rows ? first + at_once : rows;
    if (before.sum) {
      add(b, before, first, end);
      b.sync();
    }
    kernel(b);
    if (after.sum) {
      b.sync();
      add(b, after, first, end);
    }
  }

 private:
  template <class Block>
  NEAP_HD NEAP_INLINE void add(Block& b, row_sum const& s, std::int64_t first, std::int64_t end) const {
    for (std::int64_t row = first; row < end; ++row)
      b.transform(
          columns, row_at<element>(s.sum, row),
          [](element x, element y) { return convert<element>(static_cast<C>(x) + static_cast<C>(y)); },
          row_at<element const>(s.a, row), row_at<element const>(s.b, row));
  }
};

template <class K>
inline constexpr bool is_norm_kernel = false;
template <class T>
inline constexpr bool is_norm_kernel<norm_rows<T>> = true;
template <class T>
inline constexpr bool is_norm_kernel<norm_backward_rows<T>> = true;

/// A backend for the kernels of norms: puts their sums around them.
template <device_backend B>
class device_between_sums {
 public:
  static constexpr bool runs_on_device = true;
  /// `rows`, `columns`: of x.
  device_between_sums(B& b, row_sum const& before, row_sum const& after, std::int64_t rows, std::int64_t columns)
      : b_(b),
        before_(before),
        after_(after),
        rows_(rows),
        columns_(columns) {}
  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t work) {
    if constexpr (is_norm_kernel<K>)
      b_.launch(blocks,
                rows_between_sums<K>{kernel, before_, after_, rows_, columns_, op::detail::rows_of_block(kernel)},
                work);
    else b_.launch(blocks, kernel, work);
  }

 private:
  B& b_;
  row_sum before_, after_;
  std::int64_t rows_, columns_;
};

/// Whether a program is the sum of two rows such as x, which are `in`.
inline bool is_sum_of_rows(op::fused const& p, std::span<tensor_ref const> in, tensor_ref const& x) {
  if (p.step_count() != 1 || p.step(0).row != standard_row<op::add> || in.size() != 2) return false;
  bool rows = true;
  for (auto const& a : in)
    rows = rows && a.element == x.element && a.dims == x.dims && (a.dims.back() <= 1 || a.strides.back() == 1);
  return rows;
}
inline row_sum sum_of_rows(kernel_arguments const& a) {
  auto const t = a.out[0].element;
  return {rows_of(a.in[0], t, "fused_rows"), rows_of(a.in[1], t, "fused_rows"), rows_of(a.out[0], t, "fused_rows")};
}

}  // namespace detail

/// Whether the operator is one launch of rows or channels on a device.
inline bool is_one_launch(op::fused_rows const& op, kernel_arguments const& a) {
  op::detail::fused_rows_operands const all(op, a);
  if (op.is_of_channels()) return detail::chains_beside_channels(op, all, a).has_value();
  return op.statistics() > 0 && (!op.has_before() || detail::is_sum_of_rows(op.before(), all.before().in, a.out[0])) &&
         (!op.has_after() || detail::is_sum_of_rows(op.after(), all.after(op, a).in, a.out[0]));
}

namespace op {

template <device_backend B>
void run(B& b, fused_rows const& op, kernel_arguments const& a) {
  detail::fused_rows_operands const all(op, a);
  auto const before = all.before(), after = all.after(op, a), function = all.function(a.workspace);
  if (!is_one_launch(op, a)) {
    if (op.has_before()) run(b, op.before(), before);
    op.with_function([&](auto const& f) { run(b, f, function); });
    if (op.has_after()) run(b, op.after(), after);
    return;
  }
  if (auto const chains = neap::detail::chains_beside_channels(op, all, a)) {
    neap::detail::device_between_chains<B> between(b, chains->before, chains->after);
    auto const run_norm = [&](auto const& norm) { run(between, norm, function); };
    switch (op.follows()) {
      case row_function::batch_norm: return run_norm(batch_norm{op.eps});
      case row_function::batch_norm_grad: return run_norm(batch_norm_grad{});
      case row_function::batch_norm_relu_grad: return run_norm(batch_norm_relu_grad{op.gives_result});
      case row_function::group_norm: return run_norm(group_norm{op.groups, op.eps});
      default: return run_norm(group_norm_grad{op.groups});
    }
  }
  neap::detail::device_between_sums<B> between(
      b, op.has_before() ? neap::detail::sum_of_rows(before) : neap::detail::row_sum{},
      op.has_after() ? neap::detail::sum_of_rows(after) : neap::detail::row_sum{},
      neap::detail::row_count(a.out[0].dims), a.out[0].dims.back());
  auto const run_norm = [&](auto const& norm) { run(between, norm, function); };
  switch (op.follows()) {
    case row_function::rms_norm: return run_norm(rms_norm{op.eps});
    case row_function::layer_norm_grad: return run_norm(layer_norm_grad{});
    case row_function::rms_norm_grad: return run_norm(rms_norm_grad{});
    default: return run_norm(layer_norm{op.eps});
  }
}

}  // namespace op

}}  // namespace neap::v0
