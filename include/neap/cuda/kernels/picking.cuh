// Elements picked by numbers on a device, and the way back (ir/operators/picking.hpp). Numbers are not checked, as they are
// in the device's memory: one that is out of range picks the nearest there is, and adds nothing.
//
// What is added to one place is added by one thread in the order of the numbers: bits are the host's, and nothing is added
// atomically.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/copy.cuh>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/cuda/kernels/packs.cuh>
#include <neap/ir/operators/kernels/picking.hpp>

#if defined(__CUDACC__)
#include <neap/cuda/check.hpp>

#include <cub/device/device_radix_sort.cuh>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 {

namespace detail {

/// out = the elements of type U that numbers pick along an axis of the source. A block does a chunk.
template <class U>
struct pick_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr int length = 16 / int{sizeof(U)};
  static constexpr std::int64_t chunk = 4 * cuda_block_threads * length;
  index_space<3> x;             // the source without the axis, the numbers, the output
  std::int64_t extent, stride;  // of the source's axis; the stride in bytes
  bool by_packs;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = x.count - first, n = left < chunk ? left : chunk;
    pick_kernel const* const self = this;
    std::int64_t const packs = by_packs ? n / length : 0;
    b.each(packs, [self, first](std::int64_t i) {
      std::byte* at[3];
      std::uint32_t words[4];
      load_words<4>(self->source(first + i * length, at), words);
      store_words<4>(at[2], words);
    });
    std::int64_t const rest = first + packs * length;
    b.each(n - packs * length, [self, rest](std::int64_t i) {
      std::byte* at[3];
      U const* const from = reinterpret_cast<U const*>(self->source(rest + i, at));
      *reinterpret_cast<U*>(at[2]) = *from;
    });
  }

 private:
  NEAP_HD NEAP_INLINE std::byte const* source(std::int64_t index, std::byte* (&at)[3]) const {
    x.place(index, at);
    std::int64_t const number = *reinterpret_cast<std::int64_t const*>(at[1]);
    return at[0] + stride * (number < 0 ? 0 : number < extent ? number : extent - 1);
  }
};

/// out[...] = in[..., index[...], ...] along `axis`; all broadcast to out's shape but for in's axis.
template <class B>
void pick_on_device(B& b, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index, int axis) {
  if (out.count() == 0 || in.dims[axis] == 0) return;
  tensor_ref without = in;
  without.dims[axis] = out.dims[axis], without.strides[axis] = 0;
  index_space<3> const space(out.dims, {&without, &index, &out});
  with_element_size(out.element, [&](auto tag) {
    using kernel = pick_kernel<typename decltype(tag)::type>;
    bool const aligned = in.strides[axis] * size_of(in.element) % 16 == 0;
    kernel const k{
        space, in.dims[axis], in.strides[axis] * size_of(in.element),
        aligned && space.has_packs(0, kernel::length) && space.repeats(1) && space.has_packs(2, kernel::length)};
    launch_in_chunks(b, space.count, k);
  });
}

/// to[..., index[k], ...] += from[..., k, ...] along an axis, in the order of k, computed in C; compensated where there
/// is `lost` (add_compensated). A thread does a line.
template <class C>
struct scatter_lines {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = cuda_block_threads;
  gather_lines w, of_lost;
  std::int64_t const* index;
  std::byte *to, *from;
  C* lost;
  std::int64_t extent;
  dtype sum, element;  // of `to` and `from`
  std::int64_t sum_size, size;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = w.lines - first;
    scatter_lines const* const self = this;
    b.each(left < chunk ? left : chunk, [self, first](std::int64_t i) {
      gather_lines const& lines = self->w;
      std::int64_t at = 0, target = 0, source = 0;
      C* errors = nullptr;
      if (self->lost != nullptr) {
        self->of_lost.place(first + i, at, target, source);
        errors = self->lost + target;
      }
      lines.place(first + i, at, target, source);
      for (std::int64_t k = 0; k < lines.length; ++k) {
        std::int64_t const number = self->index[at + k * lines.a_step];
        if (number < 0 || number >= self->extent) continue;
        std::byte* const y = self->to + (target + number * lines.b_step) * self->sum_size;
        std::byte const* const x = self->from + (source + k * lines.c_step) * self->size;
        C total = load_element<C>(y, self->sum);
        C const term = load_element<C>(x, self->element);
        if (errors != nullptr) add_compensated(total, errors[number * self->of_lost.b_step], term);
        else total += term;
        store_element(y, self->sum, total);
      }
    });
  }
};

template <class B>
void scatter_on_device(B& b, numbered_sums const& to, tensor_ref const& in, tensor_ref const& index, int axis) {
  tensor_ref const& out = to.sums;
  with_type(out.element, [](auto) {});
  gather_lines const w{index, out, in, axis, "scatter_add"};
  gather_lines of_lost = w;
  if (to.lost.data != nullptr) of_lost = {index, to.lost, in, axis, "scatter_add"};
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    scatter_lines<C> const k{w,
                             of_lost,
                             index.as<std::int64_t const>(),
                             static_cast<std::byte*>(out.data),
                             static_cast<std::byte*>(in.data),
                             static_cast<C*>(to.lost.data),
                             out.dims[axis],
                             out.element,
                             in.element,
                             size_of(out.element),
                             size_of(in.element)};
    launch_in_chunks(b, w.lines, k);
  };
  if (out.element == dtype::f64) run(type_tag<double>{});
  else if (is_floating(out.element)) run(type_tag<float>{});
  else run(type_tag<std::int64_t>{});
}

/// Ones at numbered places of rows, zeros elsewhere.
template <class U>
struct one_hot_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = 8 * cuda_block_threads;
  std::int64_t const* id;
  U* out;
  std::int64_t count, classes;
  U one;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = count - first;
    one_hot_kernel const k = *this;
    b.each(left < chunk ? left : chunk, [k, first](std::int64_t i) {
      std::int64_t const row = (first + i) / k.classes;
      k.out[first + i] = k.id[row] == first + i - row * k.classes ? k.one : U(0);
    });
  }
};

// ---- positions sorted by number: what the gradient of an embedding adds in order --------------------------------------

/// Which table row's sum a position counts for: numbers out of range come behind all rows, and count for none.
NEAP_HD NEAP_INLINE std::int64_t row_or_none(std::int64_t number, std::int64_t rows) {
  return number < 0 || number >= rows ? rows : number;
}

/// The keys and positions of a sort.
struct number_rows {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = 8 * cuda_block_threads;
  std::int64_t const* index;
  std::int64_t *key, *position;
  std::int64_t n, rows;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = n - first;
    number_rows const k = *this;
    b.each(left < chunk ? left : chunk, [k, first](std::int64_t i) {
      k.key[first + i] = row_or_none(k.index[first + i], k.rows);
      k.position[first + i] = first + i;
    });
  }
};

/// A stable sort of few numbers: a thread counts those that come before its own.
struct rank_positions {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = cuda_block_threads;
  std::int64_t const* index;
  std::int64_t *key, *position;  // sorted
  std::int64_t n, rows;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = n - first;
    rank_positions const k = *this;
    b.each(left < chunk ? left : chunk, [k, first](std::int64_t i) {
      std::int64_t const own = row_or_none(k.index[first + i], k.rows);
      std::int64_t rank = 0;
      for (std::int64_t j = 0; j < k.n; ++j) {
        std::int64_t const other = row_or_none(k.index[j], k.rows);
        rank += other < own || (other == own && j < first + i);
      }
      k.key[rank] = own;
      k.position[rank] = first + i;
    });
  }
};

/// begin[r] = how many sorted keys are less than r, for r in [0, rows].
struct row_starts {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = 4 * cuda_block_threads;
  std::int64_t const* key;
  std::int64_t* begin;
  std::int64_t n, rows;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = rows + 1 - first;
    row_starts const k = *this;
    b.each(left < chunk ? left : chunk, [k, first](std::int64_t i) {
      std::int64_t low = 0, high = k.n;  // the first key that is not less
      while (low < high) {
        std::int64_t const middle = low + (high - low) / 2;
        if (k.key[middle] < first + i) low = middle + 1;
        else high = middle;
      }
      k.begin[first + i] = low;
    });
  }
};

/// Numbers are sorted by counting up to so many, by CUB's radix sort beyond.
inline constexpr std::int64_t max_ranked = 8192;

/// Scratch: of the radix sort, keys twice, positions, and both again for the sort, which takes 2 bytes an element besides.
inline bytes_t sort_scratch(std::int64_t n) {
  return n <= max_ranked ? checked_mul(n, 8) : checked_add(checked_mul(n, 42), bytes_t{4} << 20);
}

/// position, key = the places of the numbers, stably sorted by row. `position` is the caller's; gives the sorted keys.
template <class B>
std::int64_t const* sort_rows(B& b, std::int64_t const* index, std::int64_t n, std::int64_t rows,
                              std::int64_t* position) {
  auto* const key = static_cast<std::int64_t*>(b.scratch(sort_scratch(n)));
  if (n <= max_ranked) {
    rank_positions const k{index, key, position, n, rows};
    launch_in_chunks(b, n, k);
    return key;
  }
  std::int64_t *const unsorted = key + n, *const places = unsorted + n;
  number_rows const k{index, unsorted, places, n, rows};
  launch_in_chunks(b, n, k);
#if defined(__CUDACC__)
  std::size_t bytes = static_cast<std::size_t>(sort_scratch(n) - n * 24);
  int bits = 1;  // of the largest key
  while ((rows >> bits) != 0) ++bits;
  std::size_t needed = 0;
  check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, needed, unsorted, key, places, position, n, 0, bits, b.stream()),
             "sort of an embedding's numbers");
  if (needed > bytes)
    throw_error({"embedding_grad: CUB's sort needs ", needed, " bytes of scratch, there are ", bytes});
  check_cuda(
      cub::DeviceRadixSort::SortPairs(places + n, bytes, unsorted, key, places, position, n, 0, bits, b.stream()),
      "sort of an embedding's numbers");
#else
  throw_error({"embedding_grad: ", n, " numbers are sorted on a device by code that nvcc compiles"});
#endif
  return key;
}

}  // namespace detail

namespace op {

template <device_backend B>
void run(B& b, embedding const&, kernel_arguments const& a) {
  // [n, columns] of a table [rows, columns], picked along the first axis.
  tensor_ref const &table = a.in[0], &ids = a.in[1], &out = a.out[0];
  std::int64_t const n = ids.count(), columns = table.dims[1];
  tensor_ref const index{ids.data, ids.element, {n, 1}, {1, 0}}, y{out.data, out.element, {n, columns}, {columns, 1}};
  neap::detail::pick_on_device(b, y, table, index, 0);
}

inline bytes_t device_scratch(embedding_grad const&, work_context const& c) {
  return neap::detail::sort_scratch(c.in[1].type.count());
}
template <device_backend B>
void run(B& b, embedding_grad const& op, kernel_arguments const& a) {
  tensor_ref const &dy = a.in[0], &ids = a.in[1], &dtable = a.out[0];
  std::int64_t const rows = op.rows, n = ids.count(), columns = dtable.dims[1];
  auto* const begin = static_cast<std::int64_t*>(a.workspace);
  auto* const position = begin + rows + 1;
  auto const* const key =
      n > 0 ? neap::detail::sort_rows(b, ids.as<std::int64_t const>(), n, rows, position) : position;
  neap::detail::row_starts const starts{key, begin, n, rows};
  launch_in_chunks(b, rows + 1, starts);
  neap::detail::row_layout const gradients = neap::detail::rows_of(dy, dtable.element, "embedding_grad");
  with_floating(dtable.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    b.launch(rows, neap::detail::add_picked_rows<T>{gradients, dtable.data, begin, position, columns}, columns);
  });
}

template <device_backend B>
void run(B& b, gather const& op, kernel_arguments const& a) {
  neap::detail::pick_on_device(b, a.out[0], a.in[0], a.in[1], detail::plain_axis(op.axis, a.in[0].rank()));
}
template <device_backend B>
void run(B& b, index_select const& op, kernel_arguments const& a) {
  int const axis = detail::plain_axis(op.axis, a.in[0].rank());
  neap::detail::pick_on_device(b, a.out[0], a.in[0], neap::detail::numbers_through(a.in[1], a.out[0], axis), axis);
}

template <device_backend B>
void run(B& b, scatter_add const& op, kernel_arguments const& a) {
  numbered_sums const to = op.cleared_sums(b, a);
  neap::detail::scatter_on_device(b, to, a.in[0], a.in[1], detail::plain_axis(op.axis, a.in[0].rank()));
  if (is_low(a.out[0].element)) neap::cast(b, a.out[0], to.sums);
}
template <device_backend B>
void run(B& b, index_add const& op, kernel_arguments const& a) {
  int const axis = detail::plain_axis(op.axis, a.in[0].rank());
  numbered_sums const to = neap::numbered_sums_of(b, a.out[0], a.in[1].count(), a.workspace);
  bool const rounds = is_low(a.out[0].element);
  if (rounds) neap::cast(b, to.sums, a.in[0]);
  else neap::copy(b, to.sums, a.in[0]);
  neap::detail::scatter_on_device(b, to, a.in[2], neap::detail::numbers_through(a.in[1], a.in[2], axis), axis);
  if (rounds) neap::cast(b, a.out[0], to.sums);
}

template <device_backend B>
void run(B& b, one_hot const& op, kernel_arguments const& a) {
  alignas(8) std::byte one[8]{};
  double const value = 1;
  neap::detail::conversion_to<double>(op.element)(one, 1, &value, 1, 1);
  auto const bits = __builtin_bit_cast(std::uint64_t, one);
  neap::detail::with_element_size(op.element, [&](auto tag) {
    using U = typename decltype(tag)::type;
    neap::detail::one_hot_kernel<U> const k{a.in[0].as<std::int64_t const>(), static_cast<U*>(a.out[0].data),
                                            a.out[0].count(), op.classes, static_cast<U>(bits)};
    launch_in_chunks(b, k.count, k);
  });
}

}  // namespace op

}}  // namespace neap::v0
