// Scaled dot-product attention on a GPU, forward and backward, after FlashAttention-2 (Dao 2023): a thread block has a
// tile of queries (forward, dq) or of keys (dk, dv), and meets the tiles of the other side one after another; scores live
// in registers, the softmax is corrected as later keys arrive, and the backward pass computes the probabilities again from
// the saved logarithms of sums. It departs from the paper in the backward pass: dq is a pass of its own, in place of
// atomic additions, so that sums have one order (7 products a tile, not 5) and bits repeat.
//
// bf16 and f16 are multiplied with sums in f32; probabilities and their gradients are rounded to the element's type between
// products. f32 is multiplied as pairs of tf32, so a product is right to about 2^-21 of its factors' sizes, as near to the
// exact result as f32 with its own roundings; an infinite element of f32 gives NaN where f32 might give an infinity. f64, and heads of more than 256 elements, take kernels of a thread block a
// row (attention_by_rows.cuh).
//
// What to expect of heads of 64 in bf16. A block has 4 warps; registers (tests/cuda/ptxas_attention.csv) allow 2 blocks on
// a multiprocessor, shared memory 3 to 7. Clocks of a multiprocessor for a tile, by what they pass through:
//
//                                    tensor cores        shared memory    exponentials
//   kernel   tile      shared, regs  sm_80     sm_90     (128 B a clock)  (16 a clock)
//   forward  128 x 64  32 KiB, 247   1024      512       512              512
//   dq       64 x 64   48 KiB, 192   768       384       896              256
//   dk, dv   64 x 64   49 KiB, 217   1024      512       1152             256
//
// Forward is bound by tensor cores on sm_80 and evenly by all three on sm_90, where mma.sync also reaches only about 0.6
// of what wgmma does: an estimate is 0.55 to 0.65 and 0.35 to 0.4 of the peak of products. Backward is bound by shared
// memory: 2048 clocks for the 1.3 M multiply-adds of 5 products are at most 0.62 and 0.31 of the peak. Memory is no bound
// from sequences of some 200 on. Causal attention skips tiles of zeros, and computes half of those on the diagonal in vain.
// Estimates all, not measured: bench/gpu/attention.cu measures.
#pragma once

#include <neap/cuda/attention_library.hpp>
#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/kernels/attention_backward.cuh>
#include <neap/cuda/kernels/attention_by_rows.cuh>
#include <neap/cuda/kernels/attention_forward.cuh>
#include <neap/cuda/kernels/attention_problem.cuh>
#include <neap/cuda/kernels/library_operands.hpp>
#include <neap/ir/operators/attention.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

/// f(width) for the least width of tiles, as a constant, that holds heads of D and E elements; false: there is none.
template <class F>
bool with_attention_width(std::int64_t depth, std::int64_t value_depth, F const& f) {
  std::int64_t const most = std::max(depth, value_depth);
  if (most <= 32) f(std::integral_constant<int, 32>{});
  else if (most <= 64) f(std::integral_constant<int, 64>{});
  else if (most <= 96) f(std::integral_constant<int, 96>{});
  else if (most <= 128) f(std::integral_constant<int, 128>{});
  else if (most <= 256) f(std::integral_constant<int, 256>{});
  else return false;
  return true;
}

template <class T, class B>
void attention_on_device(B& backend, attention_problem const& p, tensor_ref const& q, tensor_ref const& k,
                         tensor_ref const& v, tensor_ref const& y, tensor_ref const& lse) {
  using C = compute_t<T>;
  auto const sums = attention_sums<C>::of(lse);
  auto const rows_q = attention_rows<T const>::of(q), rows_k = attention_rows<T const>::of(k),
             rows_v = attention_rows<T const>::of(v);
  auto const rows_y = attention_rows<T>::of(y);
  if constexpr (sizeof(T) <= 4) {
    auto const by_tiles = [&](auto width) {
      attention_forward<T, width> const kernel{p, rows_q, rows_k, rows_v, rows_y, sums};
      backend.launch_blocks(kernel.blocks(), kernel);
    };
    if (with_attention_width(p.depth, p.value_depth, by_tiles)) return;
  }
  attention_forward_by_rows<T> const kernel{p, rows_q, rows_k, rows_v, rows_y, sums};
  backend.launch_blocks(kernel.blocks(), kernel);
}

template <class T, class B>
void attention_gradient_on_device(B& backend, attention_problem const& p, tensor_ref const& q, tensor_ref const& k,
                                  tensor_ref const& v, tensor_ref const& y, tensor_ref const& lse, tensor_ref const& dy,
                                  tensor_ref const& dq, tensor_ref const& dk, tensor_ref const& dv,
                                  tensor_ref const& dlse) {
  using C = compute_t<T>;
  auto const rows_q = attention_rows<T const>::of(q), rows_k = attention_rows<T const>::of(k),
             rows_v = attention_rows<T const>::of(v), rows_dy = attention_rows<T const>::of(dy);
  auto const rows_dq = attention_rows<T>::of(dq), rows_dk = attention_rows<T>::of(dk),
             rows_dv = attention_rows<T>::of(dv);
  bool const tiled = sizeof(T) <= 4 && with_attention_width(p.depth, p.value_depth, [](auto) {});
  std::int64_t const rows = p.batch * p.heads * p.queries;
  auto* const numbers = static_cast<attention_row_numbers<C>*>(
      backend.scratch(rows * static_cast<bytes_t>(sizeof(attention_row_numbers<C>))));
  backend.launch(rows,
                 attention_deltas<T>{p, rows_dy, attention_rows<T const>::of(y), attention_sums<C const>::of(lse),
                                     attention_sums<C const>::of(dlse), tiled ? C(1.44269504088896341) : C(1), numbers},
                 std::max<std::int64_t>(p.value_depth, 1));
  if constexpr (sizeof(T) <= 4) {
    auto const by_tiles = [&](auto width) {
      attention_backward<T, width, true> const of_keys{p,       rows_q,  rows_k,  rows_v, rows_dy,
                                                       numbers, rows_dq, rows_dk, rows_dv};
      backend.launch_blocks(of_keys.blocks(), of_keys);
      attention_backward<T, width, false> const of_queries{p,       rows_q,  rows_k,  rows_v, rows_dy,
                                                           numbers, rows_dq, rows_dk, rows_dv};
      backend.launch_blocks(of_queries.blocks(), of_queries);
    };
    if (with_attention_width(p.depth, p.value_depth, by_tiles)) return;
  }
  attention_backward_by_rows<T, true> const of_keys{p,       rows_q,  rows_k,  rows_v, rows_dy,
                                                    numbers, rows_dq, rows_dk, rows_dv};
  backend.launch_blocks(of_keys.blocks(), of_keys);
  attention_backward_by_rows<T, false> const of_queries{p,       rows_q,  rows_k,  rows_v, rows_dy,
                                                        numbers, rows_dq, rows_dk, rows_dv};
  backend.launch_blocks(of_queries.blocks(), of_queries);
}

/// Tensors of the backward pass have no extents forward.
struct attention_tensors {
  tensor_ref q, k, v, y, lse, dy, dq, dk, dv;

  cuda_attention problem(attention_options const& o) const {
    auto const of = [](tensor_ref const& t) { return t.rank() ? library_tensor_of(t) : library_tensor{}; };
    auto const p = attention_problem::of(q, k, v, o);
    return {dq.rank() > 0, q.element, o.causal, p.scale, of(q),  of(k), of(v),
            of(y),         of(lse),   of(dy),   of(dq),  of(dk), of(dv)};
  }
};

template <class B>
cuda_library_way attention_way_of(B& backend, attention_tensors const& t, attention_options const& o, bool dlse) {
  if constexpr (requires { backend.attention(); })
    if (auto* const library = backend.attention()) {
      if (!for_library({&t.q, &t.k, &t.v, &t.y, &t.lse, &t.dy, &t.dq, &t.dk, &t.dv}))
        return {false, "addresses are no multiples of 16 bytes"};
      if (dlse) return {false, "the logarithms of sums have a gradient"};
      return library->way(t.problem(o));
    }
  return {false, "the backend has no attention library"};
}
/// Whether the backend's library has computed it.
template <class B>
bool attended_by_library(B& backend, attention_tensors const& t, attention_options const& o, bool dlse = false) {
  if constexpr (requires { backend.attention(); })
    if (attention_way_of(backend, t, o, dlse).by_library) {
      auto& library = *backend.attention();
      auto const a = t.problem(o);
      bytes_t const bytes = library.scratch_bytes(a);
      library.run(backend.stream(), a,
                  {t.q.data, t.k.data, t.v.data, t.y.data, t.lse.data, t.dy.data, t.dq.data, t.dk.data, t.dv.data},
                  bytes > 0 ? backend.scratch(bytes) : nullptr);
      return true;
    }
  return false;
}
/// What a library takes of the backend's scratch memory.
template <class B>
bytes_t attention_library_scratch(B& backend, attention_tensors const& t, attention_options const& o, bool dlse) {
  if constexpr (requires { backend.attention(); })
    if (attention_way_of(backend, t, o, dlse).by_library) return backend.attention()->scratch_bytes(t.problem(o));
  return 0;
}

}  // namespace detail

/// What computes such an attention on this backend: its library, or our own kernel, and why.
template <device_backend B>
cuda_library_way attention_way(B& backend, tensor_ref const& q, tensor_ref const& k, tensor_ref const& v,
                               tensor_ref const& y, tensor_ref const& lse, attention_options const& o = {}) {
  return detail::attention_way_of(backend, {q, k, v, y, lse, {}, {}, {}, {}}, o, false);
}

/// As the host's attention (backend/kernels/attention.hpp), of f32, f64, bf16 and f16; lse is f32, or f64 of f64.
template <device_backend Backend>
void attention(Backend& backend, tensor_ref const& q, tensor_ref const& k, tensor_ref const& v, tensor_ref const& y,
               tensor_ref const& lse, attention_options const& o) {
  auto const p = detail::attention_problem::of(q, k, v, o);
  if (y.dims != shape{p.batch, p.heads, p.queries, p.value_depth} ||
      (lse.data && (lse.dims != shape{p.batch, p.heads, p.queries} || lse.element != computed_in(y.element))))
    throw_error({"attention: results ", y.dims, " and ", lse.dims, " do not fit q ", q.dims});
  detail::check_rows("q", q), detail::check_rows("k", k), detail::check_rows("v", v), detail::check_rows("y", y);
  if (lse.data && detail::attended_by_library(backend, {q, k, v, y, lse, {}, {}, {}, {}}, o)) return;
  with_floating(y.element, [&](auto tag) {
    detail::attention_on_device<typename decltype(tag)::type>(backend, p, q, k, v, y, lse);
  });
}

/// Bytes of the backend's scratch memory that attention_gradient takes.
inline bytes_t attention_gradient_scratch(shape const& q, dtype element) {
  return 2 * q[0] * q[1] * q[2] * size_of(computed_in(element));
}
/// dq, dk, dv from the operands and results of attention, dy and, if it has data, dlse. Types as there.
template <device_backend Backend>
void attention_gradient(Backend& backend, tensor_ref const& q, tensor_ref const& k, tensor_ref const& v,
                        tensor_ref const& y, tensor_ref const& lse, tensor_ref const& dy, tensor_ref const& dq,
                        tensor_ref const& dk, tensor_ref const& dv, attention_options const& o,
                        tensor_ref const& dlse = {}) {
  auto const p = detail::attention_problem::of(q, k, v, o);
  if (dq.dims != q.dims || dk.dims != k.dims || dv.dims != v.dims || dy.dims != y.dims ||
      lse.element != computed_in(y.element) || (dlse.data && (dlse.dims != lse.dims || dlse.element != lse.element)))
    throw_error({"attention_gradient: gradients do not have the shapes of what they belong to"});
  detail::check_rows("q", q), detail::check_rows("k", k), detail::check_rows("v", v), detail::check_rows("y", y);
  detail::check_rows("dq", dq), detail::check_rows("dk", dk), detail::check_rows("dv", dv);
  detail::check_rows("dy", dy);
  if (detail::attended_by_library(backend, {q, k, v, y, lse, dy, dq, dk, dv}, o, dlse.data != nullptr)) return;
  with_floating(y.element, [&](auto tag) {
    detail::attention_gradient_on_device<typename decltype(tag)::type>(backend, p, q, k, v, y, lse, dy, dq, dk, dv,
                                                                       dlse);
  });
}

namespace op {

inline bytes_t device_scratch(attention_grad const&, work_context const& c) {
  return attention_gradient_scratch(c.in[1].type.dims, c.in[1].type.element);
}
/// Of our own kernel or the backend's library, whichever takes more: where operands lie decides between them.
template <device_backend Backend>
bytes_t device_scratch(Backend& b, attention const& op, work_context const& c) {
  auto const at = [](tensor_layout const& l) { return detail::unplaced(l); };
  return neap::detail::attention_library_scratch(
      b, {at(c.in[0]), at(c.in[1]), at(c.in[2]), at(c.out[0]), at(c.out[1]), {}, {}, {}, {}}, {op.causal, op.scale},
      false);
}
template <device_backend Backend>
bytes_t device_scratch(Backend& b, attention_grad const& op, work_context const& c) {
  auto const at = [](tensor_layout const& l) { return detail::unplaced(l); };
  return std::max(device_scratch(op, c), neap::detail::attention_library_scratch(
                                             b,
                                             {at(c.in[1]), at(c.in[2]), at(c.in[3]), at(c.in[4]), at(c.in[5]),
                                              at(c.in[0]), at(c.out[0]), at(c.out[1]), at(c.out[2])},
                                             {op.causal, op.scale}, c.in.size() > 6));
}
template <device_backend Backend>
void run(Backend& b, attention const& op, kernel_arguments const& a) {
  neap::attention(b, a.in[0], a.in[1], a.in[2], a.out[0], a.out[1], {op.causal, op.scale});
}
template <device_backend Backend>
void run(Backend& b, attention_grad const& op, kernel_arguments const& a) {
  neap::attention_gradient(b, a.in[1], a.in[2], a.in[3], a.in[4], a.in[5], a.in[0], a.out[0], a.out[1], a.out[2],
                           {op.causal, op.scale}, detail::optional(a.in, 6));
}

}  // namespace op

}}  // namespace neap::v0
