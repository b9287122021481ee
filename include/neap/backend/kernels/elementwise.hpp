// Elementwise kernels: a scalar functor over tensors of any strides (broadcasts, transposes, slices) and element types.
// All layouts run the same compiled loop, so results do not depend on layout, threads, or whether an output lies on an
// input.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/backend/host.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/math.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

inline constexpr std::int64_t map_chunk = 512;   // elements staged at once: all buffers of a map fit the first cache
inline constexpr std::int64_t map_grain = 8192;  // elements of one piece of work; a multiple of map_chunk

/// A functor as its compiled loops over n (a multiple of the lanes) contiguous elements, so that the walking around them
/// is compiled once, not for each functor.
template <class C>
using map_loop_type = void (*)(void const* f, std::int64_t n, C const* const* in, C* const* out);
struct map_functor {
  void const* f;
  map_loop_type<float> in_float;
  map_loop_type<double> in_double;
  map_loop_type<std::int64_t> in_integers;  // nullptr: integers are computed in float
};

using map_refs = std::initializer_list<tensor_ref const*>;
inline constexpr int map_inputs = 6, map_outputs = 3;  // at most

/// What a map's inputs are computed in: f64 if one is, else f32 if one is floating, else i64 if the functor wants it.
inline dtype compute_dtype(map_refs in, bool integral) {
  bool floating = false;
  for (auto const* x : in) {
    if (x->element == dtype::f64) return dtype::f64;
    floating = floating || is_floating(x->element);
  }
  return floating || !integral ? dtype::f32 : dtype::i64;
}

template <class C>
struct map_plan {
  int inputs, outputs;
  void const* f;
  map_loop_type<C> loop;
  strided in[map_inputs], out[map_outputs];

  void operator()(std::int64_t begin, std::int64_t end) const {
    alignas(64) C in_buffer[map_inputs][map_chunk];
    alignas(64) C out_buffer[map_outputs][map_chunk];
    C const* from[map_inputs];
    C* to[map_outputs];
    for (std::int64_t at = begin; at < end;) {
      std::int64_t const left = end - at, lanes = host_block::lanes;
      std::int64_t const n = left >= map_chunk ? map_chunk : left >= lanes ? left / lanes * lanes : left;
      bool const whole = n >= lanes;
      for (int i = 0; i < inputs; ++i) {
        from[i] = whole ? direct<C>(in[i], at, n) : nullptr;
        if (from[i]) continue;
        from[i] = in_buffer[i];
        gather(in[i], at, n, in_buffer[i]);
        // The rest: the same loop, on lanes filled up with copies of the last element.
        if (!whole)
          for (std::int64_t j = n; j < lanes; ++j) in_buffer[i][j] = in_buffer[i][n - 1];
      }
      for (int k = 0; k < outputs; ++k) {
        to[k] = whole ? direct<C>(out[k], at, n) : nullptr;
        if (!to[k]) to[k] = out_buffer[k];
      }
      loop(f, whole ? n : lanes, from, to);
      for (int k = 0; k < outputs; ++k)
        if (to[k] == out_buffer[k]) scatter(out[k], at, n, out_buffer[k]);
      at += n;
    }
  }
};

template <class C, class F, int N, int K>
__attribute__((noinline, flatten)) void map_loop(void const* functor, std::int64_t n, C const* const* in,
                                                 C* const* out) {
  F const f = *static_cast<F const*>(functor);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    C const* const x[]{in[I]...};
    if constexpr (K == 1) {
      C* const y = out[0];
      for (std::int64_t at = 0; at < n; at += host_block::lanes) {
        NEAP_LANES
        for (int j = 0; j < host_block::lanes; ++j) y[at + j] = static_cast<C>(f(x[I][at + j]...));
      }
    } else {
      C* y[K];
      for (int k = 0; k < K; ++k) y[k] = out[k];
      for (std::int64_t at = 0; at < n; at += host_block::lanes) {
        NEAP_LANES
        for (int j = 0; j < host_block::lanes; ++j) {
          auto const results = f(x[I][at + j]...);
          y[0][at + j] = results[0];
          y[1][at + j] = results[1];
          if constexpr (K == 3) y[2][at + j] = results[2];
        }
      }
    }
  }(std::make_index_sequence<static_cast<std::size_t>(N)>{});
}

template <class F, int N, int K>
map_functor map_functor_of(F const& f) {
  if constexpr (requires { requires F::integral; })
    return {&f, &map_loop<float, F, N, K>, &map_loop<double, F, N, K>, &map_loop<std::int64_t, F, N, K>};
  else return {&f, &map_loop<float, F, N, K>, &map_loop<double, F, N, K>, nullptr};
}

template <class C, class Backend>
void map_as(Backend& b, void const* f, map_loop_type<C> loop, std::span<tensor_ref const> out, map_refs in) {
  map_plan<C> plan{static_cast<int>(in.size()), static_cast<int>(out.size()), f, loop, {}, {}};
  for (std::size_t i = 0; i < in.size(); ++i) plan.in[i] = view_through(out[0].dims, *in.begin()[i]);
  for (std::size_t k = 0; k < out.size(); ++k) plan.out[k] = view_through(out[0].dims, out[k]);
  b.parallel_for(out[0].count(), map_grain, plan);
}

template <class Backend>
void map_erased(Backend& b, map_functor const& f, std::span<tensor_ref const> out, map_refs in) {
  switch (compute_dtype(in, f.in_integers)) {
    case dtype::f64: return map_as<double>(b, f.f, f.in_double, out, in);
    case dtype::i64: return map_as<std::int64_t>(b, f.f, f.in_integers, out, in);
    default: return map_as<float>(b, f.f, f.in_float, out, in);
  }
}

}  // namespace detail

/// out[k] = f(in...)[k] for K outputs of one shape; f takes and gives (as std::array<C, K>) values of the type that is
/// computed in, C: double if an input is f64, int64 if all inputs are integers or booleans and F::integral, else float.
/// Inputs are broadcast to the outputs' shape. An output may lie exactly on an input. Throws neap::error if shapes do
/// not fit.
template <class Backend, class F, std::size_t K, class... In>
  requires(sizeof...(In) >= 1 && sizeof...(In) <= detail::map_inputs && K <= detail::map_outputs)
void map(Backend& b, F const& f, std::array<tensor_ref, K> const& out, In const&... in) {
  if constexpr (device_backend<Backend>) map_on_device(b, f, out, in...);  // cuda/kernels/elementwise.cuh
  else
    detail::map_erased(b, detail::map_functor_of<F, static_cast<int>(sizeof...(In)), static_cast<int>(K)>(f), out,
                       {&static_cast<tensor_ref const&>(in)...});
}

/// out = f(in...), the same with one output; f may give a bool, stored as 0 or 1.
template <class Backend, class F, class... In>
  requires(sizeof...(In) >= 1 && sizeof...(In) <= detail::map_inputs)
void map(Backend& b, F const& f, tensor_ref const& out, In const&... in) {
  if constexpr (device_backend<Backend>) map_on_device(b, f, std::array<tensor_ref, 1>{out}, in...);
  else
    detail::map_erased(b, detail::map_functor_of<F, static_cast<int>(sizeof...(In)), 1>(f), {&out, 1},
                       {&static_cast<tensor_ref const&>(in)...});
}

namespace detail {
struct identity_of {
  static constexpr bool integral = true;
  template <class C>
  NEAP_HD C operator()(C x) const {
    return x;
  }
};
struct choice_of {
  static constexpr bool integral = true;
  template <class C>
  NEAP_HD C operator()(C condition, C a, C b) const {
    return pick(condition != C(0), a, b);
  }
};
}  // namespace detail

/// out = in, in out's element type (to bool: whether it is not 0; floating to integer: towards 0).
template <class Backend>
void cast(Backend& b, tensor_ref const& out, tensor_ref const& in) {
  map(b, detail::identity_of{}, out, in);
}

/// out = condition ? x : y; the condition is a tensor of booleans or numbers (true if not 0).
template <class Backend>
void where(Backend& b, tensor_ref const& out, tensor_ref const& condition, tensor_ref const& x, tensor_ref const& y) {
  map(b, detail::choice_of{}, out, condition, x, y);
}

}}  // namespace neap::v0
