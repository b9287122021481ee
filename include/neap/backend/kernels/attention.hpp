// Scaled dot-product attention on the host without the [T, T] matrix: blocks of query rows meet blocks of keys, the
// scores of one pair of blocks live in scratch, and the softmax is corrected as later keys arrive (online softmax, Milakov
// and Gimelshein 2018; the backward pass recomputes scores from the saved log of the sum, as FlashAttention does).
// Products are single-threaded (attention_products.hpp); a query block (forward) or a key head (backward) is one task, so
// results do not depend on threads. bf16 runs here where the machine has matrix units, with scores, sums and gradients
// in f32 and one rounding of each result.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/gemm.hpp>
#include <neap/backend/gemm_low.hpp>
#include <neap/backend/kernels/attention_products.hpp>
#include <neap/backend/kernels/conv2d_tiles.hpp>
#include <neap/core/element.hpp>
#include <neap/core/math.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace neap { inline namespace v0 {

struct attention_options {
  bool causal = false;  // query i sees keys 0 to i
  double scale = 0;     // of the scores; 0: 1 / sqrt(D)
};

namespace detail {

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
  static constexpr std::int64_t max_rows = 128, max_keys = 256;
  std::int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
  std::int64_t rows, block;  // queries and keys of a block
  double scale;

  static attention_extents of(shape const& q, shape const& k, shape const& v, attention_options const& o) {
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || q[0] != k[0] || k[0] != v[0] || k[1] != v[1] ||
        k[2] != v[2] || q[3] != k[3] || k[1] < 1 || q[1] % k[1] != 0 || (k[2] < 1 && q[2] > 0))
      throw_error(
          {"attention: q, k, v must be [B,H,T,D], [B,K,S,D], [B,K,S,E] with K dividing H, are ", q, ", ", k, ", ", v});
    attention_extents e{q[0], q[1], k[1], q[2], k[2], q[3], v[3], 0, 0, o.scale};
    e.rows = std::min(max_rows, std::max<std::int64_t>(e.queries, 1));
    e.block = std::min(max_keys, std::max<std::int64_t>(e.keys, 1));
    if (e.scale == 0) e.scale = e.depth > 0 ? 1 / std::sqrt(static_cast<double>(e.depth)) : 1;
    return e;
  }
  static bytes_t round(std::int64_t elements, bytes_t size) { return (elements * size + 63) / 64 * 64; }
  /// Bytes of scratch a thread. `t`: what the operands are; f32 computes for bf16.
  bytes_t forward_scratch(dtype t) const {
    bytes_t const size = size_of(computed_in(t));
    return round(rows * block, size) + parts_scratch(t) + round(rows * value_depth, size) + 2 * round(rows, size);
  }
  bytes_t backward_scratch(dtype t) const {
    bytes_t const size = size_of(computed_in(t));
    bytes_t const gradients =
        t == dtype::bf16 ? round(rows * depth, size) + round(keys * depth, size) + round(keys * value_depth, size) : 0;
    return 2 * round(rows * block, size) + parts_scratch(t) + 2 * round(rows, size) + gradients;
  }
  bytes_t parts_scratch(dtype t) const {
    return t == dtype::bf16 ? round(sums_operand<bf16>::memory * rows * block, size_of(t)) : 0;
  }
  /// Whether bf16 runs here on machines with matrix units. What is not cut among threads, micro-batches and parts decides.
  bool suits_units() const {
    constexpr std::int64_t most = 256, least_work = 1 << 17;  // of a product of bf16; of a pair of blocks
    return depth > 0 && value_depth > 0 && keys > 0 && depth <= most && value_depth <= most &&
           rows * block * std::min(depth, value_depth) >= least_work;
  }
};

/// The parts of a thread's scratch, one after the other.
class scratch_parts {
 public:
  explicit scratch_parts(void* at) : at_(static_cast<std::byte*>(at)) {}
  template <class T>
  T* take(std::int64_t count) {
    auto* const p = reinterpret_cast<T*>(at_);
    at_ += attention_extents::round(count, sizeof(T));
    return p;
  }

 private:
  std::byte* at_;
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
  using number = attention_number<T>;
  bytes_t const each = e.forward_scratch(q.element);
  std::int64_t const blocks = (e.queries + e.rows - 1) / e.rows;
  vector_set const vectors = machine_vectors();
  backend.parallel_for(e.batch * e.heads * blocks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    scratch_parts memory(static_cast<std::byte*>(workspace) + worker * each);
    auto* const scores = memory.take<number>(e.rows * e.block);
    auto* const parts = memory.take<T>(sums_operand<T>::memory * e.rows * e.block);
    auto* const out = memory.take<number>(e.rows * e.value_depth);
    auto* const largest = memory.take<number>(e.rows);
    auto* const sum = memory.take<number>(e.rows);
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const b = id / (blocks * e.heads), h = id / blocks % e.heads, row = id % blocks * e.rows;
      std::int64_t const rows = std::min(e.rows, e.queries - row), kh = h / (e.heads / e.key_heads);
      std::int64_t const seen = causal ? std::min(e.keys, row + rows) : e.keys;
      for (std::int64_t key = 0; key < seen; key += e.block) {
        std::int64_t const n = std::min(e.block, seen - key);
        product({rows, n, e.depth, false, true, q.strides[2], k.strides[2], n}, head<T const>(q, b, h, row),
                head<T const>(k, b, kh, key), false, scores);
        run_widest(softmax_block<number>{scores, rows, n, causal, row + 1 - key, static_cast<number>(e.scale), key == 0,
                                         largest, sum, out, e.value_depth},
                   vectors);
        product({rows, e.value_depth, n, false, false, n, v.strides[2], e.value_depth},
                sums_operand<T>(scores, rows * n, parts), head<T const>(v, b, kh, key), key != 0, out);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const to = head<T>(y, b, h, row + r);
        number const inverse = number(1) / sum[r];
        for (std::int64_t j = 0; j < e.value_depth; ++j) to[j] = T(out[r * e.value_depth + j] * inverse);
        if (lse.data)
          lse.as<number>()[b * lse.strides[0] + h * lse.strides[1] + (row + r) * lse.strides[2]] =
              largest[r] + std::log(sum[r]);
      }
    }
  });
}

/// Where a gradient [rows, depth] of one head is summed: in its tensor, or in scratch if that is narrower than sums are.
template <class T>
struct gradient_rows {
  attention_number<T>* data;
  std::int64_t ld;
  T* to;
  std::int64_t to_ld;

  gradient_rows(tensor_ref const& t, std::int64_t b, std::int64_t h, std::int64_t row,
                [[maybe_unused]] attention_number<T>* scratch)
      : to(head<T>(t, b, h, row)),
        to_ld(t.strides[2]) {
    if constexpr (std::is_same_v<T, attention_number<T>>) data = to, ld = to_ld;
    else data = scratch, ld = t.dims[3];
  }
  void clear(std::int64_t rows, std::int64_t depth) const {
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(data + i * ld, depth, attention_number<T>(0));
  }
  void finish([[maybe_unused]] std::int64_t rows, [[maybe_unused]] std::int64_t depth) const {
    if constexpr (!std::is_same_v<T, attention_number<T>>)
      for (std::int64_t i = 0; i < rows; ++i) narrow(data + i * ld, depth, to + i * to_ld);
  }
};

template <class T>
void run_attention_gradient(host_backend& backend, attention_extents const& e, tensor_ref const& q, tensor_ref const& k,
                            tensor_ref const& v, tensor_ref const& y, tensor_ref const& lse, tensor_ref const& dy,
                            tensor_ref const& dlse, tensor_ref const& dq, tensor_ref const& dk, tensor_ref const& dv,
                            bool causal, void* workspace) {
  using number = attention_number<T>;
  constexpr bool apart = !std::is_same_v<T, number>;  // gradients are summed in scratch
  bytes_t const each = e.backward_scratch(q.element);
  std::int64_t const group = e.heads / e.key_heads;
  vector_set const vectors = machine_vectors();
  backend.parallel_for(e.batch * e.key_heads, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    scratch_parts memory(static_cast<std::byte*>(workspace) + worker * each);
    auto* const scores = memory.take<number>(e.rows * e.block);
    auto* const slopes = memory.take<number>(e.rows * e.block);
    auto* const parts = memory.take<T>(sums_operand<T>::memory * e.rows * e.block);
    auto* const log_sum = memory.take<number>(e.rows);
    auto* const delta = memory.take<number>(e.rows);
    auto* const dq_sums = memory.take<number>(apart ? e.rows * e.depth : 0);
    auto* const dk_sums = memory.take<number>(apart ? e.keys * e.depth : 0);
    auto* const dv_sums = memory.take<number>(apart ? e.keys * e.value_depth : 0);
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const b = id / e.key_heads, kh = id % e.key_heads;
      gradient_rows<T> const dk_rows(dk, b, kh, 0, dk_sums), dv_rows(dv, b, kh, 0, dv_sums);
      dk_rows.clear(e.keys, e.depth), dv_rows.clear(e.keys, e.value_depth);
      for (std::int64_t h = kh * group; h < (kh + 1) * group; ++h)
        for (std::int64_t row = 0; row < e.queries; row += e.rows) {
          std::int64_t const rows = std::min(e.rows, e.queries - row);
          for (std::int64_t r = 0; r < rows; ++r) {
            T const* const a = head<T const>(dy, b, h, row + r);
            T const* const c = head<T const>(y, b, h, row + r);
            delta[r] = host_block{}.reduce_each(
                e.value_depth, number(0),
                [&](std::int64_t j) { return static_cast<number>(a[j]) * static_cast<number>(c[j]); }, sum_op{});
            if (dlse.data)  // lse's slope at a score is its probability
              delta[r] -= dlse.as<number>()[b * dlse.strides[0] + h * dlse.strides[1] + (row + r) * dlse.strides[2]];
            log_sum[r] = lse.as<number>()[b * lse.strides[0] + h * lse.strides[1] + (row + r) * lse.strides[2]];
          }
          gradient_rows<T> const dq_rows(dq, b, h, row, dq_sums);
          T const* const qb = head<T const>(q, b, h, row);
          T const* const gb = head<T const>(dy, b, h, row);
          std::int64_t const seen = causal ? std::min(e.keys, row + rows) : e.keys;
          for (std::int64_t key = 0; key < seen; key += e.block) {
            std::int64_t const n = std::min(e.block, seen - key);
            T const* const kb = head<T const>(k, b, kh, key);
            product({rows, n, e.depth, false, true, q.strides[2], k.strides[2], n}, qb, kb, false, scores);
            product({rows, n, e.value_depth, false, true, dy.strides[2], v.strides[2], n}, gb,
                    head<T const>(v, b, kh, key), false, slopes);
            run_widest(slope_block<number>{scores, slopes, rows, n, causal, row + 1 - key, log_sum, delta,
                                           static_cast<number>(e.scale)},
                       vectors);
            product({n, e.value_depth, rows, true, false, n, dy.strides[2], dv_rows.ld},
                    sums_operand<T>(scores, rows * n, parts), gb, true, dv_rows.data + key * dv_rows.ld);
            sums_operand<T> const of_slopes(slopes, rows * n, parts);
            product({n, e.depth, rows, true, false, n, q.strides[2], dk_rows.ld}, of_slopes, qb, true,
                    dk_rows.data + key * dk_rows.ld);
            product({rows, e.depth, n, false, false, n, k.strides[2], dq_rows.ld}, of_slopes, kb, key != 0,
                    dq_rows.data);
          }
          dq_rows.finish(rows, e.depth);
        }
      dk_rows.finish(e.keys, e.depth), dv_rows.finish(e.keys, e.value_depth);
    }
  });
}

}  // namespace detail

/// Whether attention of bf16 with these extents runs on the machine's matrix units; else it is for who widens it.
inline bool attention_on_units([[maybe_unused]] shape const& q, [[maybe_unused]] shape const& k,
                               [[maybe_unused]] shape const& v) {
#if defined(NEAP_GEMM_AMX)
  return detail::attention_extents::of(q, k, v, {}).suits_units() && detail::gemm_amx::usable();
#else
  return false;
#endif
}

/// Bytes of workspace for attention on `threads` threads.
inline bytes_t attention_workspace(shape const& q, shape const& k, shape const& v, attention_options const& o,
                                   dtype element, int threads) {
  return threads * detail::attention_extents::of(q, k, v, o).forward_scratch(element);
}
/// Bytes of workspace for attention_gradient on `threads` threads.
inline bytes_t attention_gradient_workspace(shape const& q, shape const& k, shape const& v, attention_options const& o,
                                            dtype element, int threads) {
  return threads * detail::attention_extents::of(q, k, v, o).backward_scratch(element);
}

/// y [B, H, T, E] = softmax(scale * q k^T) v for q [B, H, T, D], k [B, K, S, D], v [B, K, S, E], where K divides H
/// (grouped queries share a key head); lse [B, H, T] (data may be null) gets the log of the softmax's sum. All are views
/// whose last axis has stride 1, so slices of a packed [B, T, 3C] and y in [B, T, H, E] order need no copies. f32, f64, and
/// bf16 with lse in f32 where attention_on_units.
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
#if defined(NEAP_GEMM_AMX)
  else if (y.element == dtype::bf16 && attention_on_units(q.dims, k.dims, v.dims))
    detail::run_attention<bf16>(backend, e, q, k, v, y, lse, o.causal, workspace);
#endif
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
#if defined(NEAP_GEMM_AMX)
  else if (y.element == dtype::bf16 && attention_on_units(q.dims, k.dims, v.dims))
    detail::run_attention_gradient<bf16>(backend, e, q, k, v, y, lse, dy, dlse, dq, dk, dv, o.causal, workspace);
#endif
  else refuse_on_host("attention_gradient", y.element);
}

}}  // namespace neap::v0
