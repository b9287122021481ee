// Optimizer updates of many tensors in one launch: a model has many small weights, whose launches would take longer than
// their work. The tensors' addresses and extents are the kernel's parameters, within the 4 KiB that all devices take. Each
// element has the bits that its update has in a launch of its own.
#pragma once

#include <neap/cuda/kernels/elementwise.cuh>
#include <neap/cuda/kernels/update.cuh>
#include <neap/cuda/update_call.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Updates by one functor of dense tensors with the same element types: N inputs (weight, states, gradient) each, the first
/// K of which are written. A block does a chunk of one tensor.
template <class F, class C, int N, int K>
struct update_many {
  using single = map_kernel<F, C, N, K>;
  static constexpr bool whole_blocks = true;
  static constexpr int length = single::length;
  static constexpr std::int64_t chunk = single::chunk;
  static constexpr int most = 3840 / (8 * N + 13);  // tensors

  F f;
  dtype element[N]{};
  std::uint8_t size[N]{};  // of an element, in bytes
  std::int32_t count = 0;
  std::int32_t first[most + 1]{};  // chunk of each tensor, and the number of all chunks
  std::int64_t elements[most]{};
  std::byte* at[most][N]{};
  bool by_packs[most]{};

  explicit update_many(F const& functor) : f(functor) {}

  /// Whether there is room for one more tensor of n elements.
  bool has_room(std::int64_t n) const { return count < most && first[count] + (n + chunk - 1) / chunk < INT32_MAX; }
  void add(std::array<tensor_ref const*, N> const& x) {
    std::int64_t const n = x[0]->count();
    bool packs = true;
    for (int k = 0; k < N; ++k) {
      at[count][k] = static_cast<std::byte*>(x[static_cast<std::size_t>(k)]->data);
      std::uintptr_t const bytes = static_cast<std::uintptr_t>(length) * size[k];
      packs = packs && size[k] <= computed_pack<C>::largest &&
              reinterpret_cast<std::uintptr_t>(at[count][k]) % std::min<std::uintptr_t>(bytes, 16) == 0;
    }
    elements[count] = n, by_packs[count] = packs;
    first[count + 1] = first[count] + static_cast<std::int32_t>((n + chunk - 1) / chunk);
    ++count;
  }

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if (!f.counts()) return;
    auto const g = f.prepared();
    int tensor = 0;
    for (int end = count; end - tensor > 1;) {
      int const middle = (tensor + end) / 2;
      if (first[middle] <= b.id) tensor = middle;
      else end = middle;
    }
    std::int64_t const begin = (b.id - first[tensor]) * chunk, left = elements[tensor] - begin,
                       n = left < chunk ? left : chunk, packs = by_packs[tensor] ? n / length : 0;
    update_many const* const self = this;
    b.each(packs, [self, &g, tensor, begin](std::int64_t i) { self->pack(g, tensor, begin + i * length); });
    std::int64_t const rest = begin + packs * length;
    b.each(n - packs * length, [self, &g, tensor, rest](std::int64_t i) { self->one(g, tensor, rest + i); });
  }

 private:
  NEAP_HD NEAP_INLINE std::byte* place(int tensor, int k, std::int64_t index) const {
    return at[tensor][k] + index * size[k];
  }
  template <class G>
  NEAP_HD NEAP_INLINE void one(G const& g, int tensor, std::int64_t index) const {
    C in[N];
    for (int k = 0; k < N; ++k) in[k] = load_element<C>(place(tensor, k, index), element[k]);
    auto const y = single::apply(g, in, std::make_index_sequence<N>{});
    for (int k = 0; k < K; ++k) store_element(place(tensor, k, index), element[k], y.at[k]);
  }
  template <class G>
  NEAP_HD NEAP_INLINE void pack(G const& g, int tensor, std::int64_t index) const {
    typename computed_pack<C>::bits bits[N];
    computed_pack<C> in[N], out[K];
    // All reads before the first conversion: they are under way together.
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < N; ++k) bits[k].load(place(tensor, k, index), size[k]);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < N; ++k) in[k].from(bits[k], element[k]);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j) {
      C of_one[N];
      for (int k = 0; k < N; ++k) of_one[k] = in[k].at[j];
      auto const y = single::apply(g, of_one, std::make_index_sequence<N>{});
      for (int k = 0; k < K; ++k) out[k].at[j] = y.at[k];
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int k = 0; k < K; ++k) out[k].to(element[k]).store(place(tensor, k, index), size[k]);
  }
};

/// Inputs of an update as update_many takes them.
template <std::size_t N>
std::array<tensor_ref const*, N> update_operands(kernel_arguments const& a) {
  std::array<tensor_ref const*, N> x;
  x[0] = &a.in[0], x[N - 1] = &a.in[1];
  for (std::size_t k = 1; k + 1 < N; ++k) x[k] = &a.in[k + 1];
  return x;
}

/// States of an optimizer that update_many knows.
template <class Op>
inline constexpr int update_states = -1;
template <>
inline constexpr int update_states<op::sgd> = 0;
template <>
inline constexpr int update_states<op::momentum> = 1;
template <>
inline constexpr int update_states<op::lion> = 1;
template <>
inline constexpr int update_states<op::adam> = 2;
template <>
inline constexpr int update_states<op::adamw> = 2;

}  // namespace detail

/// Updates by one kind of optimizer, none of which touches what another one writes: those with the same numbers and element
/// types in one launch (in several, where they are more than a launch takes), others one by one.
template <class Op, device_backend B>
  requires(detail::update_states<Op> >= 0)
void run_updates(B& b, std::span<detail::update_call const> calls) {
  constexpr std::size_t operands = detail::update_states<Op> + 2;
  constexpr int n = static_cast<int>(operands);
  using functor = decltype(op::device_functor(std::declval<Op const&>(), calls[0].arguments));
  struct form {
    functor f;
    std::array<dtype, operands> elements;
    bool operator==(form const&) const = default;
  };
  auto const operator_of = [&](std::size_t i) -> Op const& { return *static_cast<Op const*>(calls[i].op); };
  auto const form_of = [&](std::size_t i) {
    form x{op::device_functor(operator_of(i), calls[i].arguments), {}};
    auto const in = detail::update_operands<operands>(calls[i].arguments);
    for (std::size_t k = 0; k < operands; ++k) x.elements[k] = in[k]->element;
    return x;
  };
  std::vector<bool> done(calls.size(), false);
  for (std::size_t i = 0; i < calls.size(); ++i) {  // what lies with gaps has a launch of its own
    for (auto const* x : detail::update_operands<operands>(calls[i].arguments)) done[i] = done[i] || !x->is_dense();
    if (done[i]) run(b, operator_of(i), calls[i].arguments);
    else done[i] = calls[i].arguments.in[0].count() == 0;
  }
  std::vector<std::size_t> same;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (done[i]) continue;
    form const x = form_of(i);
    same.clear();
    for (std::size_t j = i; j < calls.size(); ++j)
      if (!done[j] && form_of(j) == x) done[j] = true, same.push_back(j);
    if (same.empty()) same.push_back(i);  // a number is a NaN
    if (same.size() == 1) {
      run(b, operator_of(i), calls[i].arguments);
      continue;
    }
    for (dtype t : x.elements) with_type(t, [](auto) {});  // kernels know it
    bool const wide = std::find(x.elements.begin(), x.elements.end(), dtype::f64) != x.elements.end();
    auto const launch = [&](auto tag) {
      using kernel = detail::update_many<functor, typename decltype(tag)::type, n, n - 1>;
      static_assert(sizeof(kernel) + 2 * sizeof(std::int64_t) <= 4096, "parameters of a kernel");
      auto const fresh = [&] {
        kernel k(x.f);
        for (int o = 0; o < n; ++o) {
          k.element[o] = x.elements[static_cast<std::size_t>(o)];
          k.size[o] = static_cast<std::uint8_t>(size_of(k.element[o]));
        }
        return k;
      };
      kernel k = fresh();
      for (std::size_t j : same) {
        auto const in = detail::update_operands<operands>(calls[j].arguments);
        if (!k.has_room(in[0]->count())) {
          b.launch(k.first[k.count], k);
          k = fresh();
        }
        k.add(in);
      }
      b.launch(k.first[k.count], k);
    };
    if (wide) launch(type_tag<double>{});
    else launch(type_tag<float>{});
  }
}

}}  // namespace neap::v0
