// Scaled dot-product attention on the host without the [T, T] matrix: blocks of query rows meet blocks of keys, the
// scores of one pair of blocks live in scratch, and the softmax is corrected as later keys arrive (online softmax, Milakov
// and Gimelshein 2018; the backward pass recomputes scores from the saved log of the sum, as FlashAttention does).
// Products are single-threaded BLAS calls; a query block (forward) or a key head (backward) is one task, so results do
// not depend on threads.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/gemm.hpp>
#include <neap/backend/kernels/conv2d_tiles.hpp>
#include <neap/backend/math.hpp>
#include <neap/backend/types.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace neap::inline v0 {

struct attention_options {
  bool causal = false;  // query i sees keys 0 to i
  double scale = 0;     // of the scores; 0: 1 / sqrt(D)
};

namespace detail {

// C = op(A) op(B), or += that, on the calling thread. These products are small: OpenBLAS spends most of its time on the
// way to them.
template <class T>
void product(gemm_shape const& s, T const* a, T const* b, bool add, T* c) {
#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512
  if constexpr (std::is_same_v<T, float>)
    if (s.m > 0 && s.n > 0 && s.k > 0)
      return tiled_product(s, s.m, s.n, {a, s.lda, s.transpose_a}, {b, s.ldb, s.transpose_b}, add, c, s.ldc);
#endif
  gemm_panel<T>(s, T(1), a, b, add ? T(1) : T(0), c);
}

// A block of scores [rows, columns] turned into probabilities, in place. Row r sees `visible + r` columns if causal.
template <class T>
struct softmax_block {
  T* scores;
  std::int64_t rows, columns;
  bool causal;
  std::int64_t visible;
  T scale;     // of the scores
  bool first;  // the first block of keys: largest, sum and out hold nothing yet
  T* largest;  // [rows] so far
  T* sum;      // [rows] of exp(score - largest)
  T* out;      // [rows, depth], scaled by the correction
  std::int64_t depth;
};
template <class T>
struct slope_block {
  T* scores;  // in: unscaled scores; out: probabilities
  T* slopes;  // in: gradient to the probabilities; out: gradient to the unscaled scores
  std::int64_t rows, columns;
  bool causal;
  std::int64_t visible;
  T const* log_sum;  // [rows]
  T const* delta;    // [rows] sum of dy * y, less the gradient to log_sum
  T scale;
};

template <class T>
NEAP_INLINE void run_block(softmax_block<T> const& b) {
  constexpr int lanes = 16;
  T const scale = b.scale;
  for (std::int64_t r = 0; r < b.rows; ++r) {
    T* const s = b.scores + r * b.columns;
    std::int64_t const n = b.causal ? std::min(b.columns, b.visible + r) : b.columns;
    if (n <= 0) {
      for (std::int64_t j = 0; j < b.columns; ++j) s[j] = T(0);
      continue;
    }
    T part[lanes];
    for (int j = 0; j < lanes; ++j) part[j] = -std::numeric_limits<T>::infinity();
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      NEAP_LANES
      for (int j = 0; j < lanes; ++j) {
        T const v = s[i + j] * scale;
        part[j] = v > part[j] ? v : part[j];
      }
    }
    T most = b.first ? -std::numeric_limits<T>::infinity() : b.largest[r];
    for (; i < n; ++i) most = s[i] * scale > most ? s[i] * scale : most;
    for (int j = 0; j < lanes; ++j) most = part[j] > most ? part[j] : most;
    for (int j = 0; j < lanes; ++j) part[j] = T(0);
    for (i = 0; i + lanes <= n; i += lanes) {
      NEAP_LANES
      for (int j = 0; j < lanes; ++j) {
        T const e = exp_lanes(s[i + j] * scale - most);
        s[i + j] = e;
        part[j] += e;
      }
    }
    T sum = 0;
    for (; i < n; ++i) sum += s[i] = exp_lanes(s[i] * scale - most);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) part[j] += part[j + half];
    sum += part[0];
    for (i = n; i < b.columns; ++i) s[i] = T(0);
    if (b.first) {
      b.sum[r] = sum;
    } else {
      T const correction = exp_lanes(b.largest[r] - most);
      b.sum[r] = b.sum[r] * correction + sum;
      if (correction != T(1)) {
        T* const o = b.out + r * b.depth;
        for (std::int64_t j = 0; j < b.depth; ++j) o[j] *= correction;
      }
    }
    b.largest[r] = most;
  }
}
template <class T>
NEAP_INLINE void run_block(slope_block<T> const& b) {
  constexpr int lanes = 16;
  for (std::int64_t r = 0; r < b.rows; ++r) {
    T* const s = b.scores + r * b.columns;
    T* const d = b.slopes + r * b.columns;
    std::int64_t const n = std::max<std::int64_t>(0, b.causal ? std::min(b.columns, b.visible + r) : b.columns);
    T const log_sum = b.log_sum[r], delta = b.delta[r], scale = b.scale;
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      NEAP_LANES
      for (int j = 0; j < lanes; ++j) {
        T const p = exp_lanes(s[i + j] * scale - log_sum);
        s[i + j] = p;
        d[i + j] = p * (d[i + j] - delta) * scale;
      }
    }
    for (; i < n; ++i) {
      T const p = exp_lanes(s[i] * scale - log_sum);
      s[i] = p;
      d[i] = p * (d[i] - delta) * scale;
    }
    for (; i < b.columns; ++i) s[i] = d[i] = T(0);
  }
}

template <class Block>
void block_narrow(Block const& b) {
  run_block(b);
}
#if defined(__x86_64__)
template <class Block>
NEAP_TARGET_AVX2 void block_avx2(Block const& b) {
  run_block(b);
}
template <class Block>
NEAP_TARGET_AVX512 void block_avx512(Block const& b) {
  run_block(b);
}
#endif
template <class Block>
void run_widest(Block const& b, vector_set v) {
#if defined(__x86_64__)
  if (v == vector_set::avx512) return block_avx512(b);
  if (v == vector_set::avx2) return block_avx2(b);
#endif
  static_cast<void>(v);
  block_narrow(b);
}

struct attention_extents {
  static constexpr std::int64_t most_rows = 128, most_keys = 256;
  std::int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
  std::int64_t rows, block;  // queries and keys of a block
  double scale;

  static attention_extents of(shape const& q, shape const& k, shape const& v, attention_options const& o) {
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || q[0] != k[0] || k[0] != v[0] || k[1] != v[1] ||
        k[2] != v[2] || q[3] != k[3] || k[1] < 1 || q[1] % k[1] != 0 || (k[2] < 1 && q[2] > 0))
      throw_error(
          {"attention: q, k, v must be [B,H,T,D], [B,K,S,D], [B,K,S,E] with K dividing H, are ", q, ", ", k, ", ", v});
    attention_extents e{q[0], q[1], k[1], q[2], k[2], q[3], v[3], 0, 0, o.scale};
    e.rows = std::min(most_rows, std::max<std::int64_t>(e.queries, 1));
    e.block = std::min(most_keys, std::max<std::int64_t>(e.keys, 1));
    if (e.scale == 0) e.scale = e.depth > 0 ? 1 / std::sqrt(static_cast<double>(e.depth)) : 1;
    return e;
  }
  std::int64_t round(std::int64_t elements, bytes_t size) const { return (elements * size + 63) / 64 * 64; }
  bytes_t forward_scratch(bytes_t size) const {
    return round(rows * block, size) + round(rows * value_depth, size) + 2 * round(rows, size);
  }
  bytes_t backward_scratch(bytes_t size) const { return 2 * round(rows * block, size) + 2 * round(rows, size); }
};

inline void check_rows(char const* what, tensor_ref const& t) {
  std::int64_t const d = t.dims[3];
  if (t.count() == 0) return;
  if ((d > 1 && t.strides[3] != 1) || (t.dims[2] > 1 && t.strides[2] < d))
    throw_error(
        {"attention: the rows of ", what, " ", t.dims, " with strides ", t.strides, " are not dense, copy it first"});
}
template <class T>
T* head(tensor_ref const& t, std::int64_t b, std::int64_t h, std::int64_t row = 0) {
  return t.as<T>() + b * t.strides[0] + h * t.strides[1] + row * t.strides[2];
}

template <class T>
void run_attention(host_backend& backend, attention_extents const& e, tensor_ref const& q, tensor_ref const& k,
                   tensor_ref const& v, tensor_ref const& y, tensor_ref const& lse, bool causal, void* workspace) {
  constexpr bytes_t size = sizeof(T);
  bytes_t const each = e.forward_scratch(size);
  std::int64_t const blocks = (e.queries + e.rows - 1) / e.rows;
  vector_set const vectors = machine_vectors();
  backend.parallel_for(e.batch * e.heads * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* const at = static_cast<std::byte*>(workspace) + worker * each;
    T* const scores = reinterpret_cast<T*>(at);
    T* const out = reinterpret_cast<T*>(at + e.round(e.rows * e.block, size));
    T* const largest = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(out) + e.round(e.rows * e.value_depth, size));
    T* const sum = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(largest) + e.round(e.rows, size));
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const b = id / (blocks * e.heads), h = id / blocks % e.heads, row = id % blocks * e.rows;
      std::int64_t const rows = std::min(e.rows, e.queries - row), kh = h / (e.heads / e.key_heads);
      std::int64_t const seen = causal ? std::min(e.keys, row + rows) : e.keys;
      for (std::int64_t key = 0; key < seen; key += e.block) {
        std::int64_t const n = std::min(e.block, seen - key);
        product<T>({rows, n, e.depth, false, true, q.strides[2], k.strides[2], n}, head<T>(q, b, h, row),
                   head<T>(k, b, kh, key), false, scores);
        run_widest(softmax_block<T>{scores, rows, n, causal, row + 1 - key, static_cast<T>(e.scale), key == 0, largest,
                                    sum, out, e.value_depth},
                   vectors);
        product<T>({rows, e.value_depth, n, false, false, n, v.strides[2], e.value_depth}, scores,
                   head<T>(v, b, kh, key), key != 0, out);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const to = head<T>(y, b, h, row + r);
        T const inverse = T(1) / sum[r];
        for (std::int64_t j = 0; j < e.value_depth; ++j) to[j] = out[r * e.value_depth + j] * inverse;
        if (lse.data)
          lse.as<T>()[b * lse.strides[0] + h * lse.strides[1] + (row + r) * lse.strides[2]] =
              largest[r] + std::log(sum[r]);
      }
    }
  });
}

template <class T>
void run_attention_gradient(host_backend& backend, attention_extents const& e, tensor_ref const& q, tensor_ref const& k,
                            tensor_ref const& v, tensor_ref const& y, tensor_ref const& lse, tensor_ref const& dy,
                            tensor_ref const& dlse, tensor_ref const& dq, tensor_ref const& dk, tensor_ref const& dv,
                            bool causal, void* workspace) {
  constexpr bytes_t size = sizeof(T);
  bytes_t const each = e.backward_scratch(size);
  std::int64_t const group = e.heads / e.key_heads;
  vector_set const vectors = machine_vectors();
  backend.parallel_for(e.batch * e.key_heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* const at = static_cast<std::byte*>(workspace) + worker * each;
    T* const scores = reinterpret_cast<T*>(at);
    T* const slopes = reinterpret_cast<T*>(at + e.round(e.rows * e.block, size));
    T* const log_sum = reinterpret_cast<T*>(at + 2 * e.round(e.rows * e.block, size));
    T* const delta = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(log_sum) + e.round(e.rows, size));
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const b = id / e.key_heads, kh = id % e.key_heads;
      for (std::int64_t i = 0; i < e.keys; ++i) {
        std::fill_n(head<T>(dk, b, kh, i), e.depth, T(0));
        std::fill_n(head<T>(dv, b, kh, i), e.value_depth, T(0));
      }
      for (std::int64_t h = kh * group; h < (kh + 1) * group; ++h)
        for (std::int64_t row = 0; row < e.queries; row += e.rows) {
          std::int64_t const rows = std::min(e.rows, e.queries - row);
          for (std::int64_t r = 0; r < rows; ++r) {
            T const* const a = head<T const>(dy, b, h, row + r);
            T const* const c = head<T const>(y, b, h, row + r);
            delta[r] = host_block{}.reduce_each(
                e.value_depth, T(0), [&](std::int64_t j) { return a[j] * c[j]; }, sum_op{});
            if (dlse.data)  // lse's slope at a score is its probability
              delta[r] -= dlse.as<T>()[b * dlse.strides[0] + h * dlse.strides[1] + (row + r) * dlse.strides[2]];
            log_sum[r] = lse.as<T>()[b * lse.strides[0] + h * lse.strides[1] + (row + r) * lse.strides[2]];
          }
          std::int64_t const seen = causal ? std::min(e.keys, row + rows) : e.keys;
          for (std::int64_t key = 0; key < seen; key += e.block) {
            std::int64_t const n = std::min(e.block, seen - key);
            T const* const qb = head<T const>(q, b, h, row);
            T const* const kb = head<T const>(k, b, kh, key);
            T const* const gb = head<T const>(dy, b, h, row);
            product<T>({rows, n, e.depth, false, true, q.strides[2], k.strides[2], n}, qb, kb, false, scores);
            product<T>({rows, n, e.value_depth, false, true, dy.strides[2], v.strides[2], n}, gb,
                       head<T const>(v, b, kh, key), false, slopes);
            run_widest(
                slope_block<T>{scores, slopes, rows, n, causal, row + 1 - key, log_sum, delta, static_cast<T>(e.scale)},
                vectors);
            product<T>({n, e.value_depth, rows, true, false, n, dy.strides[2], dv.strides[2]}, scores, gb, true,
                       head<T>(dv, b, kh, key));
            product<T>({n, e.depth, rows, true, false, n, q.strides[2], dk.strides[2]}, slopes, qb, true,
                       head<T>(dk, b, kh, key));
            product<T>({rows, e.depth, n, false, false, n, k.strides[2], dq.strides[2]}, slopes, kb, key != 0,
                       head<T>(dq, b, h, row));
          }
        }
    }
  });
}

}  // namespace detail

/// Bytes of workspace for attention on `threads` threads.
inline bytes_t attention_workspace(shape const& q, shape const& k, shape const& v, attention_options const& o,
                                   dtype element, int threads) {
  return threads * detail::attention_extents::of(q, k, v, o).forward_scratch(size_of(element));
}
/// Bytes of workspace for attention_gradient on `threads` threads.
inline bytes_t attention_gradient_workspace(shape const& q, shape const& k, shape const& v, attention_options const& o,
                                            dtype element, int threads) {
  return threads * detail::attention_extents::of(q, k, v, o).backward_scratch(size_of(element));
}

/// y [B, H, T, E] = softmax(scale * q k^T) v for q [B, H, T, D], k [B, K, S, D], v [B, K, S, E], where K divides H
/// (grouped queries share a key head); lse [B, H, T] (data may be null) gets the log of the softmax's sum. All are views
/// whose last axis has stride 1, so slices of a packed [B, T, 3C] and y in [B, T, H, E] order need no copies. f32, f64.
template <std::same_as<host_backend> Backend>
void attention(Backend& backend, tensor_ref const& q, tensor_ref const& k, tensor_ref const& v, tensor_ref const& y,
               tensor_ref const& lse, attention_options const& o, void* workspace) {
  auto const e = detail::attention_extents::of(q.dims, k.dims, v.dims, o);
  if (y.dims != shape{e.batch, e.heads, e.queries, e.value_depth} ||
      (lse.data && lse.dims != shape{e.batch, e.heads, e.queries}))
    throw_error({"attention: results ", y.dims, " and ", lse.dims, " do not fit q ", q.dims});
  detail::check_rows("q", q), detail::check_rows("k", k), detail::check_rows("v", v), detail::check_rows("y", y);
  detail::single_threaded_blas();
  if (y.element == dtype::f32) detail::run_attention<float>(backend, e, q, k, v, y, lse, o.causal, workspace);
  else if (y.element == dtype::f64) detail::run_attention<double>(backend, e, q, k, v, y, lse, o.causal, workspace);
  else refuse_on_host("attention", y.element);
}

/// dq, dk, dv from the operands and results of attention, dy and, if it has data, dlse. Same views and types as there.
template <std::same_as<host_backend> Backend>
void attention_gradient(Backend& backend, tensor_ref const& q, tensor_ref const& k, tensor_ref const& v,
                        tensor_ref const& y, tensor_ref const& lse, tensor_ref const& dy, tensor_ref const& dq,
                        tensor_ref const& dk, tensor_ref const& dv, attention_options const& o, void* workspace,
                        tensor_ref const& dlse = {}) {
  auto const e = detail::attention_extents::of(q.dims, k.dims, v.dims, o);
  if (dq.dims != q.dims || dk.dims != k.dims || dv.dims != v.dims || dy.dims != y.dims ||
      (dlse.data && dlse.dims != lse.dims))
    throw_error({"attention_gradient: gradients do not have the shapes of what they belong to"});
  detail::check_rows("q", q), detail::check_rows("k", k), detail::check_rows("v", v), detail::check_rows("y", y);
  detail::check_rows("dq", dq), detail::check_rows("dk", dk), detail::check_rows("dv", dv),
      detail::check_rows("dy", dy);
  detail::single_threaded_blas();
  if (y.element == dtype::f32)
    detail::run_attention_gradient<float>(backend, e, q, k, v, y, lse, dy, dlse, dq, dk, dv, o.causal, workspace);
  else if (y.element == dtype::f64)
    detail::run_attention_gradient<double>(backend, e, q, k, v, y, lse, dy, dlse, dq, dk, dv, o.causal, workspace);
  else refuse_on_host("attention_gradient", y.element);
}

}  // namespace neap::inline v0
