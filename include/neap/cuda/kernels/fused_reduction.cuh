// Reductions of what a program makes (op::fused) on a device, in one launch: the lines, the splits and the order
// of reduce.cuh, whose terms the interpreter of fused.cuh makes in registers. So the bits are those of the two operators
// one after the other. Where a reduction has splits, their sums are another launch, as without a program.
//
// A thread makes a pack of terms at a time. Beside what the interpreter keeps, there is no room in registers for the
// places of all operands: each is computed where a step reads it.
#pragma once

#include <neap/cuda/kernels/fused.cuh>
#include <neap/cuda/kernels/reduce.cuh>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// The operands of a program that is reduced, along the axes of either kind: its inputs, and x, which is dense, and has no
/// data if it is not kept. Those that are not there are x.
struct reduced_operands {
  static constexpr int count = element_program::max_inputs + 1, result = count - 1;
  index_space<count> kept, reduced;  // `kept` has the data

  reduced_operands(std::span<tensor_ref const> in, tensor_ref const& x, bool const* reduces) {
    tensor_ref parts[2][count];
    tensor_ref const* at[2][count];
    for (int k = 0; k < count; ++k) {
      tensor_ref const& a = static_cast<std::size_t>(k) < in.size() ? in[static_cast<std::size_t>(k)] : x;
      for (int reduced_part : {0, 1}) {
        parts[reduced_part][k] = {reduced_part ? nullptr : a.data, a.element, {}, {}};
        at[reduced_part][k] = &parts[reduced_part][k];
      }
      for (int axis = 0; axis < x.rank(); ++axis) {
        int const own = axis - (x.rank() - a.rank());
        auto& to = parts[reduces[axis] ? 1 : 0][k];
        to.dims.push_back(own < 0 ? 1 : a.dims[own]), to.strides.push_back(own < 0 ? 0 : a.strides[own]);
      }
    }
    kept = {parts[0][result].dims, at[0]};
    reduced = {parts[1][result].dims, at[1]};
  }

  /// Whether `length` terms of a line from each multiple of that number on are a pack of operand k, or one element.
  bool has_packs(int k, int length) const {
    if (reduced.repeats_packs(k, length)) return true;
    std::int64_t const bytes = std::int64_t{length} * kept.size[k], alignment = bytes < 16 ? bytes : 16;
    bool fits = reduced.has_packs(k, length) &&
                reinterpret_cast<std::uintptr_t>(kept.data[k]) % static_cast<std::uintptr_t>(alignment) == 0;
    for (int axis = 0; axis < kept.rank; ++axis) fits = fits && kept.strides[axis][k] % alignment == 0;
    return fits;
  }
  NEAP_HD NEAP_INLINE std::byte* place(int k, std::int64_t output, std::int64_t term) const {
    return kept.data[k] + kept.offset_of(k, output) + reduced.offset_of(k, term);
  }
};

/// As reduce_kernel. Across: where the last axis is kept, and each thread adds the terms of one output.
template <class C, bool Across, class Program = fused_program<C>>
struct fused_reduce_kernel {
  static constexpr bool whole_blocks = Across;
  static constexpr int length = computed_pack<C>::length;
  using pack_type = computed_pack<C>;
  using values = typename Program::values;
  reduced_operands x;
  std::int64_t width, tiles;
  dtype element;  // x's
  bool keeps_x, by_packs;
  reduction_sums<C> sums;
  Program program;

  fused_reduce_kernel(reduced_operands const& operands, int inputs, device_reduction const& d, dtype type, bool keeps,
                      reduction_sums<C> const& s, Program const& p)
      : x(operands),
        width(d.width),
        tiles(d.tiles),
        element(type),
        keeps_x(keeps),
        by_packs(!Across),
        sums(s),
        program(p) {
    for (int k = 0; k < x.count; ++k)
      if (k < inputs || (keeps && k == x.result))
        by_packs = by_packs && x.kept.size[k] <= pack_type::largest && x.has_packs(k, length);
  }

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    fused_reduce_kernel const* const self = this;
    std::int64_t const split = b.id % sums.splits, line = b.id / sums.splits, terms = x.reduced.count;
    std::int64_t const first = terms * split / sums.splits, last = terms * (split + 1) / sums.splits;
    if constexpr (Across) {
      std::int64_t const outer = line / tiles, column = line % tiles * device_tile;
      std::int64_t const n = width - column < device_tile ? width - column : device_tile;
      b.each(n, [self, outer, column, split, first, last](std::int64_t i) {
        std::int64_t const output = outer * self->width + column + i;
        self->sums.put(output, split, self->add(output, first, last));
      });
    } else {
      std::int64_t const packs = (last - first + length - 1) / length;
      C const sum = b.reduce_each(
          packs, sums.start,
          [self, line, first, last](std::int64_t i) {
            std::int64_t const k = first + i * length, end = k + length;
            return self->add(line, k, end < last ? end : last);
          },
          sums.op);
      b.once([self, line, split, sum] { self->sums.put(line, split, sum); });
    }
  }

 private:
  /// Terms [first, last) of an output, one after another.
  NEAP_HD NEAP_INLINE C add(std::int64_t output, std::int64_t first, std::int64_t last) const {
    fused_reduce_kernel const* const self = this;
    terms_in_runs<C> sum(sums);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::int64_t k = first; k < last; k += length) {
      int const n = last - k < length ? static_cast<int>(last - k) : length;
      values y;
      program.interpret(y, [self, output, k, n](values& to, int operand) { self->load(to, operand, output, k, n); });
      round_to(element, y.at, length);
      if (keeps_x) store(y, output, k, n);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int j = 0; j < length; ++j)
        if (j < n) sum.add(y.at[j]);
      sum.after(length);
    }
    return sum.result();
  }
  /// Whether terms [k, k + n) are packs.
  NEAP_HD NEAP_INLINE bool are_packs(std::int64_t k, int n) const {
    return !Across && by_packs && n == length && k % length == 0;
  }
  /// Terms [k, k + n) of an input; what is behind them is anything.
  NEAP_HD NEAP_INLINE void load(values& y, int operand, std::int64_t output, std::int64_t k, int n) const {
    std::byte const* const at = x.kept.data[operand] + x.kept.offset_of(operand, output);
    dtype const t = x.kept.element[operand];
    if (are_packs(k, n) && !x.reduced.repeats(operand)) {
      typename pack_type::bits bits;
      pack_type pack;
      bits.load(at + x.reduced.offset_of(operand, k), x.kept.size[operand]);
      pack.from(bits, t);
      for (int j = 0; j < length; ++j) y.at[j] = pack.at[j];
      return;
    }
    std::byte const* from[length];
    if (x.reduced.rank == 1) {
      std::int64_t const step = x.reduced.strides[0][operand];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int j = 0; j < length; ++j) from[j] = at + (k + (j < n ? j : 0)) * step;
    } else {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int j = 0; j < length; ++j) from[j] = at + x.reduced.offset_of(operand, k + (j < n ? j : 0));
    }
    with_element(t, [&](auto tag) {  // reads are under way together
      using T = typename decltype(tag)::type;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int j = 0; j < length; ++j) y.at[j] = convert<C>(*reinterpret_cast<T const*>(from[j]));
    });
  }
  /// Writes x.
  NEAP_HD NEAP_INLINE void store(values const& y, std::int64_t output, std::int64_t k, int n) const {
    constexpr int result = reduced_operands::result;
    if (are_packs(k, n)) {
      pack_type pack;
      for (int j = 0; j < length; ++j) pack.at[j] = y.at[j];
      pack.to(element).store(x.place(result, output, k), x.kept.size[result]);
      return;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j)
      if (j < n) store_element(x.place(result, output, k + j), element, y.at[j]);
  }
};

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

inline device_reduction device_reduction_of(op::fused const& op, tensor_type const& x) {
  auto const reduces = op.reduces(x.dims);
  return {x.dims, reduces.data()};
}
inline bytes_t device_scratch_of_reduction(op::fused const& op, work_context const& c) {
  auto const x = op.x_type(c.in);
  return device_reduction_of(op, x).scratch(reduce_dtype(x.element, c.out[0].type.element));
}

/// Runs a reduction with steps before it.
template <device_backend B>
void run_reduction_of_program(B& b, op::fused const& op, kernel_arguments const& a) {
  auto const type = op.x_type(a.in);
  auto const reduces = op.reduces(type.dims);
  auto const d = device_reduction_of(op, type);
  tensor_ref const nowhere{nullptr, type.element, type.dims, dense_strides(type.dims)};
  reduced_operands const x(a.in, op.keeps_x ? a.out[1] : nowhere, reduces.data());
  auto const run_on = [&](auto tag, auto across) {
    using C = typename decltype(tag)::type;
    using kernel = fused_reduce_kernel<C, decltype(across)::value>;
    void* const scratch = d.splits > 1 ? b.scratch(d.scratch(dtype_of<C>)) : nullptr;
    reduction_sums<C> const sums(op.kind(), d, a.out[0], scratch);
    kernel const k(x, static_cast<int>(a.in.size()), d, type.element, op.keeps_x, sums, fused_program<C>(op.prologue));
    launch_reduction(b, d, kernel::length, k, sums);
  };
  auto const run_in = [&](auto tag) {
    if (d.across) run_on(tag, std::true_type{});
    else run_on(tag, std::false_type{});
  };
  if (type.element == dtype::f64) run_in(type_tag<double>{});
  else run_in(type_tag<float>{});
}

}}}  // namespace neap::v0::detail
