// Attention on a GPU by a thread block for each row of queries (forward, dq) or of keys (dk, dv), for what the tiles of
// attention.cuh do not hold: f64, and heads of any size.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/core/element.hpp>
#include <neap/core/math.hpp>
#include <neap/cuda/kernels/attention_problem.cuh>

#if defined(__CUDACC__)
#include <neap/cuda/block.cuh>
#endif

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

inline constexpr int attention_row_threads = 128;

#if defined(__CUDACC__)
template <class T>
__device__ compute_t<T> attention_dot(T const* x, T const* y, std::int64_t n) {
  compute_t<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<compute_t<T>>(x[i]) * static_cast<compute_t<T>>(y[i]);
  return sum;
}
#endif

/// y and lse of one row of queries: chunks of keys, a thread a key for the scores, a thread some columns for the result.
template <class T>
struct attention_forward_by_rows {
  using C = compute_t<T>;
  static constexpr int threads = attention_row_threads, blocks_at_once = 2, columns_of_thread = 4,
                       columns_at_once = threads * columns_of_thread, room_bytes = 512,
                       shared_bytes = room_bytes + threads * int{sizeof(C)};
  attention_problem p;
  attention_rows<T const> q, k, v;
  attention_rows<T> y;
  attention_sums<C> lse;

  std::int64_t blocks() const { return p.batch * p.heads * p.queries; }

#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const {
#if defined(__CUDA_ARCH__)
    cuda_block<threads> const block(shared);
    C* const weights = reinterpret_cast<C*>(shared + room_bytes);
    int const thread = static_cast<int>(threadIdx.x);
    std::int64_t const r = blockIdx.x % p.queries, head = blockIdx.x / p.queries;
    std::int64_t const b = head / p.heads, h = head % p.heads, kh = h / (p.heads / p.key_heads);
    std::int64_t const seen = p.causal ? min(p.keys, r + 1) : p.keys;
    C const scale = static_cast<C>(p.precise_scale), nothing = -static_cast<C>(INFINITY);
    T const* const query = q.at(b, h, r);
    std::int64_t column = thread;
    do {
      C most = nothing, sum = 0, out[columns_of_thread] = {};
      for (std::int64_t key = 0; key < seen; key += threads) {
        std::int64_t const n = min(std::int64_t{threads}, seen - key);
        C const score = thread < n ? scale * attention_dot(query, k.at(b, kh, key + thread), p.depth) : nothing;
        C const now = max(most, block.reduce(score, max_op{}));
        C const weight = thread < n ? math::exp(score - now) : C(0);
        weights[thread] = weight;
        C const correction = math::exp(most - now);
        sum = sum * correction + block.reduce(weight, sum_op{});  // a barrier: the weights are there
        most = now;
#pragma unroll
        for (int c = 0; c < columns_of_thread; ++c) {
          std::int64_t const at = column + c * threads;
          if (at >= p.value_depth) break;
          C total = out[c] * correction;
          for (std::int64_t i = 0; i < n; ++i) total += weights[i] * static_cast<C>(v.at(b, kh, key + i)[at]);
          out[c] = total;
        }
        __syncthreads();  // the weights are used
      }
#pragma unroll
      for (int c = 0; c < columns_of_thread; ++c)
        if (column + c * threads < p.value_depth) y.at(b, h, r)[column + c * threads] = T(out[c] / sum);
      if (lse.data && column == 0) *lse.at(b, h, r) = most + log(sum);
      column += columns_at_once;
    } while (column - thread < p.value_depth);
#endif
  }
#endif
};

/// dq of one row of queries, or dk and dv of one row of keys (OfKeys).
template <class T, bool OfKeys>
struct attention_backward_by_rows {
  using C = compute_t<T>;
  static constexpr int threads = attention_row_threads, blocks_at_once = 2, columns_of_thread = 4,
                       columns_at_once = threads * columns_of_thread, shared_bytes = 2 * threads * int{sizeof(C)};
  attention_problem p;
  attention_rows<T const> q, k, v, dy;
  attention_row_numbers<C> const* numbers;
  attention_rows<T> dq, dk, dv;

  std::int64_t blocks() const { return p.batch * (OfKeys ? p.key_heads * p.keys : p.heads * p.queries); }

#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const {
#if defined(__CUDA_ARCH__)
    C *const weights = reinterpret_cast<C*>(shared), *const slopes = weights + threads;
    int const thread = static_cast<int>(threadIdx.x);
    std::int64_t const rows = OfKeys ? p.keys : p.queries, heads = OfKeys ? p.key_heads : p.heads;
    std::int64_t const r = blockIdx.x % rows, h = blockIdx.x / rows % heads, b = blockIdx.x / rows / heads;
    std::int64_t const group = p.heads / p.key_heads, max_columns = OfKeys ? max(p.depth, p.value_depth) : p.depth;
    C const scale = static_cast<C>(p.precise_scale);
    std::int64_t const begin = OfKeys && p.causal ? r : 0, end = OfKeys     ? p.queries
                                                                 : p.causal ? min(p.keys, r + 1)
                                                                            : p.keys;
    for (std::int64_t column = thread; column - thread < max_columns; column += columns_at_once) {
      C first[columns_of_thread] = {}, second[columns_of_thread] = {};
      for (std::int64_t qh = OfKeys ? h * group : h; qh < (OfKeys ? (h + 1) * group : h + 1); ++qh)
        for (std::int64_t other = begin; other < end; other += threads) {
          std::int64_t const n = min(std::int64_t{threads}, end - other), kh = qh / group;
          if (thread < n) {
            std::int64_t const query = OfKeys ? other + thread : r, key = OfKeys ? r : other + thread;
            auto const of = numbers[(b * p.heads + qh) * p.queries + query];
            C const score = attention_dot(q.at(b, qh, query), k.at(b, kh, key), p.depth) * scale;
            C const weight = math::exp(score - of.lse);
            weights[thread] = weight;
            slopes[thread] =
                weight * (attention_dot(dy.at(b, qh, query), v.at(b, kh, key), p.value_depth) - of.delta) * scale;
          }
          __syncthreads();
#pragma unroll
          for (int c = 0; c < columns_of_thread; ++c) {
            std::int64_t const at = column + c * threads;
            if (at < p.depth)
              for (std::int64_t i = 0; i < n; ++i)
                first[c] += slopes[i] * static_cast<C>((OfKeys ? q.at(b, qh, other + i) : k.at(b, kh, other + i))[at]);
            if (OfKeys && at < p.value_depth)
              for (std::int64_t i = 0; i < n; ++i)
                second[c] += weights[i] * static_cast<C>(dy.at(b, qh, other + i)[at]);
          }
          __syncthreads();
        }
#pragma unroll
      for (int c = 0; c < columns_of_thread; ++c) {
        std::int64_t const at = column + c * threads;
        if (at < p.depth) (OfKeys ? dk : dq).at(b, h, r)[at] = T(first[c]);
        if (OfKeys && at < p.value_depth) dv.at(b, h, r)[at] = T(second[c]);
      }
    }
#endif
  }
#endif
};

}}}  // namespace neap::v0::detail
