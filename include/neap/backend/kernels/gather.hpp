// Elements picked along an axis by a tensor of places, and the way back. A block owns lines along the axis, within which
// it adds in order: scatter_add is deterministic. Where a place may get many terms, f32 sums are compensated (Kahan 1965):
// the error of a sum is that of two roundings, however many terms it has.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/units.hpp>

#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

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

/// sum += x. `lost` is how much too large the sum is, for the terms so far; 0 at first.
template <class C>
NEAP_HD NEAP_INLINE void add_compensated(C& sum, C& lost, C x) {
  C const term = x - lost, next = sum + term, error = (next - sum) - term;
  lost = error - error == C(0) ? error : C(0);  // of infinite sums it is not a number
  sum = next;
}

template <class T>
struct scatter_add_kernel {
  using element = T;
  using C = compute_t<T>;
  gather_lines w, of_lost;
  std::int64_t const* index;
  C* to;
  C* lost;  // null: sums are not compensated
  T const* from;
  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    std::int64_t i = 0, x = 0, y = 0;
    w.place(block.id, i, x, y);
    std::int64_t const* const at = index + i;
    C* const target = to + x;
    T const* const source = from + y;
    std::int64_t const length = w.length, a = w.a_step, b = w.b_step, c = w.c_step;
    if (lost == nullptr)
      return block.once([=] {  // in order: places may repeat
        for (std::int64_t k = 0; k < length; ++k) target[at[k * a] * b] += static_cast<C>(source[k * c]);
      });
    of_lost.place(block.id, i, x, y);
    C* const errors = lost + x;
    std::int64_t const e = of_lost.b_step;
    block.once([=] {
      for (std::int64_t k = 0; k < length; ++k)
        add_compensated(target[at[k * a] * b], errors[at[k * a] * e], static_cast<C>(source[k * c]));
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

/// Where terms are added up, one by one, that `out` is to hold.
struct numbered_sums {
  tensor_ref sums;  // `out`, or of bf16 and f16 as f32: they are rounded once, at the end
  tensor_ref lost;  // of f32 sums of more than sum_run terms: what add_compensated keeps, 0 at first; else without data
};
namespace detail {
inline bool is_compensated(dtype out, std::int64_t terms) {
  return is_floating(out) && out != dtype::f64 && terms > sum_run;
}
}  // namespace detail
/// Bytes of workspace where a place may get so many terms.
inline bytes_t numbered_sums_workspace(tensor_type const& out, std::int64_t terms) {
  return checked_mul(out.count(), (is_low(out.element) ? 4 : 0) + (detail::is_compensated(out.element, terms) ? 4 : 0));
}
/// Where such sums are made; `lost` is cleared, what the sums begin with is the caller's.
template <class Backend>
numbered_sums numbered_sums_of(Backend& b, tensor_ref const& out, std::int64_t terms, void* workspace) {
  auto* next = static_cast<float*>(workspace);
  auto const more = [&] {
    tensor_ref const t{next, dtype::f32, out.dims, dense_strides(out.dims)};
    next += out.count();
    return t;
  };
  numbered_sums s{out, {}};
  if (is_low(out.element)) s.sums = more();
  if (detail::is_compensated(out.element, terms)) fill(b, s.lost = more(), 0);
  return s;
}

/// sums[..., index[..., k, ...], ...] += in[..., k, ...] along `axis`, in the order of k; the gradient of gather, if the
/// sums are filled with 0 before.
template <class Backend>
void scatter_add(Backend& b, numbered_sums const& to, tensor_ref const& in, tensor_ref const& index, int axis) {
  if (axis < 0) axis += index.rank();
  detail::expect(to.sums.element == computed_in(in.element), "scatter_add: sums are f32, or f64 of f64");
  detail::gather_lines const w{index, to.sums, in, axis, "scatter_add"};
  detail::gather_lines of_lost = w;
  if (to.lost.data != nullptr) of_lost = {index, to.lost, in, axis, "scatter_add"};
  auto const* const at = index.as<std::int64_t const>();
  if constexpr (Backend::addresses_host_memory) detail::check_places(w, at, to.sums.dims[axis], "scatter_add");
  with_floating(in.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    b.launch(
        w.lines,
        detail::scatter_add_kernel<T>{w, of_lost, at, to.sums.as<C>(), static_cast<C*>(to.lost.data), in.as<T const>()},
        w.length);
  });
}

}}  // namespace neap::v0
