// Packs: some elements of one type next to one another, moved by accesses of up to 16 bytes and converted in registers.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/core/config.hpp>
#include <neap/cuda/kernels/index_space.cuh>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// Words (of 4 bytes) [0, Words) of a pack; `Words` is 1, 2 or a multiple of 4, and the address is aligned to so many, 16
/// bytes at most. By types of CUDA's: the compiler would take a struct of ours apart.
template <int Words>
NEAP_HD NEAP_INLINE void load_words(std::byte const* from, std::uint32_t* to) {
#if defined(__CUDA_ARCH__)
  if constexpr (Words == 1) {
    to[0] = *reinterpret_cast<std::uint32_t const*>(from);
  } else if constexpr (Words == 2) {
    uint2 const v = *reinterpret_cast<uint2 const*>(from);
    to[0] = v.x, to[1] = v.y;
  } else {
#pragma unroll
    for (int k = 0; k < Words / 4; ++k) {
      uint4 const v = reinterpret_cast<uint4 const*>(from)[k];
      to[4 * k] = v.x, to[4 * k + 1] = v.y, to[4 * k + 2] = v.z, to[4 * k + 3] = v.w;
    }
  }
#else
  std::memcpy(to, from, 4 * Words);
#endif
}
template <int Words>
NEAP_HD NEAP_INLINE void store_words(std::byte* to, std::uint32_t const* from) {
#if defined(__CUDA_ARCH__)
  if constexpr (Words == 1) {
    *reinterpret_cast<std::uint32_t*>(to) = from[0];
  } else if constexpr (Words == 2) {
    *reinterpret_cast<uint2*>(to) = uint2{from[0], from[1]};
  } else {
#pragma unroll
    for (int k = 0; k < Words / 4; ++k)
      reinterpret_cast<uint4*>(to)[k] = uint4{from[4 * k], from[4 * k + 1], from[4 * k + 2], from[4 * k + 3]};
  }
#else
  std::memcpy(to, from, 4 * Words);
#endif
}

/// Length elements as they lie in memory, of at most 4 * Words bytes.
template <int Length, int Words>
struct pack_bits {
  std::uint32_t at[Words];

  /// `size`: bytes of an element.
  NEAP_HD NEAP_INLINE void load(std::byte const* from, int size) {
    if constexpr (2 * Length <= Words)
      if (size == 8) return load_words<2 * Length>(from, at);
    if (size == 4) return load_words<Length>(from, at);
    if (size == 2) return load_words<Length / 2>(from, at);
    load_bytes(from);
  }
  NEAP_HD NEAP_INLINE void store(std::byte* to, int size) const {
    if constexpr (2 * Length <= Words)
      if (size == 8) return store_words<2 * Length>(to, at);
    if (size == 4) return store_words<Length>(to, at);
    if (size == 2) return store_words<Length / 2>(to, at);
    store_bytes(to);
  }
  template <class T>
  NEAP_HD NEAP_INLINE T get(int j) const {
    if constexpr (sizeof(T) == 8) {
      return of_bits<T>(at[(2 * j) % Words] | std::uint64_t{at[(2 * j + 1) % Words]} << 32);
    } else if constexpr (sizeof(T) == 4) {
      return of_bits<T>(at[j]);
    } else if constexpr (sizeof(T) == 2) {
      return of_bits<T>(static_cast<std::uint16_t>(at[j / 2] >> 16 * (j % 2)));
    } else {
      return static_cast<T>(static_cast<std::uint8_t>(at[j / 4] >> 8 * (j % 4)));
    }
  }
  /// All are put in order, from 0 on: the first in a word overwrites it.
  template <class T>
  NEAP_HD NEAP_INLINE void put(int j, T x) {
    if constexpr (sizeof(T) == 8) {
      auto const bits = of_bits<std::uint64_t>(x);
      at[(2 * j) % Words] = static_cast<std::uint32_t>(bits);
      at[(2 * j + 1) % Words] = static_cast<std::uint32_t>(bits >> 32);
    } else if constexpr (sizeof(T) == 4) {
      at[j] = of_bits<std::uint32_t>(x);
    } else if constexpr (sizeof(T) == 2) {
      std::uint32_t const bits = of_bits<std::uint16_t>(x);
      at[j / 2] = j % 2 == 0 ? bits : at[j / 2] | bits << 16;
    } else {
      std::uint32_t const bits = static_cast<std::uint8_t>(x);
      at[j / 4] = j % 4 == 0 ? bits : at[j / 4] | bits << 8 * (j % 4);
    }
  }

 private:
  /// (nvcc 13 fails on __builtin_bit_cast here.)
  template <class To, class From>
  NEAP_HD NEAP_INLINE static To of_bits(From const& x) {
    To y;
    static_assert(sizeof y == sizeof x);
    std::memcpy(static_cast<void*>(&y), &x, sizeof y);
    return y;
  }
  NEAP_HD NEAP_INLINE void load_bytes(std::byte const* from) {
    if constexpr (Length >= 4) load_words<Length / 4>(from, at);
    else at[0] = *reinterpret_cast<std::uint16_t const*>(from);
  }
  NEAP_HD NEAP_INLINE void store_bytes(std::byte* to) const {
    if constexpr (Length >= 4) store_words<Length / 4>(to, at);
    else *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(at[0]);
  }
};

/// A pack of numbers that are computed in C: of all elements of up to 4 bytes where C has 4, else of all types.
template <class C>
struct computed_pack {
  static constexpr int length = sizeof(C) == 4 ? 8 : 2;
  static constexpr int words = sizeof(C) == 4 ? 8 : 4;
  static constexpr int largest = 4 * words / length;  // bytes of an element
  using bits = pack_bits<length, words>;
  C at[length];

  NEAP_HD NEAP_INLINE void from(bits const& b, dtype t) {
    with_element(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) <= largest) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int j = 0; j < length; ++j) at[j] = convert<C>(b.template get<T>(j));
      }
    });
  }
  NEAP_HD NEAP_INLINE bits to(dtype t) const {
    bits b{};
    with_element(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) <= largest) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int j = 0; j < length; ++j) b.put(j, convert<T>(at[j]));
      }
    });
    return b;
  }
};

/// x, of which the compiler knows nothing: it does not mix the computing of x with what is computed of it. Code on both
/// sides of which an element passes here is contracted alike wherever it is inlined.
template <class C>
NEAP_HD NEAP_INLINE C opaque(C x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<C, float>) asm("" : "+f"(x));
  else if constexpr (std::is_same_v<C, double>) asm("" : "+d"(x));
  else asm("" : "+l"(x));
#endif
  return x;
}

}}}  // namespace neap::v0::detail
