// First fit: every record, in an order of preference, takes the lowest place at which it fits over its whole life. It
// fills the gaps that the lowest plateau (memory/greedy/plateau.hpp) leaves behind on lifetimes without structure.
//
// The order is what matters. A record is hard to place if it is large, if it meets many others, and if it lives where
// memory is full; the rank is the product size * conflicts^a * load^b. OmniMalloc (PyPI, 2026) tries greedy planners in
// the orders of the first two factors; the third, new here, settles the moments near the bound before the others.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/greedy/free_space.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 {

/// Largest first by size * conflicts^(degree_eighths / 8) * load^load_power: conflicts are the records alive together
/// with it, load the largest load that it lives through, as a part of the bound. Ties to the earlier record.
struct fit_order {
  int degree_eighths = 4;
  int load_power = 0;
  friend constexpr bool operator==(fit_order, fit_order) = default;
};

namespace detail {

/// What all orders share. A life with gaps is made of pieces: sections during which it needs some of its bytes.
struct fit_facts {
  struct piece {
    section_range when;
    std::int64_t begin, end;  // bytes of the record
  };
  plain_vector<section_range> life;        // from the first piece to the last; empty for records without need
  plain_vector<piece> pieces;              // only where there are gaps: else a life is its only piece
  std::vector<std::uint32_t> first_piece;  // of record i: pieces[first_piece[i] .. first_piece[i + 1])
  std::vector<std::int64_t> load;          // of each section
  std::vector<std::int64_t> total;         // of each record: the largest load that it lives through
  std::vector<std::uint32_t> degree;       // of each record: how many live with it, itself included
  std::uint32_t sections = 0;

  constexpr explicit fit_facts(memory_problem const& p) : life(p.count(), section_range{}) {
    auto const n = p.count();
    plain_vector<time_stretch> stretches;
    stretches.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      p.for_each_piece(i, [&](std::int64_t lower, std::int64_t upper, std::int64_t, std::int64_t) {
        stretches.push_back({lower, upper});
      });
    sectioned const cut = cut_into_sections(stretches);
    sections = cut.count;
    load.assign(std::size_t{sections} + 1, 0);
    std::vector<std::uint32_t> begun(std::size_t{sections} + 1, 0), ended(std::size_t{sections} + 1, 0);
    bool const gaps = !p.gap_begin.empty();
    if (gaps) first_piece.push_back(0);
    for (std::size_t i = 0, k = 0; i < n; ++i) {
      p.for_each_piece(i, [&](std::int64_t, std::int64_t, std::int64_t a, std::int64_t b) {
        auto const when = cut.ranges[k++];
        life[i] = {life[i].begin == life[i].end ? when.begin : life[i].begin, when.end};
        load[when.begin] += b - a, load[when.end] -= b - a;
        if (gaps) pieces.push_back({when, a, b});
      });
      if (gaps) first_piece.push_back(static_cast<std::uint32_t>(pieces.size()));
      if (life[i].begin < life[i].end) ++begun[life[i].begin], ++ended[life[i].end];
    }
    for (std::size_t s = 1; s <= sections; ++s)
      load[s] += load[s - 1], begun[s] += begun[s - 1], ended[s] += ended[s - 1];
    load.pop_back();
    range_maximum const most(load);
    total.assign(n, 0), degree.assign(n, 1);
    for (std::size_t i = 0; i < n; ++i)
      if (auto const [b, e] = life[i]; b < e) total[i] = most(b, e), degree[i] = begun[e - 1] - ended[b];
  }

  /// f(sections, first byte, end byte) for each piece of record i.
  template <class F>
  constexpr void for_each_piece(memory_problem const& p, std::size_t i, F&& f) const {
    if (first_piece.empty()) {
      if (life[i].begin < life[i].end) f(life[i], std::int64_t{0}, p.size[i]);
    } else {
      for (std::size_t k = first_piece[i]; k < first_piece[i + 1]; ++k)
        f(pieces[k].when, pieces[k].begin, pieces[k].end);
    }
  }
};

constexpr double square_root(double x) {  // x >= 1
  if (!std::is_constant_evaluated()) return __builtin_sqrt(x);
  for (double y = x;;) {
    double const z = (y + x / y) / 2;
    if (z >= y) return y;
    y = z;
  }
}

constexpr double power(double x, int n) {
  double y = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n & 1) y *= x;
  return y;
}

/// How much record i is preferred: the more the earlier. `full` is the load bound.
constexpr double fit_key(memory_problem const& p, fit_facts const& facts, fit_order order, std::size_t i,
                         std::int64_t full) {
  double const eighth = square_root(square_root(square_root(static_cast<double>(facts.degree[i]))));
  return static_cast<double>(p.size[i]) * power(eighth, order.degree_eighths) *
         power(static_cast<double>(facts.total[i]) / static_cast<double>(std::max<std::int64_t>(full, 1)),
               order.load_power);
}

struct keyed {
  double key;
  std::uint32_t record;
  friend constexpr bool operator<(keyed const& a, keyed const& b) {
    return a.key != b.key ? a.key > b.key : a.record < b.record;
  }
};

/// Puts record i at the lowest place not below `from` that is free over its life, and says where. The space's first
/// section is `origin`.
constexpr std::int64_t put_lowest(memory_problem const& p, fit_facts const& facts, free_space& space, std::size_t i,
                                  std::uint32_t origin = 0, std::int64_t from = 0) {
  auto const shifted = [&](section_range r) { return section_range{r.begin - origin, r.end - origin}; };
  facts.for_each_piece(
      p, i, [&](detail::section_range when, std::int64_t a, std::int64_t b) { space.need(shifted(when), a, b); });
  std::int64_t const x = space.lowest(p.alignment_of(i), from);
  facts.for_each_piece(p, i, [&](detail::section_range when, std::int64_t a, std::int64_t b) {
    space.take(shifted(when), x + a, x + b);
  });
  return x;
}

}  // namespace detail

/// First fit in one order. Fixed records are placed before all others; alignment, gaps and windows are kept exactly.
/// Fails (infeasible) only where records are faulty or fixed ones collide. O(n log n) nodes visited; time and memory
/// grow as n log n in practice: 24 ms and 3 MB for 10^4 records that each meet a thousand others.
struct first_fit {
  fit_order order = {};

  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    auto const n = p.count();
    detail::fit_facts const facts(p);
    load_bound const bound = load_lower_bound(p);
    detail::free_space space;
    space.reset(facts.sections);
    std::vector<std::int64_t> offsets(n, 0);
    plain_vector<detail::keyed> order_of;
    order_of.reserve(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      if (p.fixed_of(i) != any_offset) offsets[i] = p.fixed_of(i);
      if (p.fixed_of(i) == any_offset && p.occupies(i))
        order_of.push_back({detail::fit_key(p, facts, order, i, bound.bytes), i});
      if (p.fixed_of(i) == any_offset || !p.occupies(i)) continue;
      if (detail::put_lowest(p, facts, space, i, 0, offsets[i]) != offsets[i])
        return detail::refused({"it collides with another fixed record", i});
    }
    detail::sort_list(order_of);
    for (auto const& r : order_of) offsets[r.record] = detail::put_lowest(p, facts, space, r.record);
    return detail::finished(p, static_cast<std::vector<std::int64_t>&&>(offsets), bound);
  }
};

}}  // namespace neap::v0
