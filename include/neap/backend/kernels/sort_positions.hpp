// The positions of a list of numbers, sorted by number: a stable sort by Thrust, on any of its execution policies, then
// one pass that finds where each number begins. With this header the gradient of an embedding with a large vocabulary sorts
// so on the host (instead of by counting, with the same result). neap/src/kernels.hpp includes it; a program that
// does not compile its kernels apart includes it in every file.
#pragma once

#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/thrust_policy.hpp>

#include <thrust/sort.h>

#include <cstdint>
#include <limits>

namespace neap { inline namespace v0 {

namespace detail {

template <class Key>
struct number_positions {
  std::int64_t const* index;
  Key* key;
  std::int64_t* position;
  std::int64_t n;
  static constexpr std::int64_t chunk = 4096;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk;
    std::int64_t const* const from = index + first;
    Key* const k = key + first;
    std::int64_t* const p = position + first;
    b.each(n - first < chunk ? n - first : chunk, [=](std::int64_t i) {
      k[i] = static_cast<Key>(from[i]);
      p[i] = first + i;
    });
  }
};

/// begin[r] = how many keys are less than r, for r in [0, rows]: the i-th of the sorted keys writes those between its
/// neighbour's number and its own.
template <class Key>
struct segment_starts {
  Key const* key;
  std::int64_t* begin;
  std::int64_t n, rows;
  static constexpr std::int64_t chunk = 1024;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, count = n + 1 - first < chunk ? n + 1 - first : chunk;
    segment_starts const s = *this;
    b.each(count, [s, first](std::int64_t k) {
      std::int64_t const i = first + k;
      std::int64_t const from = i == 0 ? 0 : static_cast<std::int64_t>(s.key[i - 1]) + 1;
      std::int64_t const to = i == s.n ? s.rows : static_cast<std::int64_t>(s.key[i]);
      for (std::int64_t r = from; r <= to; ++r) s.begin[r] = i;
    });
  }
};

}  // namespace detail

/// Fills o.begin and o.position (embedding.hpp) on a Thrust policy: `policy(allocator)` must give one for an algorithm
/// that takes its memory from `allocator`, as thrust::cpp::par and thrust::tbb::par do. Time and memory are linear in the
/// numbers, plus one write a row. Throws neap::error if o.scratch is too small for the policy.
template <class Backend, class Policy>
void sort_positions(Backend& b, Policy const& policy, position_order const& o) {
  workspace_allocator memory(o.scratch, o.scratch_bytes);
  auto const sort = [&]<class Key>(Key) {
    using number = detail::number_positions<Key>;
    using starts = detail::segment_starts<Key>;
    Key* const key = memory.array<Key>(o.n);
    b.launch((o.n + number::chunk - 1) / number::chunk, number{o.index, key, o.position, o.n}, number::chunk);
    thrust::stable_sort_by_key(policy(memory), key, key + o.n, o.position);
    b.launch(o.n / starts::chunk + 1, starts{key, o.begin, o.n, o.rows}, starts::chunk);
  };
  // Half as many digits where they suffice.
  if (o.rows <= std::numeric_limits<std::int32_t>::max()) sort(std::int32_t{});
  else sort(std::int64_t{});
}

/// The sort that op::embedding_grad takes on the host: Thrust's where the table has many rows for each number, because the
/// counting sort walks all rows three times; that one where it has few, because it walks the numbers only twice. Both give
/// the same.
template <>
struct position_sort<host_backend> {
  void operator()(host_backend& b, position_order const& o) const {
    if (o.rows / 16 >= o.n) sort_positions(b, thrust_policy(b), o);
    else counting_sort{}(b, o);
  }
};

}}  // namespace neap::v0
