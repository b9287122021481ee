// Dropout on a device (backend/kernels/dropout.hpp): the host's mask and the host's bits. The step's number is read on the
// device.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/cuda/kernels/packs.cuh>
#include <neap/ir/operators/kernels/dropout.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

template <class C>
struct dropout_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr int length = computed_pack<C>::length;
  static constexpr std::int64_t chunk = 2 * cuda_block_threads * length;
  index_space<2> x;  // the input, the output
  int by_packs;
  std::int64_t first;
  std::uint64_t key;
  std::int64_t const* step;
  float rate;
  C scale;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const begin = b.id * chunk, left = x.count - begin, n = left < chunk ? left : chunk;
    dropout_kernel const* const self = this;
    auto const now = static_cast<std::uint64_t>(*step);
    std::int64_t const packs = by_packs ? n / length : 0;
    b.each(packs, [self, begin, now](std::int64_t i) { self->pack(begin + i * length, now); });
    std::int64_t const rest = begin + packs * length;
    b.each(n - packs * length, [self, rest, now](std::int64_t i) {
      std::byte* at[2];
      self->x.place(rest + i, at);
      C const v = load_element<C>(at[0], self->x.element[0]);
      bool const keeps = dropout_keeps(self->key, now, self->first + rest + i, self->rate);
      store_element(at[1], self->x.element[1], keeps ? v * self->scale : C(0));
    });
  }

 private:
  struct words {
    std::uint32_t at[4];
  };
  /// A draw decides four elements: where there is none of another four among those of a pack, each word is drawn once.
  NEAP_HD NEAP_INLINE void pack(std::int64_t index, std::uint64_t now) const {
    std::byte* at[2];
    x.place(index, at);
    typename computed_pack<C>::bits bits;
    bits.load(at[0], x.size[0]);
    computed_pack<C> in, out;
    in.from(bits, x.element[0]);
    auto const i = static_cast<std::uint64_t>(first + index);
    words four{};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j) {
      if (j % 4 == 0) four = __builtin_bit_cast(words, philox{key}((i + static_cast<unsigned>(j)) / 4, now));
      std::uint32_t const word = length >= 4 ? four.at[j % 4] : four.at[(i + static_cast<unsigned>(j)) % 4];
      out.at[j] = unit_float(word) < rate ? C(0) : in.at[j] * scale;
    }
    out.to(x.element[1]).store(at[1], x.size[1]);
  }
};

}  // namespace detail

namespace op {

template <device_backend B>
void run(B& b, dropout const& op, kernel_arguments const& a) {
  tensor_ref const &x = a.in[0], &y = a.out[0];
  neap::detail::index_space<2> const space(y.dims, {&x, &y});
  auto const launch = [&](auto tag) {
    using C = typename decltype(tag)::type;
    using kernel = neap::detail::dropout_kernel<C>;
    constexpr int each = kernel::length < 4 ? kernel::length : 4;  // elements of a pack and of a draw begin together
    bool const by_packs =
        op.first % each == 0 && space.has_packs(0, kernel::length) && space.has_packs(1, kernel::length);
    kernel const k{space,
                   by_packs ? 1 : 0,
                   op.first,
                   static_cast<std::uint64_t>(op.key),
                   a.in[1].as<std::int64_t const>(),
                   static_cast<float>(op.p),
                   op.p < 1 ? static_cast<C>(1 / (1 - op.p)) : C(0)};
    launch_in_chunks(b, space.count, k);
  };
  if (x.element == dtype::f64) launch(type_tag<double>{});
  else launch(type_tag<float>{});
}

}  // namespace op

}}  // namespace neap::v0
