// What the kernels of attention on a GPU have in common: the problem, rows of its tensors, and the numbers that the
// backward pass reads of each row of queries.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/kernels/attention.hpp>
#include <neap/core/config.hpp>
#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// [B, H, rows, columns] with dense rows: row r of head h of batch b begins at data + b * batch + h * head + r * row.
template <class T>
struct attention_rows {
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  // strides in elements
  bool packs = false;                         // all rows begin at a multiple of 16 bytes
  bool pairs = false;                         // ... of two elements

  static attention_rows of(tensor_ref const& t) {
    attention_rows r{t.as<T>(), t.strides[0], t.strides[1], t.strides[2], true, true};
    for (int i = 0; i < 3; ++i) {
      if (t.dims[i] <= 1) continue;
      r.packs = r.packs && t.strides[i] * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
      r.pairs = r.pairs && t.strides[i] % 2 == 0;
    }
    auto const address = reinterpret_cast<std::uintptr_t>(t.data);
    r.packs = r.packs && address % 16 == 0;
    r.pairs = r.pairs && address % (2 * sizeof(T)) == 0;
    return r;
  }
  NEAP_HD T* at(std::int64_t b, std::int64_t h, std::int64_t r = 0) const {
    return data + b * batch + h * head + r * row;
  }
};

/// q [B, H, T, D], k [B, K, S, D], v [B, K, S, E].
struct attention_problem {
  std::int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
  double precise_scale;
  float scale, scale_log2;  // of the scores; the same for powers of 2
  bool causal;

  static attention_problem of(tensor_ref const& q, tensor_ref const& k, tensor_ref const& v,
                              attention_options const& o) {
    auto const e = attention_extents::of(q.dims, k.dims, v.dims, o);
    return {e.batch,
            e.heads,
            e.key_heads,
            e.queries,
            e.keys,
            e.depth,
            e.value_depth,
            e.scale,
            static_cast<float>(e.scale),
            static_cast<float>(e.scale * 1.44269504088896341),
            o.causal};
  }
  NEAP_HD std::int64_t tiles_of_queries(int rows) const { return (queries + rows - 1) / rows; }
};

/// A number for each row: [B, H, T].
template <class C>
struct attention_sums {
  C* data = nullptr;  // null: there are none
  std::int64_t batch = 0, head = 0, row = 0;

  static attention_sums of(tensor_ref const& t) {
    if (!t.data) return {};
    return {t.as<C>(), t.strides[0], t.strides[1], t.strides[2]};
  }
  NEAP_HD C* at(std::int64_t b, std::int64_t h, std::int64_t r) const { return data + b * batch + h * head + r * row; }
};

/// What the backward pass reads of a row of queries.
template <class C>
struct alignas(2 * sizeof(C)) attention_row_numbers {
  C lse, delta;  // delta: the sum of dy * y, less the gradient to lse
};

/// attention_row_numbers of each row; lse times lse_factor.
template <class T>
struct attention_deltas {
  using C = compute_t<T>;
  attention_problem p;
  attention_rows<T const> dy, y;
  attention_sums<C const> lse, dlse;
  C lse_factor;
  attention_row_numbers<C>* numbers;  // [B, H, T]

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    std::int64_t const b = block.id / p.queries / p.heads, h = block.id / p.queries % p.heads, r = block.id % p.queries;
    C sum = block.reduce_transform(
        p.value_depth, C(0), [](T x, T z) { return static_cast<C>(x) * static_cast<C>(z); }, sum_op{}, dy.at(b, h, r),
        y.at(b, h, r));
    if (dlse.data) sum -= *dlse.at(b, h, r);
    attention_row_numbers<C> const of_row{*lse.at(b, h, r) * lse_factor, sum};
    auto* const to = numbers + block.id;
    block.once([=] { *to = of_row; });
  }
};

}}}  // namespace neap::v0::detail
