// Elementwise maps on a device (backend/kernels/elementwise.hpp): one kernel for each functor and type that is computed in,
// whatever the operands' strides and element types, so that what a program compiles stays small. Packs of 8 elements (of 2
// where 8 bytes each are computed) where all operands lie that way, else one element after another.
//
// Results are the host's but for what compilers and functions of the device round otherwise: products and sums may be
// fused, exponentials and the like are the device's. They depend on no layout: recomputed values have the same bits.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/cuda/kernels/packs.cuh>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// A functor that reads numbers of its own in the device's memory: counts() says whether anything is to be written, and
/// prepared() gives the functor that has the numbers.
template <class F>
concept reads_numbers = requires(F const& f) {
  f.counts();
  f.prepared();
};

/// A functor as a member of a kernel. Empty ones are made anew: nvcc 13 gives a [[no_unique_address]] member of theirs no
/// room in a kernel's parameters, where the host's compiler gives it one.
template <class F>
struct kernel_functor {
  F f;
  explicit kernel_functor(F const& functor) : f(functor) {}
  NEAP_HD NEAP_INLINE F const& get() const { return f; }
};
template <class F>
  requires std::is_empty_v<F>
struct kernel_functor<F> {
  explicit kernel_functor(F const&) {}
  NEAP_HD NEAP_INLINE F get() const { return F{}; }
};

/// K outputs of F over N inputs, computed in C. A block does a chunk.
template <class F, class C, int N, int K>
struct map_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr int length = computed_pack<C>::length;
  static constexpr std::int64_t chunk = 2 * cuda_block_threads * length;
  index_space<N + K> x;  // the inputs, then the outputs
  bool by_packs = true;
  kernel_functor<F> f;

  map_kernel(F const& functor, index_space<N + K> const& operands) : x(operands), f(functor) {
    for (int k = 0; k < N + K; ++k)
      by_packs =
          by_packs && x.size[k] <= computed_pack<C>::largest && (x.has_packs(k, length) || (k < N && whole_packs(k)));
  }

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if constexpr (reads_numbers<F>) {
      if (f.get().counts()) do_chunk(b, f.get().prepared());
    } else {
      do_chunk(b, f.get());
    }
  }

  struct results {  // an array that device code may index
    C at[K];
  };
  /// The same bits wherever it is inlined.
  template <class G, std::size_t... I>
  NEAP_HD NEAP_INLINE static results apply(G const& g, C const (&in)[N], std::index_sequence<I...>) {
    results y;
    if constexpr (K == 1) y = {{static_cast<C>(g(opaque(in[I])...))}};
    else y = __builtin_bit_cast(results, g(opaque(in[I])...));
    for (int k = 0; k < K; ++k) y.at[k] = opaque(y.at[k]);
    return y;
  }

 private:
  /// Whether one element serves each whole pack.
  bool whole_packs(int k) const { return x.repeats(k) && (x.rank == 1 || x.dims[x.rank - 1] % length == 0); }

  template <class Block, class G>
  NEAP_HD NEAP_INLINE void do_chunk(Block& b, G const& g) const {
    std::int64_t const first = b.id * chunk, left = x.count - first, n = left < chunk ? left : chunk;
    map_kernel const* const self = this;
    std::int64_t const packs = by_packs ? n / length : 0;
    b.each(packs, [self, &g, first](std::int64_t i) { self->pack(g, first + i * length); });
    std::int64_t const rest = first + packs * length;
    b.each(n - packs * length, [self, &g, rest](std::int64_t i) { self->one(g, rest + i); });
  }

  template <class G>
  NEAP_HD NEAP_INLINE void one(G const& g, std::int64_t index) const {
    std::byte* at[N + K];
    x.place(index, at);
    C in[N];
    for (int k = 0; k < N; ++k) in[k] = load_element<C>(at[k], x.element[k]);
    results const y = apply(g, in, std::make_index_sequence<N>{});
    for (int k = 0; k < K; ++k) store_element(at[N + k], x.element[N + k], y.at[k]);
  }

  template <class G>
  NEAP_HD NEAP_INLINE void pack(G const& g, std::int64_t index) const {
    std::byte* at[N + K];
    x.place(index, at);
    typename computed_pack<C>::bits bits[N];
    computed_pack<C> in[N], out[K];
    // All reads before the first conversion: they are under way together.
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < N; ++k)
      if (!x.repeats(k)) bits[k].load(at[k], x.size[k]);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < N; ++k) {
      if (!x.repeats(k)) {
        in[k].from(bits[k], x.element[k]);
      } else {
        C const value = load_element<C>(at[k], x.element[k]);
        for (int j = 0; j < length; ++j) in[k].at[j] = value;
      }
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j) {
      C of_one[N];
      for (int k = 0; k < N; ++k) of_one[k] = in[k].at[j];
      results const y = apply(g, of_one, std::make_index_sequence<N>{});
      for (int k = 0; k < K; ++k) out[k].at[j] = y.at[k];
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < K; ++k) out[k].to(x.element[N + k]).store(at[N + k], x.size[N + k]);
  }
};

}  // namespace detail

/// map (backend/kernels/elementwise.hpp) on a device.
template <device_backend B, class F, std::size_t K, class... In>
void map_on_device(B& b, F const& f, std::array<tensor_ref, K> const& out, In const&... in) {
  constexpr int n = sizeof...(In), outputs = static_cast<int>(K);
  tensor_ref const* x[n + outputs]{&static_cast<tensor_ref const&>(in)...};
  for (std::size_t k = 0; k < K; ++k) x[n + static_cast<int>(k)] = &out[k];
  for (auto const* one : x) with_type(one->element, [](auto) {});  // kernels know it
  detail::index_space<n + outputs> const space(out[0].dims, x);
  auto const run = [&](auto tag) {
    detail::map_kernel<F, typename decltype(tag)::type, n, outputs> const kernel(f, space);
    launch_in_chunks(b, space.count, kernel);
  };
  constexpr bool integral = requires { requires F::integral; };
  switch (detail::compute_dtype({&static_cast<tensor_ref const&>(in)...}, integral)) {
    case dtype::f64: return run(type_tag<double>{});
    case dtype::i64:
      if constexpr (integral) return run(type_tag<std::int64_t>{});
      [[fallthrough]];
    default: return run(type_tag<float>{});
  }
}

}}  // namespace neap::v0
