// Loads, stores, atomics, fences, cp.async.
#pragma once

#include "arithmetic.hpp"
#include "execution.hpp"

#include <cstring>

namespace neap::testing::ptx::memory {

using arithmetic::get;
using arithmetic::put;

/// Operands: the address, then the registers. width: bytes of an element; flag_signed: extended by the sign; mode 1: by
/// the cache of constant data (.nc).
inline void load(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  unsigned const width = i.width, size = width * i.vector;
  auto const* const base = w.operand(i, 0);
  std::uint64_t addresses[warp_size];
  for_lanes(m, [&](int l) {
    std::uint64_t a = base[l] + static_cast<std::uint64_t>(i.immediate);
    if (i.where == space::shared) a = static_cast<std::uint32_t>(a);
    addresses[l] = a;
    std::uint8_t const* const p = w.m->access(w, l, i, i.where, a, size, access_kind::read);
    if (i.mode == 1 && p) w.m->check_unchanged(w, l, i.line, a, size);
    for (int k = 0; k < i.vector; ++k) {
      std::uint64_t v = 0;
      if (p) std::memcpy(&v, p + static_cast<unsigned>(k) * width, width);
      if ((i.flags & flag_signed) && width < 8) {
        unsigned const rest = 64 - 8 * width;
        v = static_cast<std::uint64_t>(static_cast<std::int64_t>(v << rest) >> rest);
      }
      w.operand(i, 1 + k)[l] = v;
    }
  });
  w.m->count_request(i.where, addresses, m, size);
}

inline void store(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  unsigned const width = i.width, size = width * i.vector;
  auto const* const base = w.operand(i, 0);
  std::uint64_t addresses[warp_size];
  for_lanes(m, [&](int l) {
    std::uint64_t a = base[l] + static_cast<std::uint64_t>(i.immediate);
    if (i.where == space::shared) a = static_cast<std::uint32_t>(a);
    addresses[l] = a;
    std::uint8_t bytes[32];
    for (int k = 0; k < i.vector; ++k) {
      std::uint64_t const v = w.operand(i, 1 + k)[l];
      std::memcpy(bytes + static_cast<unsigned>(k) * width, &v, width);
    }
    if (auto* const p = w.m->access(w, l, i, i.where, a, size, access_kind::write, bytes)) std::memcpy(p, bytes, size);
  });
  w.m->count_request(i.where, addresses, m, size);
}

/// Operands: d, address, b, c. flag_no_result: red.
template <class T, class F>
void atomic(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  auto* const d = w.operand(i, 0);
  auto const *const base = w.operand(i, 1), *const b = w.operand(i, 2), *const c = w.operand(i, 3);
  for_lanes(m, [&](int l) {
    ++w.m->out->counts.atomics;
    std::uint64_t a = base[l] + static_cast<std::uint64_t>(i.immediate);
    if (i.where == space::shared) a = static_cast<std::uint32_t>(a);
    std::uint64_t const x = b[l], y = c[l];
    auto* const p = w.m->access(w, l, i, i.where, a, sizeof(T), access_kind::atomic);
    if (!p) {
      if (!(i.flags & flag_no_result)) d[l] = 0;
      return;
    }
    T old{};
    std::memcpy(&old, p, sizeof(T));
    T const next = F{}(old, get<T>(x), get<T>(y));
    std::memcpy(p, &next, sizeof(T));
    if (!(i.flags & flag_no_result)) d[l] = put(old);
  });
}
struct a_add {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    else return arithmetic::add{}(instruction{}, a, b);
  }
};
struct a_add_halves {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t) const { return both<half>(a, b); }
  template <class T>
  static std::uint32_t both(std::uint32_t a, std::uint32_t b) {
    auto const one = [](std::uint32_t x, std::uint32_t y) {
      return static_cast<std::uint32_t>(put(arithmetic::add{}(instruction{}, get<T>(x), get<T>(y))));
    };
    return one(a, b) | one(a >> 16, b >> 16) << 16;
  }
};
struct a_add_bfloats {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t) const {
    return a_add_halves::both<bfloat>(a, b);
  }
};
struct a_min {
  template <class T>
  T operator()(T a, T b, T) const {
    return b < a ? b : a;
  }
};
struct a_max {
  template <class T>
  T operator()(T a, T b, T) const {
    return a < b ? b : a;
  }
};
struct a_and {
  template <class T>
  T operator()(T a, T b, T) const {
    return a & b;
  }
};
struct a_or {
  template <class T>
  T operator()(T a, T b, T) const {
    return a | b;
  }
};
struct a_xor {
  template <class T>
  T operator()(T a, T b, T) const {
    return a ^ b;
  }
};
struct a_exchange {
  template <class T>
  T operator()(T, T b, T) const {
    return b;
  }
};
struct a_swap_if {
  template <class T>
  T operator()(T a, T b, T c) const {
    return a == b ? c : a;
  }
};
struct a_inc {
  template <class T>
  T operator()(T a, T b, T) const {
    return a >= b ? T{0} : static_cast<T>(a + 1);
  }
};
struct a_dec {
  template <class T>
  T operator()(T a, T b, T) const {
    return a == 0 || a > b ? b : static_cast<T>(a - 1);
  }
};

/// mode 1: of the block only.
inline void fence(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  for_lanes(m, [&](int l) { w.m->fence(w, l, i.mode == 1); });
}

/// Operands: shared address, global address, bytes that are read. immediate, target: what is added to the addresses.
inline void copy_async(warp& w, instruction const& i, lanes m) {
  ++w.m->time;
  auto const *const to = w.operand(i, 0), *const from = w.operand(i, 1), *const n = w.operand(i, 2);
  std::uint64_t sources[warp_size], targets[warp_size];
  for_lanes(m, [&](int l) {
    auto const t = static_cast<std::uint32_t>(to[l] + static_cast<std::uint64_t>(i.immediate));
    std::uint64_t const f = from[l] + static_cast<std::uint64_t>(static_cast<std::int64_t>(i.target));
    auto const read = std::min<unsigned>(static_cast<unsigned>(n[l]), i.width);
    w.m->issue_copy(w, l, i, t, f, i.width, read);
    sources[l] = f;
    targets[l] = t;
  });
  w.m->count_request(space::global, sources, m, i.width);
  w.m->count_request(space::shared, targets, m, i.width);
}
inline void commit_copies(warp& w, instruction const&, lanes m) {
  for_lanes(m, [&](int l) { ++w.groups[static_cast<std::size_t>(l)]; });
}
/// immediate: groups that may go on; -1: all copies finish, committed or not.
inline void wait_copies(warp& w, instruction const& i, lanes m) {
  for_lanes(m, [&](int l) {
    auto const g = w.groups[static_cast<std::size_t>(l)];
    auto const left = static_cast<std::uint32_t>(i.immediate);
    w.m->finish_copies(w, l, i.immediate < 0 ? 0xffffffffu : g > left ? g - left : 0);
  });
}

/// mode: the space that is looked for.
inline void is_space(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) {
    auto const window = a[l] >> 32;
    auto const s = window == shared_window  ? space::shared
                   : window == local_window ? space::local
                   : window == param_window ? space::param
                                            : space::global;
    d[l] = s == static_cast<space>(i.mode);
  });
}
/// immediate: the window that is added; width 1: taken away instead.
inline void to_address(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  auto const* const a = w.operand(i, 1);
  for_lanes(m, [&](int l) {
    d[l] = i.width ? a[l] & 0xffffffffu : (a[l] & 0xffffffffu) | static_cast<std::uint64_t>(i.immediate) << 32;
  });
}

}  // namespace neap::testing::ptx::memory
