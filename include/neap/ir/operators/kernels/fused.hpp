// The kernels of <neap/ir/operators/fused.hpp>.
#pragma once

#include <neap/ir/operators/fused.hpp>

#include <neap/backend/block.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/matmul.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/ir/operators/kernels/channel_norm.hpp>
#include <neap/ir/operators/kernels/fused_blocks.hpp>
#include <neap/ir/operators/kernels/fused_terms.hpp>
#include <neap/ir/operators/kernels/row_norm.hpp>
#include <neap/ir/operators/kernels/softmax.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace neap { inline namespace v0 { namespace op {

namespace detail {

/// A backend for the kernels of functions of rows or channels: it runs the programs on the elements of a block, right
/// before and right after it.
template <class C>
class host_between_programs {
 public:
  /// `count`: of x's elements.
  host_between_programs(host_backend& b, fused_interpreter<C> const* prologue, fused_interpreter<C> const* epilogue,
                        std::int64_t count)
      : b_(b),
        prologue_(prologue),
        epilogue_(epilogue),
        count_(count) {}

  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t work) {
    if constexpr (has_element_ranges<K>) {
      std::int64_t const elements =
          std::max<std::int64_t>(1, count_ / std::max<std::int64_t>(1, blocks));  // of a block
      b_.parallel_for(blocks, std::max<std::int64_t>(1, neap::detail::map_grain / elements),
                      [&](std::int64_t begin, std::int64_t end, int worker) {
                        if (prologue_) each_range_of_blocks(kernel, begin, end, *prologue_);
                        for (std::int64_t id = begin; id < end; ++id) run_block(kernel, id, worker);
                        if (epilogue_) each_range_of_blocks(kernel, begin, end, *epilogue_);
                      });
    } else {
      b_.launch(blocks, kernel, work);
    }
  }

 private:
  /// By itself, as a launch has it: compiled into another loop its bits might be others.
  template <class K>
  [[gnu::noinline]] static void run_block(K const& kernel, std::int64_t id, int worker) {
    std::conditional_t<neap::detail::computes_elsewhere<K>, host_block_in_order, host_block> b;
    b.id = id, b.worker = worker;
    kernel(b);
  }

  host_backend& b_;
  fused_interpreter<C> const *prologue_, *epilogue_;
  std::int64_t count_;
};

template <class C>
void run_norm_between(host_backend& b, fused const& op, kernel_arguments const& a) {
  fused_operands const all(op, a);
  std::optional<fused_interpreter<C>> prologue, epilogue;
  if (!op.prologue.empty()) prologue.emplace(op.prologue, all.prologue());
  if (!op.epilogue.empty()) epilogue.emplace(op.epilogue, all.epilogue(op, a));
  host_between_programs<C> between(b, prologue ? &*prologue : nullptr, epilogue ? &*epilogue : nullptr,
                                   a.out[0].count());
  op.with_anchor<anchor::layer_norm, anchor::matmul>([&](auto const& f) { run(between, f, all.middle(a.workspace)); });
}

template <class C>
void run_reduction_of_program(host_backend& b, fused const& op, kernel_arguments const& a) {
  auto const t = op.x_type(a.in);
  tensor_ref const x{nullptr, t.element, t.dims, dense_strides(t.dims)};
  auto const reduces = op.reduces(t.dims);
  auto const p = neap::detail::plan_reduction(x, reduces.data());
  neap::detail::reduce_by_kind<C>(b, op.kind(), p, program_terms<C>(op, a, p, x), a.out[0], a.workspace);
}

/// The steps in chunks that stay in the first cache: where what the activation reads is kept, it is written in one and the
/// activation reads it there.
template <class C>
void run_epilogue(host_backend& b, fused const& op, kernel_arguments const& a) {
  fused_operands const operands(op, a);
  auto const epilogue = operands.epilogue(op, a);
  auto const count = a.out[0].count();
  if (!op.keeps_step)
    return b.parallel_for(count, neap::detail::map_grain, fused_interpreter<C>(op.epilogue, epilogue));
  auto const kept = a.out.subspan(1, 1);
  fused_interpreter<C> const first(op.first_step(), {epilogue.in, kept}),
      second(op.second_step(), {kept, a.out.first(1)});
  b.parallel_for(count, neap::detail::map_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += neap::detail::map_chunk) {
      auto const until = std::min(end, i + neap::detail::map_chunk);
      first(i, until);
      second(i, until);
    }
  });
}

template <class C>
void run_product(host_backend& b, fused const& op, kernel_arguments const& a) {
  neap::matmul(b, a.in[0], a.in[1], a.out[op.keeps_step ? 1 : 0], {op.transpose_a, op.transpose_b, false}, a.workspace);
  if (!op.epilogue.empty()) run_epilogue<C>(b, op, a);
  if (op.sums != product_sums::none)
    neap::sum_to_shape(b, a.out.back(), op.summed_of<tensor_ref>(a.in, a.out), a.workspace);
}

template <class C>
void run_fused(host_backend& b, fused const& op, kernel_arguments const& a) {
  if (op.is_product()) run_product<C>(b, op, a);
  else if (op.is_reduction()) run_reduction_of_program<C>(b, op, a);
  else if (op.has_anchor()) run_norm_between<C>(b, op, a);
  else b.parallel_for(a.out[0].count(), neap::detail::map_grain, fused_interpreter<C>(op.prologue, a));
}

/// Whether a program computes in f64: one of its operands or results is of that type.
inline bool is_wide(kernel_arguments const& a) {
  bool wide = a.out[0].element == dtype::f64;
  for (auto const& x : a.in) wide = wide || x.element == dtype::f64;
  return wide;
}

}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused const& op, kernel_arguments const& a) {
  if (detail::is_wide(a)) detail::run_fused<double>(b, op, a);
  else detail::run_fused<float>(b, op, a);
}

}}}  // namespace neap::v0::op
