// Reductions on a device (backend/kernels/reduce.hpp): lines of terms are cut into splits that depend on extents alone, each
// split is added by a block, and the splits in order. Threads add eight terms that follow one another and go on; where the
// last axis is kept, each thread adds the terms of one output. Floats are added in runs of sum_run, and the runs in double.
// No order depends on addresses. Sums are the host's to rounding, integers and extremes are equal.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/cuda/kernels/packs.cuh>
#include <neap/ir/operators/kernels/reduction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// The reduction's operator, known when it runs.
template <class C>
struct reduction_op {
  using may_be_sum = void;
  reduction kind;
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    switch (kind) {
      case reduction::max: return max_op{}(a, b);
      case reduction::min: return min_op{}(a, b);
      case reduction::product: return a * b;
      default: return a + b;
    }
  }
};
template <class C>
C neutral_of(reduction kind) {
  switch (kind) {
    case reduction::max: return neutral<C, max_op>();
    case reduction::min: return neutral<C, min_op>();
    case reduction::product: return neutral<C, product_op>();
    default: return neutral<C, sum_op>();
  }
}

inline constexpr std::int64_t device_splits = 512;      // of all lines together, about
inline constexpr std::int64_t device_split_terms = 32;  // at least
inline constexpr std::int64_t device_tile = 256;        // outputs of a block where the last axis is kept

/// What a reduction's blocks do.
struct device_reduction {
  std::int64_t outputs, terms, width, tiles, splits;
  bool across;

  /// Axes that are 1 count for nothing; those on one side of the last change of kind are joined.
  device_reduction(shape const& in, bool const* reduces) : outputs(1), terms(1), width(1), across(false) {
    int last = in.rank() - 1;
    while (last >= 0 && in[last] == 1) --last;
    for (int axis = 0; axis < in.rank(); ++axis) (reduces[axis] ? terms : outputs) *= in[axis];
    across = last >= 0 && !reduces[last] && terms > 1;
    for (int axis = last; across && axis >= 0 && (in[axis] == 1 || !reduces[axis]); --axis) width *= in[axis];
    tiles = (width + device_tile - 1) / device_tile;
    std::int64_t const lines = across && width > 0 ? outputs / width * tiles : outputs;
    std::int64_t const least = across ? device_split_terms : 128 * device_split_terms;
    splits = std::clamp<std::int64_t>(device_splits / std::max<std::int64_t>(1, lines), 1,
                                      std::max<std::int64_t>(1, terms / least));
  }
  bytes_t scratch(dtype computed) const { return splits > 1 ? checked_mul(splits * outputs, size_of(computed)) : 0; }
};

/// How a reduction's terms are combined, and where the sums of its splits go.
template <class C>
struct reduction_sums {
  reduction_op<C> op;
  C start, divisor;
  std::int64_t outputs, splits;
  C* partial;  // [split, output]; nullptr: there is one split, which goes to
  std::byte* out;
  dtype out_element;

  /// `scratch`: of device_reduction::scratch bytes, or nullptr if there are none.
  reduction_sums(reduction kind, device_reduction const& d, tensor_ref const& to, void* scratch)
      : op{kind},
        start(neutral_of<C>(kind)),
        divisor(kind == reduction::mean ? static_cast<C>(d.terms) : C(1)),
        outputs(d.outputs),
        splits(d.splits),
        partial(static_cast<C*>(scratch)),
        out(static_cast<std::byte*>(to.data)),
        out_element(to.element) {
    expect(to.count() == d.outputs && to.is_dense(), "reduce: the result has the wrong number of elements, or gaps");
  }

  NEAP_HD NEAP_INLINE void write(std::int64_t output, C sum) const {
    with_element(out_element, [&](auto tag) {
      using T = typename decltype(tag)::type;
      reinterpret_cast<T*>(out)[output] = convert<T>(static_cast<C>(sum / divisor));
    });
  }
  NEAP_HD NEAP_INLINE void put(std::int64_t output, std::int64_t split, C sum) const {
    if (partial) partial[split * outputs + output] = sum;
    else write(output, sum);
  }
};

/// The terms of an output, one after another: runs of sum_run, and these in double.
template <class C>
struct terms_in_runs {
  reduction_op<C> op;
  C start, part;
  sum_t<C> total;
  int count = 0;
  NEAP_HD NEAP_INLINE explicit terms_in_runs(reduction_sums<C> const& s)
      : op(s.op),
        start(s.start),
        part(s.start),
        total(static_cast<sum_t<C>>(s.start)) {}
  NEAP_HD NEAP_INLINE void add(C x) { part = op(part, x); }
  /// After n terms more, a divisor of sum_run; none is needed after the last ones.
  NEAP_HD NEAP_INLINE void after(int n) {
    count += n;
    if (count < sum_run) return;
    total = op(total, static_cast<sum_t<C>>(part));
    part = start, count = 0;
  }
  NEAP_HD NEAP_INLINE C result() const { return static_cast<C>(op(total, static_cast<sum_t<C>>(part))); }
};

template <class C>
struct reduce_kernel {
  static constexpr int length = computed_pack<C>::length;
  index_space<1> kept, reduced;  // of the input: along the axes of either kind
  std::int64_t width, tiles;
  bool across, by_packs;
  reduction_sums<C> sums;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    reduce_kernel const* const self = this;
    std::int64_t const split = b.id % sums.splits, line = b.id / sums.splits, terms = reduced.count;
    std::int64_t const first = terms * split / sums.splits, last = terms * (split + 1) / sums.splits;
    if (across) {
      std::int64_t const outer = line / tiles, column = line % tiles * device_tile;
      std::int64_t const n = width - column < device_tile ? width - column : device_tile;
      b.each(n, [self, outer, column, split, first, last](std::int64_t i) {
        std::int64_t const output = outer * self->width + column + i;
        std::byte* from[1];
        self->kept.place(output, from);
        terms_in_runs<C> sum(self->sums);
        std::int64_t k = first;
        for (; k + 4 <= last; k += 4) {  // reads are under way together
          C x[4];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
          for (int j = 0; j < 4; ++j) x[j] = self->term(from[0], k + j);
          for (int j = 0; j < 4; ++j) sum.add(x[j]);
          sum.after(4);
        }
        for (; k < last; ++k) sum.add(self->term(from[0], k));
        self->sums.put(output, split, sum.result());
      });
      return;
    }
    std::byte* from[1];
    kept.place(line, from);
    std::byte const* const at = from[0];
    std::int64_t const packs = (last - first + length - 1) / length;
    C const sum = b.reduce_each(
        packs, sums.start, [self, at, first, last](std::int64_t i) { return self->pack(at, first + i * length, last); },
        sums.op);
    b.once([self, line, split, sum] { self->sums.put(line, split, sum); });
  }

 private:
  NEAP_HD NEAP_INLINE C term(std::byte const* from, std::int64_t k) const {
    std::byte* at[1];
    reduced.place(k, at);
    return load_element<C>(from + (at[0] - reduced.data[0]), reduced.element[0]);
  }
  /// Terms [k, k + length), those below `last`, one after another.
  NEAP_HD NEAP_INLINE C pack(std::byte const* from, std::int64_t k, std::int64_t last) const {
    C sum = sums.start;
    if (by_packs && k + length <= last) {
      std::byte* at[1];
      reduced.place(k, at);
      std::byte const* const here = from + (at[0] - reduced.data[0]);
      if (reinterpret_cast<std::uintptr_t>(here) % 16 == 0) {
        typename computed_pack<C>::bits bits;
        bits.load(here, reduced.size[0]);
        computed_pack<C> x;
        x.from(bits, reduced.element[0]);
        for (int j = 0; j < length; ++j) sum = sums.op(sum, x.at[j]);
        return sum;
      }
    }
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::int64_t j = k; j < k + length && j < last; ++j) sum = sums.op(sum, term(from, j));
    return sum;
  }
};

/// One block an output: its splits in a fixed order.
template <class C>
struct add_splits {
  reduction_sums<C> sums;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const output = b.id;
    C const* const partial = sums.partial + output;
    std::int64_t const stride = sums.outputs;
    C const sum = b.reduce_each(
        sums.splits, sums.start, [partial, stride](std::int64_t i) { return partial[i * stride]; }, sums.op);
    add_splits const* const self = this;
    b.once([self, output, sum] { self->sums.write(output, sum); });
  }
};

/// Launches a kernel on a reduction's lines, whose threads add `length` terms of a line one after another, and then the sum
/// of the splits.
template <class B, class K, class C>
void launch_reduction(B& b, device_reduction const& d, int length, K const& kernel, reduction_sums<C> const& sums) {
  std::int64_t const lines = d.across ? (d.width > 0 ? d.outputs / d.width * d.tiles : 0) : d.outputs;
  std::int64_t const split = d.terms / d.splits;
  b.launch(lines * d.splits, kernel, d.across ? device_tile * std::max<std::int64_t>(8, split) : split / length + 1);
  if (d.splits > 1) b.launch(d.outputs, add_splits<C>{sums}, d.splits);
}

/// reduce_axes (backend/kernels/reduce.hpp) on a device; takes device_reduction::scratch.
template <class B>
void reduce_on_device(B& b, reduction kind, tensor_ref const& out, tensor_ref const& in, bool const* reduces) {
  device_reduction const d(in.dims, reduces);
  with_type(in.element, [](auto) {});
  with_type(out.element, [](auto) {});
  if (d.terms == 0 && kind == reduction::max && out.element == dtype::boolean) kind = reduction::sum;  // false
  tensor_ref kept{in.data, in.element, {}, {}}, reduced = kept;
  for (int axis = 0; axis < in.rank(); ++axis) {
    tensor_ref& to = reduces[axis] ? reduced : kept;
    to.dims.push_back(in.dims[axis]), to.strides.push_back(in.strides[axis]);
  }
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    void* const scratch = d.splits > 1 ? b.scratch(d.scratch(dtype_of<C>)) : nullptr;
    reduce_kernel<C> k{{kept.dims, {&kept}},   {reduced.dims, {&reduced}}, d.width, d.tiles, d.across, false,
                       {kind, d, out, scratch}};
    auto const& r = k.reduced;
    k.by_packs = r.runs(0) && r.size[0] <= computed_pack<C>::largest &&
                 (r.rank == 1 || r.dims[r.rank - 1] % k.length == 0) && (r.rank == 1 || d.splits == 1);
    launch_reduction(b, d, k.length, k, k.sums);
  };
  switch (reduce_dtype(in.element, out.element)) {
    case dtype::f64: return run(type_tag<double>{});
    case dtype::f32: return run(type_tag<float>{});
    default: return run(type_tag<std::int64_t>{});
  }
}

}  // namespace detail

namespace op {

template <reduction_operator Op>
bytes_t device_scratch(Op const& op, work_context const& c) {
  detail::reduced_axes const axes(op.axes, c.in[0].type.rank());
  return neap::detail::device_reduction(c.in[0].type.dims, axes.at)
      .scratch(neap::detail::reduce_dtype(c.in[0].type.element, c.out[0].type.element));
}
template <device_backend B, reduction_operator Op>
void run(B& b, Op const& op, kernel_arguments const& a) {
  detail::reduced_axes const axes(op.axes, a.in[0].rank());
  neap::detail::reduce_on_device(b, Op::kind, a.out[0], a.in[0], axes.at);
}

inline bytes_t device_scratch(sum_to const&, work_context const& c) {
  bool reduces[max_rank]{};
  neap::detail::broadcast_axes(c.in[0].type.dims, c.out[0].type.dims, reduces);
  return neap::detail::device_reduction(c.in[0].type.dims, reduces)
      .scratch(neap::detail::reduce_dtype(c.in[0].type.element, c.out[0].type.element));
}
template <device_backend B>
void run(B& b, sum_to const&, kernel_arguments const& a) {
  bool reduces[max_rank]{};
  neap::detail::broadcast_axes(a.in[0].dims, a.out[0].dims, reduces);
  neap::detail::reduce_on_device(b, reduction::sum, a.out[0], a.in[0], reduces);
}

}  // namespace op

}}  // namespace neap::v0
