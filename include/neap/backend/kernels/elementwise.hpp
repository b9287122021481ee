// Elementwise kernels: a scalar functor over tensors of any strides (broadcasts, transposes, slices) and element types.
// All layouts run the same compiled loop, so results do not depend on layout, threads, or whether an output lies on an
// input.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/math.hpp>
#include <neap/backend/strided.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace neap::inline v0 {

namespace detail {

inline constexpr std::int64_t map_chunk = 512;   // elements staged at once: all buffers of a map fit the first cache
inline constexpr std::int64_t map_grain = 8192;  // elements of one piece of work; a multiple of map_chunk

template <class F>
constexpr bool works_on_integers() {
  if constexpr (requires { F::integral; }) return F::integral;
  else return false;
}

/// What a map's inputs are computed in: f64 if one is, else f32 if one is floating, else i64 if the functor wants it.
template <class F, std::size_t N>
dtype compute_dtype(std::array<tensor_ref, N> const& in) {
  bool floating = false;
  for (auto const& x : in) {
    if (x.element == dtype::f64) return dtype::f64;
    floating = floating || is_floating(x.element);
  }
  return floating || !works_on_integers<F>() ? dtype::f32 : dtype::i64;
}

/// N inputs, K outputs and the compiled loop over n (a multiple of the lanes) contiguous elements.
template <class C, int N, int K>
struct map_plan {
  using loop_type = void (*)(void const* f, std::int64_t n, C const* const* in, C* const* out);
  std::array<strided, static_cast<std::size_t>(N)> in;
  std::array<strided, static_cast<std::size_t>(K)> out;
  void const* f;
  loop_type loop;

  void operator()(std::int64_t begin, std::int64_t end) const {
    alignas(64) C in_buffer[N][map_chunk];
    alignas(64) C out_buffer[K][map_chunk];
    C const* from[N];
    C* to[K];
    for (std::int64_t at = begin; at < end;) {
      std::int64_t const left = end - at, lanes = host_block::lanes;
      std::int64_t const n = left >= map_chunk ? map_chunk : left >= lanes ? left / lanes * lanes : left;
      if (n >= lanes) {
        for (int i = 0; i < N; ++i) from[i] = staged(in[static_cast<std::size_t>(i)], at, n, in_buffer[i]);
        for (int k = 0; k < K; ++k) {
          to[k] = direct<C>(out[static_cast<std::size_t>(k)], at, n);
          if (!to[k]) to[k] = out_buffer[k];
        }
        loop(f, n, from, to);
      } else {  // the rest: the same loop, on lanes filled up with copies of the last element
        for (int i = 0; i < N; ++i) {
          gather(in[static_cast<std::size_t>(i)], at, n, in_buffer[i]);
          for (std::int64_t j = n; j < lanes; ++j) in_buffer[i][j] = in_buffer[i][n - 1];
          from[i] = in_buffer[i];
        }
        for (int k = 0; k < K; ++k) to[k] = out_buffer[k];
        loop(f, lanes, from, to);
      }
      for (int k = 0; k < K; ++k)
        if (to[k] == out_buffer[k]) scatter(out[static_cast<std::size_t>(k)], at, n, out_buffer[k]);
      at += n;
    }
  }
};

template <class C, class F, int N, int K>
__attribute__((noinline)) void map_loop(void const* functor, std::int64_t n, C const* const* in, C* const* out) {
  F const f = *static_cast<F const*>(functor);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    std::array<C const*, sizeof...(I)> const x{in[I]...};
    if constexpr (K == 1) {
      C* const y = out[0];
      for (std::int64_t at = 0; at < n; at += host_block::lanes) {
        NEAP_LANES
        for (int j = 0; j < host_block::lanes; ++j) y[at + j] = static_cast<C>(f(x[I][at + j]...));
      }
    } else {
      [&]<std::size_t... O>(std::index_sequence<O...>) {
        std::array<C*, sizeof...(O)> const y{out[O]...};
        for (std::int64_t at = 0; at < n; at += host_block::lanes) {
          NEAP_LANES
          for (int j = 0; j < host_block::lanes; ++j) {
            auto const results = f(x[I][at + j]...);
            ((y[O][at + j] = results[O]), ...);
          }
        }
      }(std::make_index_sequence<static_cast<std::size_t>(K)>{});
    }
  }(std::make_index_sequence<static_cast<std::size_t>(N)>{});
}

template <class C, class Backend, class F, std::size_t K, std::size_t N>
void map_as(Backend& b, F const& f, std::array<tensor_ref, K> const& out, std::array<tensor_ref, N> const& in) {
  shape const& whole = out[0].dims;
  map_plan<C, static_cast<int>(N), static_cast<int>(K)> plan;
  for (std::size_t i = 0; i < N; ++i) plan.in[i] = view_through(whole, in[i]);
  for (std::size_t k = 0; k < K; ++k) plan.out[k] = view_through(whole, out[k]);
  plan.f = &f;
  plan.loop = &map_loop<C, F, static_cast<int>(N), static_cast<int>(K)>;
  b.parallel_for(out[0].count(), map_grain, plan);
}

}  // namespace detail

/// out[k] = f(in...)[k] for K outputs of one shape; f takes and gives (as std::array<C, K>) values of the type that is
/// computed in, C: double if an input is f64, int64 if all inputs are integers or booleans and F::integral, else float.
/// Inputs are broadcast to the outputs' shape. An output may lie exactly on an input. Throws neap::error if shapes do
/// not fit.
template <class Backend, class F, std::size_t K, class... In>
  requires(sizeof...(In) >= 1 && sizeof...(In) <= 6)
void map(Backend& b, F const& f, std::array<tensor_ref, K> const& out, In const&... in) {
  std::array<tensor_ref, sizeof...(In)> const inputs{in...};
  switch (detail::compute_dtype<F>(inputs)) {
    case dtype::f64: return detail::map_as<double>(b, f, out, inputs);
    case dtype::i64:
      if constexpr (detail::works_on_integers<F>()) return detail::map_as<std::int64_t>(b, f, out, inputs);
      [[fallthrough]];
    default: return detail::map_as<float>(b, f, out, inputs);
  }
}

/// out = f(in...), the same with one output; f may give a bool, stored as 0 or 1.
template <class Backend, class F, class... In>
  requires(sizeof...(In) >= 1 && sizeof...(In) <= 6)
void map(Backend& b, F const& f, tensor_ref const& out, In const&... in) {
  map(b, f, std::array<tensor_ref, 1>{out}, in...);
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

}  // namespace neap::inline v0
