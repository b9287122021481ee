// Reductions over any set of axes. The reduced elements are cut into splits that depend on the shapes alone; each split
// is reduced with fixed lanes, and the splits are combined in order: the same bits in every run and on any number of
// threads. Where the last axis is reduced, lanes run along it; where it is kept (a bias gradient), they run across it.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace neap::inline v0 {

enum class reduction : std::uint8_t { sum, mean, max, min, product };

namespace detail {

/// An input apart into kept and reduced axes, adjacent ones of a kind joined where strides allow.
struct reduce_plan {
  std::byte* data = nullptr;
  dtype element = dtype::f32;
  int kept = 0, reduced = 0;
  std::int64_t kept_dims[max_rank + 1]{}, kept_strides[max_rank + 1]{};
  strided inner;  // the reduced axes, as a view at data
  std::int64_t outputs = 1, terms = 1;
  bool across = false;      // lanes across the last kept axis instead of along the reduced ones
  std::int64_t width = 1;   // extent of that axis
  std::int64_t tiles = 1;   // of that axis
  std::int64_t splits = 1;  // of the terms of an output
};

inline constexpr std::int64_t reduce_tile = 256;     // outputs side by side
inline constexpr std::int64_t reduce_split = 16384;  // elements that are worth a split of their own

/// `reduces[axis]` is true where the axis is summed away; axes count from the input's.
inline reduce_plan plan_reduction(tensor_ref const& in, bool const* reduces) {
  reduce_plan p;
  p.data = static_cast<std::byte*>(in.data);
  p.element = in.element;
  p.inner.data = p.data;
  p.inner.element = in.element;
  std::int64_t last_stride = 0;  // of the last axis, whichever its kind
  int last_kind = -1;
  auto join = [&](int& rank, std::int64_t* dims, std::int64_t* strides, int kind, std::int64_t extent,
                  std::int64_t stride) {
    if (rank > 0 && last_kind == kind && last_stride == stride * extent) {
      dims[rank - 1] *= extent;
      strides[rank - 1] = stride;
    } else {
      dims[rank] = extent;
      strides[rank++] = stride;
    }
    last_kind = kind;
    last_stride = stride;
  };
  for (int axis = 0; axis < in.rank(); ++axis) {
    std::int64_t const extent = in.dims[axis];
    (reduces[axis] ? p.terms : p.outputs) *= extent;
    if (extent == 1) continue;
    if (reduces[axis]) join(p.inner.rank, p.inner.dims, p.inner.strides, 1, extent, in.strides[axis]);
    else join(p.kept, p.kept_dims, p.kept_strides, 0, extent, in.strides[axis]);
  }
  p.across = last_kind == 0 && p.inner.rank > 0;
  if (p.inner.rank == 0) p.inner.rank = 1, p.inner.dims[0] = 1, p.inner.strides[0] = 0;
  if (p.across) p.width = p.kept_dims[p.kept - 1];
  p.tiles = (p.width + reduce_tile - 1) / reduce_tile;
  // As many splits as give 64 pieces of work, but none below reduce_split elements.
  std::int64_t const groups = std::max<std::int64_t>(1, p.outputs / std::max<std::int64_t>(1, p.width) * p.tiles);
  std::int64_t const group_elements = p.terms * std::min(p.width, reduce_tile);
  p.splits = std::clamp<std::int64_t>(group_elements / reduce_split, 1,
                                      std::max<std::int64_t>(1, std::min<std::int64_t>(64 / groups, p.terms)));
  return p;
}

template <class C, class Op>
C neutral() {
  constexpr bool floating = std::numeric_limits<C>::has_infinity;
  if constexpr (std::is_same_v<Op, sum_op>) return C(0);
  if constexpr (std::is_same_v<Op, product_op>) return C(1);
  if constexpr (std::is_same_v<Op, max_op>)
    return floating ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::min();
  return floating ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
}

/// A reduction as two compiled loops, so that the walking around them is compiled once a type.
template <class C>
struct reduce_loops {
  C neutral;
  C (*along)(C const* x, std::int64_t n);               // of n elements
  void (*across)(C* sums, C const* x, std::int64_t n);  // sums[i] = op(sums[i], x[i])
};

template <class C, class Op>
__attribute__((noinline)) C reduce_along(C const* x, std::int64_t n) {
  return host_block{}.reduce_each(
      n, neutral<C, Op>(), [=](std::int64_t i) { return x[i]; }, Op{});
}
template <class C, class Op>
__attribute__((noinline)) void reduce_across(C* sums, C const* x, std::int64_t n) {
  host_block{}.each(n, [=](std::int64_t i) { sums[i] = Op{}(sums[i], x[i]); });
}
template <class C, class Op>
reduce_loops<C> loops_of() {
  return {neutral<C, Op>(), &reduce_along<C, Op>, &reduce_across<C, Op>};
}

/// Writes `splits` partial results of each output to partial[split * outputs + output].
template <class C, class Backend>
void reduce_partially(Backend& b, reduce_plan const& p, C* partial, reduce_loops<C> const& op) {
  bool const as_is = p.element == dtype_of<C>;
  std::int64_t const rows = p.width > 0 ? p.outputs / p.width : 0;  // combinations of the kept axes but the last
  std::int64_t const work = (p.terms / p.splits + 1) * (p.across ? std::min(p.width, reduce_tile) : 1);
  auto const kept_offset = [&p](std::int64_t index, int axes) {
    std::int64_t offset = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      offset += index % p.kept_dims[axis] * p.kept_strides[axis];
      index /= p.kept_dims[axis];
    }
    return offset;
  };
  constexpr std::int64_t buffer_size = 512;
  if (!p.across) {
    std::int64_t const grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, work));
    b.parallel_for(p.outputs * p.splits, grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) C room[buffer_size];
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const output = id / p.splits, split = id % p.splits;
        std::int64_t const first = p.terms * split / p.splits, last = p.terms * (split + 1) / p.splits;
        strided terms = p.inner;
        terms.data = p.inner.at(kept_offset(output, p.kept));
        C total = op.neutral;
        if (as_is && terms.strides[terms.rank - 1] == 1) {
          for_each_run(terms, first, last - first, [&](std::int64_t offset, std::int64_t n, std::int64_t) {
            C const* const x = reinterpret_cast<C const*>(terms.data) + offset;
            C const part = op.along(x, n);
            op.across(&total, &part, 1);
          });
        } else {
          for (std::int64_t at = first; at < last; at += buffer_size) {
            std::int64_t const n = std::min(buffer_size, last - at);
            gather(terms, at, n, room);
            C const* const x = room;
            C const part = op.along(x, n);
            op.across(&total, &part, 1);
          }
        }
        partial[split * p.outputs + output] = total;
      }
    });
    return;
  }
  strided row{p.data, p.element, 1, {p.width}, {p.kept_strides[p.kept - 1]}};
  std::int64_t const grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, work));
  b.parallel_for(rows * p.splits * p.tiles, grain, [&, row](std::int64_t begin, std::int64_t end) {
    host_block const block;
    alignas(64) C total[reduce_tile];
    alignas(64) C room[reduce_tile];
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const tile = id % p.tiles, split = id / p.tiles % p.splits, outer = id / (p.tiles * p.splits);
      std::int64_t const first = p.terms * split / p.splits, last = p.terms * (split + 1) / p.splits;
      std::int64_t const column = tile * reduce_tile, n = std::min(reduce_tile, p.width - column);
      std::int64_t const base = kept_offset(outer, p.kept - 1);
      C* const sums = total;
      C const start = op.neutral;
      block.each(n, [=](std::int64_t i) { sums[i] = start; });
      strided const& terms = p.inner;
      for_each_run(terms, first, last - first, [&](std::int64_t offset, std::int64_t length, std::int64_t stride) {
        for (std::int64_t k = 0; k < length; ++k) {
          strided here = row;
          here.data = row.at(base + offset + k * stride);
          C const* x = as_is && row.strides[0] == 1 ? reinterpret_cast<C const*>(here.data) + column : nullptr;
          if (!x) {
            gather(here, column, n, room);
            x = room;
          }
          op.across(sums, x, n);
        }
      });
      C* const to = partial + split * p.outputs + outer * p.width + column;
      block.each(n, [=](std::int64_t i) { to[i] = sums[i]; });
    }
  });
}

template <class C, class Backend>
void reduce_as(Backend& b, reduce_plan const& p, tensor_ref const& out, C* partial, reduce_loops<C> const& op,
               double divisor) {
  bool const in_place = p.splits == 1 && out.element == dtype_of<C> && out.is_dense();
  if (in_place) partial = out.as<C>();
  reduce_partially(b, p, partial, op);
  if (in_place && divisor == 1) return;
  shape const flat{p.outputs};
  tensor_ref const dense{out.data, out.element, flat, {1}};
  strided const to = out.is_dense() ? view_through(flat, dense) : view_through(out.dims, out);
  b.parallel_for(p.outputs, 4096, [&](std::int64_t begin, std::int64_t end) {
    host_block const block;
    alignas(64) C total[reduce_tile];
    C* const sums = total;
    for (std::int64_t at = begin; at < end; at += reduce_tile) {
      std::int64_t const n = std::min(reduce_tile, end - at);
      C const* x = partial + at;
      block.each(n, [=](std::int64_t i) { sums[i] = x[i]; });
      for (std::int64_t split = 1; split < p.splits; ++split) {
        x += p.outputs;
        op.across(sums, x, n);
      }
      if (divisor != 1)
        block.each(n, [=](std::int64_t i) { sums[i] = static_cast<C>(sums[i] / static_cast<C>(divisor)); });
      scatter(to, at, n, static_cast<C const*>(sums));
    }
  });
}

/// What a reduction is computed in.
inline dtype reduce_dtype(dtype in, dtype out) {
  if (in == dtype::f64 || out == dtype::f64 || (!is_floating(in) && is_floating(out))) return dtype::f64;
  return is_floating(in) ? dtype::f32 : dtype::i64;
}

/// Reduced axes of `in` so that what is left has the shape of `out`, right-aligned, as broadcasting is.
inline void broadcast_axes(shape const& in, shape const& out, bool* reduces) {
  int const missing = in.rank() - out.rank();
  expect(missing >= 0, "sum_to_shape: the result has more axes than the input");
  for (int axis = 0; axis < in.rank(); ++axis) {
    reduces[axis] = axis < missing || (out[axis - missing] == 1 && in[axis] != 1);
    if (!reduces[axis] && in[axis] != out[axis - missing])
      throw_error({"sum_to_shape: ", in, " does not reduce to ", out});
  }
}

template <class Backend>
void reduce_axes(Backend& b, reduction kind, tensor_ref const& out, tensor_ref const& in, bool const* reduces,
                 void* workspace) {
  auto const p = plan_reduction(in, reduces);
  expect(out.count() == p.outputs, "reduce: the result has the wrong number of elements");
  if (p.terms == 0 && kind == reduction::max && out.element == dtype::boolean) kind = reduction::sum;  // false
  double const divisor = kind == reduction::mean ? static_cast<double>(p.terms) : 1;
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    C* const partial = static_cast<C*>(workspace);
    switch (kind) {
      case reduction::sum:
      case reduction::mean: return reduce_as<C>(b, p, out, partial, loops_of<C, sum_op>(), divisor);
      case reduction::max: return reduce_as<C>(b, p, out, partial, loops_of<C, max_op>(), divisor);
      case reduction::min: return reduce_as<C>(b, p, out, partial, loops_of<C, min_op>(), divisor);
      case reduction::product: return reduce_as<C>(b, p, out, partial, loops_of<C, product_op>(), divisor);
    }
  };
  switch (reduce_dtype(in.element, out.element)) {
    case dtype::f64: return run(type_tag<double>{});
    case dtype::f32: return run(type_tag<float>{});
    default: return run(type_tag<std::int64_t>{});
  }
}

/// Room for the partial results, whatever the input's strides: there are splits only while there are at most 64 groups
/// of outputs.
inline bytes_t reduce_bytes(tensor_type const& in, dtype out, bool const* reduces) {
  std::int64_t outputs = 1;
  for (int axis = 0; axis < in.rank(); ++axis)
    if (!reduces[axis]) outputs *= in.dims[axis];
  bool const may_split = in.count() >= 2 * reduce_split && outputs <= 64 * reduce_tile;
  if (!may_split && reduce_dtype(in.element, out) == out) return 0;
  std::int64_t const partials = may_split ? std::min(outputs * 64, 64 * reduce_tile) : outputs;
  return checked_mul(partials, size_of(reduce_dtype(in.element, out)));
}

}  // namespace detail

/// Bytes of workspace for reducing an input of this type over `axes` (negative ones count from the end) to a dense
/// output of element type `out`.
inline bytes_t reduce_workspace(tensor_type const& in, dtype out, std::span<int const> axes) {
  bool reduces[max_rank]{};
  for (int axis : axes) reduces[axis < 0 ? axis + in.rank() : axis] = true;
  return detail::reduce_bytes(in, out, reduces);
}

/// out = the reduction of `in` over `axes`; out has the kept extents in order, with or without ones for the others.
/// Computed in float (f32, bf16, f16), double (f64, or integers to floating), int64 (integers). Over no elements: 0 for
/// sum, 1 for product, -inf and inf for max and min (false and true), NaN for mean. `out` is dense; an f64 one makes any sum double.
template <class Backend>
void reduce(Backend& b, reduction kind, tensor_ref const& out, tensor_ref const& in, std::span<int const> axes,
            void* workspace) {
  bool reduces[max_rank]{};
  for (int axis : axes) reduces[axis < 0 ? axis + in.rank() : axis] = true;
  detail::reduce_axes(b, kind, out, in, reduces, workspace);
}

/// Bytes of workspace for sum_to_shape.
inline bytes_t sum_to_shape_workspace(tensor_type const& in, tensor_type const& out) {
  bool reduces[max_rank]{};
  detail::broadcast_axes(in.dims, out.dims, reduces);
  return detail::reduce_bytes(in, out.element, reduces);
}

/// The gradient of a broadcast: sums `in` over the axes along which out's shape was broadcast to in's.
template <class Backend>
void sum_to_shape(Backend& b, tensor_ref const& out, tensor_ref const& in, void* workspace) {
  bool reduces[max_rank]{};
  detail::broadcast_axes(in.dims, out.dims, reduces);
  detail::reduce_axes(b, reduction::sum, out, in, reduces, workspace);
}

}  // namespace neap::inline v0
