// Reductions over any set of axes. The reduced elements are cut into splits that depend on the shapes alone; each split
// is reduced with fixed lanes, and the splits are combined in order: the same bits in every run and on any number of
// threads. Where the last axis is reduced, lanes run along it; where it is kept (a bias gradient), they run across it.
// Floats are combined in runs of few terms, and the runs in double: a sum of many has the error of a few roundings.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/kernel_options.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace neap { inline namespace v0 {

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

/// Gives elements [first, first + count) of those that are reduced.
template <class C>
using term_maker = C const* (*)(void const* context, std::int64_t first, std::int64_t count);

/// A reduction as compiled loops, so that the walking around them is compiled once a type.
template <class C>
struct reduce_loops {
  C neutral;
  C (*along)(C const* x, std::int64_t n);  // of n elements
  /// sums[i] = op(... op(sums[i], x[i]), ...) for n columns of rows that are `stride` apart
  void (*across)(C* sums, C const* x, std::int64_t stride, std::int64_t rows, std::int64_t n);
  void (*join)(sum_t<C>* sums, C const* x, std::int64_t n);  // sums[i] = op(sums[i], x[i])
  /// op of n elements that come in pieces, as `along`.
  C (*made)(void const* context, term_maker<C> make, std::int64_t n);
};

template <class C, class Op>
__attribute__((noinline)) C reduce_along(C const* x, std::int64_t n) {
  return host_block{}.reduce_each(
      n, neutral<C, Op>(), [=](std::int64_t i) { return x[i]; }, Op{});
}
template <class C, class Op>
__attribute__((noinline)) void reduce_across(C* sums, C const* x, std::int64_t stride, std::int64_t rows,
                                             std::int64_t n) {
  host_block const block;
  for (; rows >= 4; rows -= 4, x += 4 * stride) {
    C const *const second = x + stride, *const third = second + stride, *const fourth = third + stride;
    block.each(n, [=](std::int64_t i) {
      C const two = Op{}(Op{}(sums[i], x[i]), second[i]);
      sums[i] = Op{}(Op{}(two, third[i]), fourth[i]);
    });
  }
  for (; rows > 0; --rows, x += stride) block.each(n, [=](std::int64_t i) { sums[i] = Op{}(sums[i], x[i]); });
}
template <class C, class Op>
__attribute__((noinline)) void reduce_join(sum_t<C>* sums, C const* x, std::int64_t n) {
  host_block{}.each(n, [=](std::int64_t i) { sums[i] = Op{}(sums[i], static_cast<sum_t<C>>(x[i])); });
}

inline constexpr std::int64_t reduce_buffer = 512;  // terms that are made or converted at once

template <class C, class Op>
__attribute__((noinline)) C reduce_made(void const* context, term_maker<C> make, std::int64_t n) {
  host_block::pieces<C, Op> all(neutral<C, Op>());
  for (std::int64_t at = 0; at < n; at += reduce_buffer) {
    std::int64_t const some = std::min(reduce_buffer, n - at);
    C const* const x = make(context, at, some);
    all.add_each(some, [=](std::int64_t i) { return x[i]; });
  }
  return all.result();
}
template <class C, class Op>
reduce_loops<C> loops_of() {
  return {neutral<C, Op>(), &reduce_along<C, Op>, &reduce_across<C, Op>, &reduce_join<C, Op>, &reduce_made<C, Op>};
}

/// Results side by side, to which rows of terms are added.
template <class C>
class reduced_columns {
 public:
  /// Of n columns.
  reduced_columns(reduce_loops<C> const& op, std::int64_t n) : op_(op), n_(n) {
    std::fill_n(part_, n, op.neutral);
    std::fill_n(joined_, n, static_cast<sum_t<C>>(op.neutral));
  }
  void add(C const* x, std::int64_t stride, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows;) {
      if (rows_ == sum_run) join();
      std::int64_t const some = std::min<std::int64_t>(sum_run - rows_, rows - row);
      op_.across(part_, x + row * stride, stride, some, n_);
      row += some, rows_ += some;
    }
  }
  void write(C* to) {
    join();
    std::transform(joined_, joined_ + n_, to, [](sum_t<C> x) { return static_cast<C>(x); });
  }

 private:
  void join() {
    op_.join(joined_, part_, n_);
    std::fill_n(part_, n_, op_.neutral);
    rows_ = 0;
  }
  reduce_loops<C> const& op_;
  std::int64_t n_, rows_ = 0;
  alignas(64) C part_[reduce_tile];
  alignas(64) sum_t<C> joined_[reduce_tile];
};

/// The terms of a reduction as they lie in a tensor.
template <class C>
struct tensor_terms {
  reduce_plan const& p;

  /// Terms [first, last) of the output whose terms are at `base` elements.
  C along(std::int64_t base, std::int64_t first, std::int64_t last, reduce_loops<C> const& op) const {
    alignas(64) C room[reduce_buffer];
    strided terms = p.inner;
    terms.data = p.inner.at(base);
    auto total = static_cast<sum_t<C>>(op.neutral);
    auto const add = [&](C const* x, std::int64_t n) {
      C const part = op.along(x, n);
      op.join(&total, &part, 1);
    };
    if (p.element == dtype_of<C> && terms.strides[terms.rank - 1] == 1) {
      for_each_run(terms, first, last - first, [&](std::int64_t offset, std::int64_t n, std::int64_t) {
        add(reinterpret_cast<C const*>(terms.data) + offset, n);
      });
      return static_cast<C>(total);
    }
    for (std::int64_t at = first; at < last; at += reduce_buffer) {
      std::int64_t const n = std::min(reduce_buffer, last - at);
      gather(terms, at, n, room);
      add(room, n);
    }
    return static_cast<C>(total);
  }
  /// Adds terms [first, last) of n outputs side by side, from `column` of those at `base` on.
  void across(std::int64_t base, std::int64_t column, std::int64_t n, std::int64_t first, std::int64_t last,
              reduced_columns<C>& sums) const {
    constexpr std::int64_t most = sum_run;  // rows that are converted at once
    alignas(64) C room[most * reduce_tile];
    strided const row{p.data, p.element, 1, {p.width}, {p.kept_strides[p.kept - 1]}};
    bool const as_is = p.element == dtype_of<C> && row.strides[0] == 1;
    for_each_run(p.inner, first, last - first, [&](std::int64_t offset, std::int64_t length, std::int64_t stride) {
      if (as_is) return sums.add(reinterpret_cast<C const*>(row.at(base + offset)) + column, stride, length);
      for (std::int64_t k = 0; k < length; k += most) {
        std::int64_t const rows = std::min(most, length - k);
        for (std::int64_t r = 0; r < rows; ++r) {
          strided here = row;
          here.data = row.at(base + offset + (k + r) * stride);
          gather(here, column, n, room + r * n);
        }
        sums.add(room, n, rows);
      }
    });
  }
};

/// Writes `splits` partial results of each output to partial[split * outputs + output]. `terms`: as tensor_terms.
template <class C, class Backend, class Terms>
void reduce_partially(Backend& b, reduce_plan const& p, Terms const& terms, C* partial, reduce_loops<C> const& op) {
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
  std::int64_t const grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, work));
  if (!p.across) {
    b.parallel_for(p.outputs * p.splits, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t id = begin; id < end; ++id) {
        std::int64_t const output = id / p.splits, split = id % p.splits;
        std::int64_t const first = p.terms * split / p.splits, last = p.terms * (split + 1) / p.splits;
        partial[split * p.outputs + output] = terms.along(kept_offset(output, p.kept), first, last, op);
      }
    });
    return;
  }
  b.parallel_for(rows * p.splits * p.tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t id = begin; id < end; ++id) {
      std::int64_t const tile = id % p.tiles, split = id / p.tiles % p.splits, outer = id / (p.tiles * p.splits);
      std::int64_t const first = p.terms * split / p.splits, last = p.terms * (split + 1) / p.splits;
      std::int64_t const column = tile * reduce_tile, n = std::min(reduce_tile, p.width - column);
      reduced_columns<C> sums(op, n);
      terms.across(kept_offset(outer, p.kept - 1), column, n, first, last, sums);
      sums.write(partial + split * p.outputs + outer * p.width + column);
    }
  });
}

template <class C, class Backend, class Terms>
void reduce_as(Backend& b, reduce_plan const& p, Terms const& terms, tensor_ref const& out, C* partial,
               reduce_loops<C> const& op, double divisor) {
  bool const in_place = p.splits == 1 && out.element == dtype_of<C> && out.is_dense();
  if (in_place) partial = out.as<C>();
  reduce_partially(b, p, terms, partial, op);
  if (in_place && divisor == 1) return;
  shape const flat{p.outputs};
  tensor_ref const dense{out.data, out.element, flat, {1}};
  strided const to = out.is_dense() ? view_through(flat, dense) : view_through(out.dims, out);
  b.parallel_for(p.outputs, 4096, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) sum_t<C> total[reduce_tile];
    alignas(64) C result[reduce_tile];
    for (std::int64_t at = begin; at < end; at += reduce_tile) {
      std::int64_t const n = std::min(reduce_tile, end - at);
      C const* x = partial + at;
      host_block{}.each(n, [=, t = total](std::int64_t i) { t[i] = static_cast<sum_t<C>>(x[i]); });
      for (std::int64_t split = 1; split < p.splits; ++split) {
        x += p.outputs;
        op.join(total, x, n);
      }
      for (std::int64_t i = 0; i < n; ++i)
        result[i] = static_cast<C>(divisor == 1 ? total[i] : total[i] / static_cast<sum_t<C>>(divisor));
      scatter(to, at, n, static_cast<C const*>(result));
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

/// A reduction of `terms`, computed in C. `workspace`: reduce_bytes().
template <class C, class Backend, class Terms>
void reduce_by_kind(Backend& b, reduction kind, reduce_plan const& p, Terms const& terms, tensor_ref const& out,
                    void* workspace) {
  expect(out.count() == p.outputs, "reduce: the result has the wrong number of elements");
  if (p.terms == 0 && kind == reduction::max && out.element == dtype::boolean) kind = reduction::sum;  // false
  C* const partial = static_cast<C*>(workspace);
  switch (kind) {
    case reduction::sum: return reduce_as<C>(b, p, terms, out, partial, loops_of<C, sum_op>(), 1);
    case reduction::mean:
      return reduce_as<C>(b, p, terms, out, partial, loops_of<C, sum_op>(), static_cast<double>(p.terms));
    case reduction::max: return reduce_as<C>(b, p, terms, out, partial, loops_of<C, max_op>(), 1);
    case reduction::min: return reduce_as<C>(b, p, terms, out, partial, loops_of<C, min_op>(), 1);
    case reduction::product: return reduce_as<C>(b, p, terms, out, partial, loops_of<C, product_op>(), 1);
  }
}

template <class Backend>
void reduce_axes(Backend& b, reduction kind, tensor_ref const& out, tensor_ref const& in, bool const* reduces,
                 void* workspace) {
  auto const p = plan_reduction(in, reduces);
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    reduce_by_kind<C>(b, kind, p, tensor_terms<C>{p}, out, workspace);
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

}}  // namespace neap::v0
