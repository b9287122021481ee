// Copies of library kernels, and of the device block, each with a fault as a parameter: what the tests of kernels must
// catch. The value `none` is the kernel without a fault; `end` counts.
#pragma once

#include <neap/backend/kernels/softmax.hpp>

#if defined(__CUDACC__)
#include <neap/cuda/block.cuh>
#endif

#include <cstdint>
#include <type_traits>
#include <utility>

namespace neap::testing {

enum class softmax_fault {
  none,
  row_off_by_one,
  sum_not_shifted,
  last_column_left_out,
  column_too_many,
  sum_of_one_thread,
  end
};
template <softmax_fault Fault>
struct planted_softmax {
  using fault = softmax_fault;
  using element = float;
  float const* x;
  float* y;
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const n = columns;
    float const* const from = x + (Fault == fault::row_off_by_one ? b.id + 1 : b.id) * n;
    float* const to = y + b.id * n;
    float const top = b.reduce_each(
        n, detail::lowest_of<float>, [=](std::int64_t i) { return from[i]; }, max_op{});
    float const shift = Fault == fault::sum_not_shifted ? 0 : top;
    float sum = 0;
    if constexpr (Fault == fault::sum_of_one_thread) {
      float* const own = &sum;
      b.each(n, [=](std::int64_t i) { *own += math::exp(from[i] - shift); });
    } else {
      sum = b.reduce_each(
          n, 0.f, [=](std::int64_t i) { return math::exp(from[i] - shift); }, sum_op{});
    }
    std::int64_t const written =
        n + (Fault == fault::column_too_many ? 1 : 0) - (Fault == fault::last_column_left_out ? 1 : 0);
    b.each(written, [=](std::int64_t i) { to[i] = math::exp(from[i] - top) / sum; });
  }
};

enum class norm_fault {
  none,
  no_barrier,
  added_by_all,
  kept_in_one_thread,
  mean_of_row_before,
  neighbour,
  early_return,
  end
};
/// y = x - mean, where the mean of a row goes through memory.
template <norm_fault Fault>
struct planted_norm {
  using fault = norm_fault;
  using element = float;
  float const* x;
  float *y, *means;  // means: zeros
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const n = columns;
    float const* const from = x + b.id * n;
    float* const to = y + b.id * n;
    float* const mean = means + b.id - (Fault == fault::mean_of_row_before ? 1 : 0);
    float const m = b.reduce_each(
                        n, 0.f, [=](std::int64_t i) { return from[i]; }, sum_op{}) /
                    static_cast<float>(n);
    if constexpr (Fault == fault::kept_in_one_thread) {
      float kept = 0;
      float* const there = &kept;
      b.once([=] { *mean += m, *there = m; });
      b.sync();
      b.each(n, [=](std::int64_t i) { to[i] = from[i] - *there; });
      return;
    }
    if constexpr (Fault == fault::neighbour) {
      b.once([=] { *mean += m; });
      b.each(n, [=](std::int64_t i) { to[i] = from[i]; });
      b.sync();
      b.each(n, [=](std::int64_t i) { to[i] += i + 1 < n ? to[i + 1] : 0; });
      return;
    }
    if constexpr (Fault == fault::added_by_all) *mean += m;
    else b.once([=] { *mean += m; });
    if constexpr (Fault == fault::early_return) {
      bool mine = false;
      bool* const owns = &mine;
      b.once([=] { *owns = true; });
      if (mine) return;
    }
    if constexpr (Fault != fault::no_barrier) b.sync();
    b.each(n, [=](std::int64_t i) { to[i] = from[i] - *mean; });
  }
};

enum class cross_entropy_fault { none, no_first_barrier, no_second_barrier, ignored_used, target_by_all, end };
/// The gradient over the logits.
template <cross_entropy_fault Fault>
struct planted_cross_entropy {
  using fault = cross_entropy_fault;
  using element = float;
  float* x;
  std::int64_t const* target;  // -100: ignored
  float const* logsumexp;
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float* const row = x + b.id * columns;
    std::int64_t const t = target[b.id];
    float const lse = logsumexp[b.id];
    if (Fault != fault::ignored_used && t == -100) {
      b.each(columns, [=](std::int64_t i) { row[i] = 0; });
      return;
    }
    float const at_target = row[t];
    if constexpr (Fault != fault::no_first_barrier) b.sync();
    b.each(columns, [=](std::int64_t i) { row[i] = math::exp(row[i] - lse); });
    if constexpr (Fault != fault::no_second_barrier) b.sync();
    if constexpr (Fault == fault::target_by_all) row[t] -= 1;
    else b.once([=] { row[t] = math::exp(at_target - lse) - 1; });
  }
};

enum class groups_fault { none, not_zeroed, rows_not_clamped, groups_overlap, mixed_loops, end };
/// A group of four rows: its part of the sums of columns.
template <groups_fault Fault>
struct planted_groups {
  using fault = groups_fault;
  using element = float;
  static constexpr std::int64_t group = 4;
  float const* x;
  float* sums;
  std::int64_t rows, columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float* const to = sums + b.id * (Fault == fault::groups_overlap ? columns - 1 : columns);
    if constexpr (Fault == fault::mixed_loops)
      b.transform(
          columns, to, [](float) { return 0.f; }, x);
    else if constexpr (Fault != fault::not_zeroed) b.each(columns, [=](std::int64_t i) { to[i] = 0; });
    std::int64_t end = (b.id + 1) * group;
    if (Fault != fault::rows_not_clamped && end > rows) end = rows;
    for (std::int64_t r = b.id * group; r < end; ++r) {
      float const* const from = x + r * columns;
      b.each(columns, [=](std::int64_t i) { to[i] += from[i]; });
    }
  }
};

enum class positions_fault { none, no_barrier, counted_by_all, end_not_zeroed, end };
/// How often each number occurs, and before them a zero.
template <positions_fault Fault>
struct planted_positions {
  using fault = positions_fault;
  std::int64_t const* index;
  std::int64_t n, rows;
  std::int64_t* counts;  // [rows + 1]
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t* const to = counts;
    b.each(rows + (Fault == fault::end_not_zeroed ? 0 : 1), [=](std::int64_t r) { to[r] = 0; });
    if constexpr (Fault != fault::no_barrier) b.sync();
    planted_positions const s = *this;
    auto const count = [s] {
      for (std::int64_t i = 0; i < s.n; ++i) ++s.counts[s.index[i] + 1];
    };
    if constexpr (Fault == fault::counted_by_all) count();
    else b.once(count);
  }
};

enum class scatter_fault { none, every_thread, end };
template <scatter_fault Fault>
struct planted_scatter {
  using fault = scatter_fault;
  using element = float;
  float const* from;
  std::int64_t const* index;
  float* to;  // [rows, columns], zeros
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const n = columns, start = b.id * n;
    planted_scatter const s = *this;
    auto const add = [=](std::int64_t i) { s.to[start + s.index[start + i]] += s.from[start + i]; };
    if constexpr (Fault == fault::every_thread) b.each(n, add);
    else
      b.once([=] {
        for (std::int64_t i = 0; i < n; ++i) add(i);
      });
  }
};

enum class parts_fault { none, parts_meet, neighbour, end };
/// A copy whose rows several thread blocks share.
template <parts_fault Fault>
struct planted_parts {
  using fault = parts_fault;
  using element = float;
  static constexpr bool splits = true;
  float const* from;
  float* to;  // zeros
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float const* const x = from + b.id * columns;
    float* const y = to + b.id * columns;
    std::int64_t const n = columns;
    b.each(n, [=](std::int64_t i) {
      if constexpr (Fault == fault::parts_meet) y[i % 256] += x[i];
      else if constexpr (Fault == fault::neighbour) y[i] = x[i] + (i > 0 ? y[i - 1] : 0);
      else y[i] = x[i];
    });
  }
};

enum class block_fault {
  none,
  no_barrier_after_reduction,
  shared_slot_reused,
  alignment_of_output_only,
  tail_left_out,
  tail_from_start,
  last_pack_too_long,
  loop_from_second_thread,
  stride_too_small,
  sum_of_first_warp,
  barrier_within_loop,
  first_warp_left_out,
  end
};
enum class warp_fault { none, no_broadcast, stride_of_block, thread_for_lane, first_lanes_only, end };

#if defined(__CUDACC__)

/// cuda_block with a fault.
template <block_fault Fault>
struct planted_block {
  static constexpr int threads = cuda_block_threads;
  static constexpr int stride = Fault == block_fault::stride_too_small ? threads - 1 : threads;
  template <class T, int N>
  using slots = detail::cuda_slots<T, N, threads>;
  std::int64_t id = 0;
  int worker = 0;
  char* room;

  __device__ static std::int64_t first() {
    return static_cast<std::int64_t>(threadIdx.x) + (Fault == block_fault::loop_from_second_thread ? 1 : 0);
  }
  template <class F>
  NEAP_HD void each(std::int64_t n, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = first(); i < n; i += stride) {
      f(i);
      if constexpr (Fault == block_fault::barrier_within_loop) __syncthreads();
    }
#endif
  }
  template <class F>
  NEAP_HD void once(F&& f) const {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x == 0) f();
#endif
  }
  NEAP_HD void sync() const {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }
  template <class T, class Op>
  NEAP_HD T reduce(T value, Op const& op) const {
#if defined(__CUDA_ARCH__)
    constexpr int result_bytes = Fault == block_fault::shared_slot_reused ? 0 : 16;
    T* const result = reinterpret_cast<T*>(room);
    T* const of_warp = reinterpret_cast<T*>(room + result_bytes);
    for (int step = 1; step < 32; step *= 2) {
      T const other = __shfl_down_sync(0xffffffffu, value, step);
      if (threadIdx.x % 32 + step < 32) value = op(value, other);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
      T total = of_warp[Fault == block_fault::first_warp_left_out ? 1 : 0];
      constexpr int warps = Fault == block_fault::sum_of_first_warp ? 1 : threads / 32;
      for (int w = 1; w < warps; ++w)
        if (Fault != block_fault::first_warp_left_out || w > 1) total = op(total, of_warp[w]);
      *result = total;
    }
    if constexpr (Fault != block_fault::no_barrier_after_reduction) __syncthreads();
    return *result;
#else
    return value;
#endif
  }
  template <class T, class F, class Op>
  NEAP_HD T reduce_each(std::int64_t n, T init, F&& f, Op const& op) const {
#if defined(__CUDA_ARCH__)
    T part = init;
    for (std::int64_t i = first(); i < n; i += stride) part = op(part, static_cast<T>(f(i)));
    return reduce(part, op);
#else
    return init;
#endif
  }
  template <class T, class F, class... X>
  NEAP_HD void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
#if defined(__CUDA_ARCH__)
    using pack = detail::cuda_pack<T>;
    std::int64_t const packs = (n + (Fault == block_fault::last_pack_too_long ? pack::length - 1 : 0)) / pack::length;
    bool const aligned = Fault == block_fault::alignment_of_output_only ? detail::aligned_to_packs(y)
                                                                        : detail::aligned_to_packs(y, x...);
    detail::each_pack<threads>(
        static_cast<int>(threadIdx.x), packs, aligned,
        [=](std::int64_t k, detail::cuda_pack<X> const&... in) {
          for (int j = 0; j < pack::length; ++j) y[k * pack::length + j] = f(in.at[j]...);
        },
        x...);
    if constexpr (Fault == block_fault::tail_left_out) return;
    std::int64_t const done = Fault == block_fault::tail_from_start ? 0 : packs * pack::length;
    for (std::int64_t i = done + threadIdx.x; i < n; i += threads) y[i] = f(x[i]...);
#endif
  }
  template <class T, class F, class Op, class... X>
  NEAP_HD T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, X const*... x) const {
#if defined(__CUDA_ARCH__)
    return reduce(detail::reduce_by_packs<threads>(static_cast<int>(threadIdx.x), n, init, f, op, x...), op);
#else
    return init;
#endif
  }
};

/// cuda_warp with a fault, as far as the kernels on it need one.
template <warp_fault Fault>
struct planted_warp {
  static constexpr int threads = cuda_warp_threads;
  static constexpr int stride = Fault == warp_fault::stride_of_block ? cuda_block_threads : threads;
  std::int64_t id = 0;
  int worker = 0;

#if defined(__CUDA_ARCH__)
  __device__ static std::int64_t lane() {
    return Fault == warp_fault::thread_for_lane ? threadIdx.x : threadIdx.x % threads;
  }
#endif
  template <class F>
  NEAP_HD void each(std::int64_t n, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = lane(); i < n; i += stride) f(i);
#endif
  }
  template <class F>
  NEAP_HD void once(F&& f) const {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x % threads == 0) f();
#endif
  }
  NEAP_HD void sync() const {
#if defined(__CUDA_ARCH__)
    __syncwarp();
#endif
  }
  template <class T, class F, class Op>
  NEAP_HD T reduce_each(std::int64_t n, T init, F&& f, Op const& op) const {
#if defined(__CUDA_ARCH__)
    T part = init;
    for (std::int64_t i = lane(); i < n; i += stride) part = op(part, static_cast<T>(f(i)));
    if constexpr (Fault == warp_fault::first_lanes_only) {
      if (threadIdx.x % threads >= 16) return part;
    }
    for (int step = 1; step < threads; step *= 2) {
      T const other = __shfl_down_sync(0xffffffffu, part, step);
      if (threadIdx.x % threads + step < threads) part = op(part, other);
    }
    return Fault == warp_fault::no_broadcast ? part : __shfl_sync(0xffffffffu, part, 0);
#else
    return init;
#endif
  }
};

#endif

/// A kernel on a device block with a fault; on the host's as it is.
template <class K, auto Fault>
struct on_planted_block {
  using fault = std::remove_cv_t<decltype(Fault)>;
  using element = float;
  K kernel;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<Block, cuda_warp> && std::is_same_v<fault, warp_fault>) {
      planted_warp<Fault> p{b.id, b.worker};
      kernel(p);
    } else if constexpr (!std::is_same_v<Block, cuda_warp> && std::is_same_v<fault, block_fault>) {
      __shared__ alignas(16) char room[256];
      planted_block<Fault> p{b.id, b.worker, room};
      kernel(p);
    }
#else
    kernel(b);
#endif
  }
};

template <block_fault Fault>
using softmax_on_planted_block = on_planted_block<detail::softmax_rows<float, false>, Fault>;
template <block_fault Fault>
using log_softmax_on_planted_block = on_planted_block<detail::softmax_rows<float, true>, Fault>;
template <block_fault Fault>
using norm_on_planted_block = on_planted_block<planted_norm<norm_fault::none>, Fault>;
template <warp_fault Fault>
using softmax_on_planted_warp = on_planted_block<planted_softmax<softmax_fault::none>, Fault>;

/// Calls f(integral_constant<Enum, value>) for each value of an enumeration of faults.
template <class Enum, class F>
void for_each_fault(F const& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (f(std::integral_constant<Enum, static_cast<Enum>(I)>{}), ...);
  }(std::make_integer_sequence<int, static_cast<int>(Enum::end)>{});
}

}  // namespace neap::testing
