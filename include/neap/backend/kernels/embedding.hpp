// Rows of a table picked by numbers, and the gradient to the table. The backward pass sorts positions by number (stably: a
// counting sort, or Thrust's with kernels/sort_positions.hpp) and adds each table row's gradients in the order of their
// positions, so it is deterministic; nothing is added atomically.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/units.hpp>

#include <cstdint>
#include <cstring>
#include <string>

namespace neap { inline namespace v0 {

namespace detail {

inline void check_indices(std::int64_t const* index, std::int64_t n, std::int64_t rows, char const* name) {
  for (std::int64_t i = 0; i < n; ++i)
    if (index[i] < 0 || index[i] >= rows)
      throw_error({name, ": index ", index[i], " at place ", i, " is not below ", rows});
}

/// One block an index: copies a row.
template <class T>
struct pick_rows {
  static constexpr bool splits = true;  // no index depends on another
  row_layout table, out;
  std::int64_t const* index;
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const from = row_at<T const>(table, index[b.id]);
    T* const to = row_at<T>(out, b.id);
    b.each(columns, [=](std::int64_t i) { to[i] = from[i]; });
  }
};

/// One block a row of the table: the sum of the gradients at the positions that picked it.
template <class T>
struct add_picked_rows {
  using element = T;
  using C = compute_t<T>;
  static constexpr int tile = 256;
  row_layout dy;
  void* dtable;  // [rows, columns]
  std::int64_t const *begin, *position;
  std::int64_t columns;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = begin[b.id], last = begin[b.id + 1];
    T* const to = static_cast<T*>(dtable) + b.id * columns;
    if (first == last) {
      b.each(columns, [=](std::int64_t i) { to[i] = convert<T>(C(0)); });
      return;
    }
    bool const many = last - first > sum_run;
    typename Block::template slots<C, tile> sums;
    typename Block::template slots<sum_t<C>, tile> of_runs;
    auto const part = sums.place();
    auto const total = of_runs.place();
    for (std::int64_t c = 0; c < columns; c += tile) {
      std::int64_t const n = columns - c < tile ? columns - c : tile;
      T const* const start = row_at<T const>(dy, position[first]) + c;
      b.each(n, [=](std::int64_t i) { part[i] = static_cast<C>(start[i]); });
      if (many) b.each(n, [=](std::int64_t i) { total[i] = 0; });
      for (std::int64_t k = first + 1; k < last; ++k) {
        if ((k - first) % sum_run == 0) b.each(n, [=](std::int64_t i) { total[i] += part[i], part[i] = C(0); });
        T const* const g = row_at<T const>(dy, position[k]) + c;
        b.each(n, [=](std::int64_t i) { part[i] += static_cast<C>(g[i]); });
      }
      if (many) b.each(n, [=](std::int64_t i) { part[i] = static_cast<C>(total[i] + part[i]); });
      b.each(n, [=](std::int64_t i) { to[c + i] = convert<T>(part[i]); });
    }
  }
};

/// A stable counting sort of positions by index; one block, one thread of it.
struct count_positions {
  std::int64_t const* index;
  std::int64_t n, rows;
  std::int64_t *begin, *position;  // [rows + 1], [n]
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t* const at = begin;
    b.each(rows + 1, [=](std::int64_t r) { at[r] = 0; });
    b.sync();
    count_positions const s = *this;
    b.once([s] {
      for (std::int64_t i = 0; i < s.n; ++i) ++s.begin[s.index[i] + 1];
      for (std::int64_t r = 0; r < s.rows; ++r) s.begin[r + 1] += s.begin[r];
      // begin[r] walks to the end of row r, then all are moved back by one row.
      for (std::int64_t i = 0; i < s.n; ++i) s.position[s.begin[s.index[i]]++] = i;
      for (std::int64_t r = s.rows; r > 0; --r) s.begin[r] = s.begin[r - 1];
      s.begin[0] = 0;
    });
  }
};

}  // namespace detail

/// A request for sorted positions: position[begin[r] .. begin[r + 1]) are to be the places of number r, ascending.
struct position_order {
  std::int64_t const* index;  // [n], each in [0, rows)
  std::int64_t n, rows;
  std::int64_t *begin, *position;  // [rows + 1], [n]
  void* scratch;
  bytes_t scratch_bytes;
};

/// Sorts positions on the backend's blocks, without scratch.
struct counting_sort {
  template <class Backend>
  void operator()(Backend& b, position_order const& o) const {
    b.launch(1, detail::count_positions{o.index, o.n, o.rows, o.begin, o.position});
  }
};

/// How op::embedding_grad sorts on a backend; kernels/sort_positions.hpp has the specialisation for the host that uses
/// Thrust, which neap.hpp does not reach because of what its headers cost.
template <class Backend>
struct position_sort : counting_sort {};

/// out[..., :] = table[index[...], :]; index is dense i64, out has its shape and the table's columns. Throws neap::error
/// if an index is not a row, where the backend's memory is the host's.
template <class Backend>
void embedding(Backend& b, tensor_ref const& out, tensor_ref const& table, tensor_ref const& index) {
  char const* const name = "embedding";
  detail::expect(table.rank() == 2 && out.rank() >= 1 && out.extent(-1) == table.extent(-1),
                 "embedding: the table needs two axes, and the result its columns");
  std::int64_t const columns = table.extent(-1), n = index.count();
  detail::expect(out.count() == n * columns, "embedding: the result needs a row for each index");
  auto const* const at = detail::vector_of<std::int64_t const>(index, n, name);
  if constexpr (Backend::addresses_host_memory) detail::check_indices(at, n, table.dims[0], name);
  detail::row_layout const from = detail::rows_of(table, table.element, name);
  detail::row_layout const to = detail::rows_of(out, table.element, name);
  detail::with_element_size(table.element, [&](auto tag) {
    using U = typename decltype(tag)::type;
    b.launch(n, detail::pick_rows<U>{from, to, at, columns}, columns);
  });
}

/// Bytes of workspace of embedding_backward for a table of this many rows and this many indices: where rows begin, the
/// sorted positions, and for sorts that need it the keys with a second copy of both.
inline bytes_t embedding_backward_workspace(std::int64_t rows, std::int64_t indices) {
  bytes_t const words = checked_add(checked_add(rows, 1), checked_mul(indices, 4));
  return checked_add(checked_mul(words, 8), 4096);
}

/// dtable[r, :] = the sum of dy's rows whose index is r, 0 where there is none; dtable is dense. `sort` decides how long it
/// takes, not what comes out.
template <class Backend, class Sort = counting_sort>
void embedding_backward(Backend& b, tensor_ref const& dtable, tensor_ref const& dy, tensor_ref const& index,
                        void* workspace, Sort const& sort = {}) {
  char const* const name = "embedding_backward";
  detail::expect(dtable.rank() == 2 && dy.rank() >= 1 && dy.extent(-1) == dtable.extent(-1),
                 "embedding_backward: the table's gradient needs two axes, and dy its columns");
  std::int64_t const rows = dtable.dims[0], columns = dtable.dims[1], n = index.count();
  detail::expect(dy.count() == n * columns, "embedding_backward: dy needs a row for each index");
  auto const* const at = detail::vector_of<std::int64_t const>(index, n, name);
  if constexpr (Backend::addresses_host_memory) detail::check_indices(at, n, rows, name);
  auto* const begin = static_cast<std::int64_t*>(workspace);
  auto* const position = begin + rows + 1;
  sort(b, position_order{at, n, rows, begin, position, position + n,
                         embedding_backward_workspace(rows, n) - (rows + 1 + n) * 8});
  detail::row_layout const gradients = detail::rows_of(dy, dtable.element, name);
  void* const sums = detail::vector_of(dtable, dtable.element, rows * columns, name);
  with_floating(dtable.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    b.launch(rows, detail::add_picked_rows<T>{gradients, sums, begin, position, columns}, columns);
  });
}

}}  // namespace neap::v0
