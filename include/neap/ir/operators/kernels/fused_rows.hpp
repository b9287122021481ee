// The kernels of <neap/ir/operators/fused_rows.hpp>.
#pragma once

#include <neap/ir/operators/fused_rows.hpp>

#include <neap/backend/block.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/ir/operators/kernels/channel_blocks.hpp>
#include <neap/ir/operators/kernels/channel_norm.hpp>
#include <neap/ir/operators/kernels/fused.hpp>
#include <neap/ir/operators/kernels/row_norm.hpp>
#include <neap/ir/operators/kernels/softmax.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace neap { inline namespace v0 { namespace op {

namespace detail {

/// How many rows one block of a kernel of rows does; 0: its blocks are no rows (they add up what groups have given).
template <class K>
std::int64_t rows_of_block(K const&) {
  return 1;
}
template <class T>
std::int64_t rows_of_block(neap::detail::norm_backward_rows<T> const& k) {
  return k.o.group;
}
template <class T>
std::int64_t rows_of_block(neap::detail::add_groups<T> const&) {
  return 0;
}

/// A backend for the kernels of functions of rows or channels: it runs the programs on the elements of a block, right
/// before and right after it.
template <class C>
class host_between_programs {
 public:
  /// `count`, `columns`: of x.
  host_between_programs(host_backend& b, fused_run<C> const* before, fused_run<C> const* after, std::int64_t count,
                        std::int64_t columns)
      : b_(b),
        before_(before),
        after_(after),
        count_(count),
        columns_(columns) {}

  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t work) {
    std::int64_t const elements = is_channel_kernel<K> ? count_ / std::max<std::int64_t>(1, blocks)
                                                       : rows_of_block(kernel) * columns_;  // of a block
    if (elements == 0) return b_.launch(blocks, kernel, work);
    b_.parallel_for(blocks, std::max<std::int64_t>(1, neap::detail::map_grain / elements),
                    [&](std::int64_t begin, std::int64_t end, int worker) {
                      auto const run_program = [&](fused_run<C> const* program) {
                        if (!program) return;
                        if constexpr (is_channel_kernel<K>) each_range_of_blocks(kernel, begin, end, *program);
                        else (*program)(begin* elements, std::min(count_, end * elements));
                      };
                      run_program(before_);
                      for (std::int64_t id = begin; id < end; ++id) run_block(kernel, id, worker);
                      run_program(after_);
                    });
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
  fused_run<C> const *before_, *after_;
  std::int64_t count_, columns_;
};

template <class C>
void run_fused_rows(host_backend& b, fused_rows const& op, kernel_arguments const& a) {
  fused_rows_operands const all(op, a);
  std::optional<fused_run<C>> before, after;
  if (op.has_before()) before.emplace(op.before(), all.before());
  if (op.has_after()) after.emplace(op.after(), all.after(op, a));
  host_between_programs<C> between(b, before ? &*before : nullptr, after ? &*after : nullptr, a.out[0].count(),
                                   a.out[0].dims.back());
  op.with_function([&](auto const& f) { run(between, f, all.function(a.workspace)); });
}

}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused_rows const& op, kernel_arguments const& a) {
  if (a.out[0].element == dtype::f64) detail::run_fused_rows<double>(b, op, a);
  else detail::run_fused_rows<float>(b, op, a);
}

}}}  // namespace neap::v0::op
