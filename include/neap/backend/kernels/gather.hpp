// Elements picked along an axis by a tensor of places, and the way back. A block owns lines along the axis, within which
// it adds in order: scatter_add is deterministic.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/units.hpp>

#include <cstdint>
#include <string>

namespace neap::inline v0 {

namespace detail {

/// Walks the lines along `axis` of three tensors that agree on the other axes as far as `index` reaches.
struct gather_lines {
  int rank = 0;
  std::int64_t dims[max_rank]{}, a[max_rank]{}, b[max_rank]{}, c[max_rank]{};  // other axes: extents and strides
  std::int64_t lines = 1, length = 0, a_step = 0, b_step = 0, c_step = 0;

  gather_lines(tensor_ref const& index, tensor_ref const& whole, tensor_ref const& picked, int axis, char const* name) {
    auto const fail = [&](char const* why) { throw_error({name, ": ", why}); };
    if (index.element != dtype::i64) fail("the places must be i64");
    if (index.rank() != whole.rank() || index.rank() != picked.rank()) fail("ranks differ");
    if (!(index.dims == picked.dims)) fail("the places and the picked elements differ in shape");
    for (int k = 0; k < index.rank(); ++k) {
      if (k == axis) continue;
      if (index.dims[k] > whole.dims[k]) fail("the places reach beyond the tensor");
      dims[rank] = index.dims[k];
      a[rank] = index.strides[k], b[rank] = whole.strides[k], c[rank] = picked.strides[k];
      lines *= dims[rank++];
    }
    length = index.dims[axis];
    a_step = index.strides[axis], b_step = whole.strides[axis], c_step = picked.strides[axis];
  }
  NEAP_HD void place(std::int64_t line, std::int64_t& at_a, std::int64_t& at_b, std::int64_t& at_c) const {
    at_a = at_b = at_c = 0;
    for (int k = rank - 1; k >= 0; --k) {
      std::int64_t const at = line % dims[k];
      line /= dims[k];
      at_a += at * a[k], at_b += at * b[k], at_c += at * c[k];
    }
  }
};

inline void check_places(gather_lines const& w, std::int64_t const* index, std::int64_t extent, char const* name) {
  for (std::int64_t line = 0; line < w.lines; ++line) {
    std::int64_t i = 0, x = 0, y = 0;
    w.place(line, i, x, y);
    for (std::int64_t k = 0; k < w.length; ++k) {
      std::int64_t const at = index[i + k * w.a_step];
      if (at < 0 || at >= extent) throw_error({name, ": place ", at, " is not below ", extent});
    }
  }
}

template <class U>
struct gather_kernel {
  static constexpr bool splits = true;  // no index depends on another
  gather_lines w;
  std::int64_t const* index;
  U const* from;
  U* to;
  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    std::int64_t i = 0, x = 0, y = 0;
    w.place(block.id, i, x, y);
    std::int64_t const* const at = index + i;
    U const* const source = from + x;
    U* const target = to + y;
    std::int64_t const a = w.a_step, b = w.b_step, c = w.c_step;
    block.each(w.length, [=](std::int64_t k) { target[k * c] = source[at[k * a] * b]; });
  }
};

template <class T>
struct scatter_add_kernel {
  using element = T;
  using C = compute_t<T>;
  gather_lines w;
  std::int64_t const* index;
  C* to;
  T const* from;
  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    std::int64_t i = 0, x = 0, y = 0;
    w.place(block.id, i, x, y);
    std::int64_t const* const at = index + i;
    C* const target = to + x;
    T const* const source = from + y;
    std::int64_t const length = w.length, a = w.a_step, b = w.b_step, c = w.c_step;
    block.once([=] {  // in order: places may repeat
      for (std::int64_t k = 0; k < length; ++k) target[at[k * a] * b] += static_cast<C>(source[k * c]);
    });
  }
};

}  // namespace detail

/// out[..., k, ...] = in[..., index[..., k, ...], ...] along `axis`; index (i64) and out have one shape, in no smaller
/// extents on the other axes. Throws neap::error if a place is outside, where the backend's memory is the host's.
template <class Backend>
void gather(Backend& b, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index, int axis) {
  if (axis < 0) axis += index.rank();
  detail::expect(out.element == in.element, "gather: element types differ");
  detail::gather_lines const w{index, in, out, axis, "gather"};
  auto const* const at = index.as<std::int64_t const>();
  if constexpr (Backend::addresses_host_memory) detail::check_places(w, at, in.dims[axis], "gather");
  detail::with_element_size(in.element, [&](auto tag) {
    using U = typename decltype(tag)::type;
    b.launch(w.lines, detail::gather_kernel<U>{w, at, in.as<U const>(), out.as<U>()}, w.length);
  });
}

/// Where numbers are added up that `out` is to hold: in place, or of bf16 and f16 as f32 in a workspace, which are rounded
/// once, at the end.
inline bytes_t full_sums_workspace(tensor_type const& out) {
  return is_low(out.element) ? checked_mul(out.count(), 4) : 0;
}
inline tensor_ref full_sums(tensor_ref const& out, void* workspace) {
  return is_low(out.element) ? tensor_ref{workspace, dtype::f32, out.dims, dense_strides(out.dims)} : out;
}

/// out[..., index[..., k, ...], ...] += in[..., k, ...] along `axis`, in the order of k; the gradient of gather, if out
/// is filled with 0 before. What is added to bf16 and f16 is added to f32 (full_sums).
template <class Backend>
void scatter_add(Backend& b, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index, int axis) {
  if (axis < 0) axis += index.rank();
  detail::expect(out.element == computed_in(in.element), "scatter_add: sums are f32, or f64 of f64");
  detail::gather_lines const w{index, out, in, axis, "scatter_add"};
  auto const* const at = index.as<std::int64_t const>();
  if constexpr (Backend::addresses_host_memory) detail::check_places(w, at, out.dims[axis], "scatter_add");
  with_floating(in.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    b.launch(w.lines, detail::scatter_add_kernel<T>{w, at, out.as<compute_t<T>>(), in.as<T const>()}, w.length);
  });
}

}  // namespace neap::inline v0
