// Memory problems whose answer is known because it was there first: packings cut out of, or grown into, a rectangle of
// moments by bytes, and variants of given problems. All records fit below the capacity that comes with them. The same
// seed gives the same problem.
//
//   guillotine      pinwheel        corners            refilled
//   |aaa|bb|        |aaa|b|         |aa|bbb|           a packing that is given, of which parts are taken out
//   |aaa|cc|        |d|e|b|         |cccc|b|           and the room is filled with others
//   |ddd|cc|        |d|ccc|         |d|eeee|
#pragma once

#include <neap/plan/memory_plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

/// Records that fit below `capacity`; where it is known, each record's `offset` in one such packing.
struct packing {
  std::vector<usage_record> records;
  std::vector<std::int64_t> offsets;
  std::int64_t capacity = 0;
};

enum class pattern : std::uint8_t { guillotine, pinwheel, corners, slabs };
inline constexpr std::array<char const*, 4> pattern_names{"guillotine", "pinwheel", "corners", "slabs"};

struct packing_shape {
  pattern kind = pattern::guillotine;
  int records = 80;
  std::int64_t moments = 20, bytes = 1000;
  double holes = 0;  ///< part of the records that is left out again
};

namespace packing_parts {

using packing_random = std::mt19937_64;  // below() and not a standard distribution: those differ by library

inline std::int64_t below(packing_random& rng, std::int64_t n) {
  return n <= 1 ? 0 : static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n));
}
inline bool chance(packing_random& rng, double p) { return static_cast<double>(rng() >> 11) * 0x1p-53 < p; }

struct room {
  std::int64_t lower, upper, begin, end;  // moments, bytes
  std::int64_t width() const { return upper - lower; }
  std::int64_t height() const { return end - begin; }
};

/// Cuts rooms until there are `wanted` or none can be cut: in two by a straight cut, or with `wheels` often in five by
/// four cuts none of which goes through.
inline std::vector<room> cut_rooms(packing_random& rng, packing_shape const& s, double wheels, double squareness) {
  std::vector<room> rooms{{0, s.moments, 0, s.bytes}};
  auto const wanted = static_cast<std::size_t>(s.records);
  for (std::size_t idle = 0; rooms.size() < wanted && idle < 50 * wanted;) {
    std::size_t at = static_cast<std::size_t>(below(rng, static_cast<std::int64_t>(rooms.size())));
    for (int draw = 0; draw < 2; ++draw) {  // larger ones rather
      auto const other = static_cast<std::size_t>(below(rng, static_cast<std::int64_t>(rooms.size())));
      auto const area = [&](room const& r) {
        return static_cast<double>(r.width()) / static_cast<double>(s.moments) * static_cast<double>(r.height());
      };
      if (area(rooms[other]) > area(rooms[at])) at = other;
    }
    room const r = rooms[at];
    if (chance(rng, wheels) && r.width() >= 3 && r.height() >= 3 && rooms.size() + 4 <= wanted) {
      auto const x = 1 + below(rng, r.width() - 2), x2 = x + 1 + below(rng, r.width() - x - 1);
      auto const y = 1 + below(rng, r.height() - 2), y2 = y + 1 + below(rng, r.height() - y - 1);
      auto const [l, b] = std::pair{r.lower, r.begin};
      std::array<room, 5> five{{{l, l + x2, b, b + y},
                                {l + x2, r.upper, b, b + y2},
                                {l + x, r.upper, b + y2, r.end},
                                {l, l + x, b + y, r.end},
                                {l + x, l + x2, b + y, b + y2}}};
      if (rng() & 1)  // turning the other way
        for (auto& q : five)
          std::swap(q.begin, q.end), q.begin = r.begin + r.end - q.begin, q.end = r.begin + r.end - q.end;
      rooms[at] = five[0];
      rooms.insert(rooms.end(), five.begin() + 1, five.end());
      continue;
    }
    double const wide = static_cast<double>(r.width()) / static_cast<double>(s.moments);
    double const high = static_cast<double>(r.height()) / static_cast<double>(s.bytes);
    bool in_time = chance(rng, squareness * wide / (wide + high) + (1 - squareness) / 2);
    if (r.width() < 2) in_time = false;
    else if (r.height() < 2) in_time = true;
    if (in_time ? r.width() < 2 : r.height() < 2) {
      ++idle;
      continue;
    }
    auto const cut = 1 + below(rng, (in_time ? r.width() : r.height()) - 1);
    room other = r;
    if (in_time) rooms[at].upper = other.lower = r.lower + cut;
    else rooms[at].end = other.begin = r.begin + cut;
    rooms.push_back(other);
  }
  return rooms;
}

/// Fills the whole from the lowest place up, the leftmost first, with rooms of at most the given extents (at random). Now
/// and then a room ends level with what lies beside it: else there would be nothing but slivers in the end.
inline std::vector<room> fill_corners(packing_random& rng, packing_shape const& s, std::int64_t widest,
                                      std::int64_t highest) {
  std::vector<room> rooms;
  std::vector<std::int64_t> floor(static_cast<std::size_t>(s.moments), 0);
  for (;;) {
    auto const low = std::min_element(floor.begin(), floor.end());
    if (*low == s.bytes) return rooms;
    auto const end = std::find_if(low, floor.end(), [&](std::int64_t f) { return f != *low; });
    room r{low - floor.begin(), 0, *low, 0};
    r.upper = r.lower + 1 + below(rng, std::min<std::int64_t>(widest, end - low));
    if (end - low <= widest / 4 || chance(rng, 0.3)) r.upper = std::min(end - floor.begin(), r.lower + widest);
    r.end = r.begin + 1 + below(rng, std::min(highest, s.bytes - r.begin));
    if (low != floor.begin() && *(low - 1) - r.begin <= highest && chance(rng, 0.4)) r.end = *(low - 1);
    if (s.bytes - r.end < highest / 4) r.end = s.bytes;
    std::fill(floor.begin() + r.lower, floor.begin() + r.upper, r.end);
    rooms.push_back(r);
  }
}

inline packing packed(packing_random& rng, std::vector<room> rooms, std::int64_t capacity, double holes) {
  packing p;
  p.capacity = capacity;
  for (std::size_t i = rooms.size(); i > 1; --i)
    std::swap(rooms[i - 1], rooms[static_cast<std::size_t>(below(rng, static_cast<std::int64_t>(i)))]);
  auto const left_out = static_cast<std::size_t>(holes * static_cast<double>(rooms.size()));
  rooms.resize(rooms.size() - left_out);
  for (auto const& r : rooms) {
    p.records.push_back({.lower = r.lower, .upper = r.upper, .size = r.height()});
    p.offsets.push_back(r.begin);
  }
  return p;
}

}  // namespace packing_parts

/// A packing of about that many records that leaves nothing free, but for the holes.
inline packing planted(packing_shape const& s, std::uint64_t seed) {
  packing_parts::packing_random rng(seed * 1000003 + static_cast<std::uint64_t>(s.kind) * 101 +
                                    static_cast<std::uint64_t>(s.records * 7 + s.moments));
  std::vector<packing_parts::room> rooms;
  switch (s.kind) {
    case pattern::guillotine: rooms = packing_parts::cut_rooms(rng, s, 0, 0.8); break;
    case pattern::pinwheel: rooms = packing_parts::cut_rooms(rng, s, 0.7, 0.8); break;
    case pattern::slabs: rooms = packing_parts::cut_rooms(rng, s, 0.1, 0.1); break;
    case pattern::corners: {
      double const ratio = 0.5 + static_cast<double>(packing_parts::below(rng, 100)) / 50;
      auto const part = [](std::int64_t of, double x) {
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(of) * x), 1, of);
      };
      double side = 1 / __builtin_sqrt(s.records);
      do {  // larger ones until they are few enough
        rooms = packing_parts::fill_corners(rng, s, part(s.moments, side * ratio), part(s.bytes, side / ratio));
        side *= 1.05;
      } while (rooms.size() > static_cast<std::size_t>(s.records));
      break;
    }
  }
  return packing_parts::packed(rng, std::move(rooms), s.bytes, s.holes);
}

/// Another problem of a given one's kind: of its packing, all that touches a few random rectangles is taken out and
/// replaced by records whose extents are drawn from those of the whole. A part of what was free before stays free.
inline packing refilled(packing const& given, std::uint64_t seed, double part = 0.3) {
  packing_parts::packing_random rng(seed * 7919 + given.records.size());
  std::vector<packing_parts::room> rooms;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < given.records.size(); ++i) {
    auto const& r = given.records[i];
    rooms.push_back({r.lower, r.upper, given.offsets[i], given.offsets[i] + r.size});
    last = std::max(last, r.upper);
  }
  auto const taken = static_cast<std::size_t>(part * static_cast<double>(rooms.size()));
  auto const models = rooms;
  for (std::size_t k = 0; k < taken && rooms.size() > 1; ++k)
    rooms.erase(rooms.begin() + packing_parts::below(rng, static_cast<std::int64_t>(rooms.size())));
  // Draws a place and a model's extents, and shrinks them to what is free there; places that are taken are drawn again.
  std::vector<std::int64_t> ticks, levels{0, given.capacity};
  for (auto const& r : models) ticks.push_back(r.lower), ticks.push_back(r.upper);
  for (auto const& r : models) levels.push_back(r.begin), levels.push_back(r.end);
  auto const some = [&](std::vector<std::int64_t> const& of) {
    return of[static_cast<std::size_t>(packing_parts::below(rng, static_cast<std::int64_t>(of.size())))];
  };
  auto const is_free = [&](packing_parts::room const& q) {
    return std::none_of(rooms.begin(), rooms.end(), [&](auto const& r) {
      return r.lower < q.upper && q.lower < r.upper && r.begin < q.end && q.begin < r.end;
    });
  };
  for (std::size_t k = 0, idle = 0; k < taken && idle < 200 * taken; ++idle) {
    auto const& model =
        models[static_cast<std::size_t>(packing_parts::below(rng, static_cast<std::int64_t>(models.size())))];
    packing_parts::room q{some(ticks), 0, some(levels), 0};
    if (rng() & 1) q.upper = std::min(last, q.lower + model.width());
    else q.upper = some(ticks);
    q.end = std::min(given.capacity, q.begin + model.height());
    if (q.width() <= 0 || q.height() <= 0) continue;
    if (!is_free(q)) continue;
    for (auto up : levels)  // up to the next that is in the way, now and then
      if (packing_parts::chance(rng, 0.5) && up > q.end && is_free({q.lower, q.upper, q.begin, up})) q.end = up;
    rooms.push_back(q);
    ++k;
  }
  return packing_parts::packed(rng, std::move(rooms), given.capacity, 0);
}

// Variants of a packing that have one as well.

inline packing reversed(packing p) {
  for (auto& r : p.records) r = {.lower = -r.upper, .upper = -r.lower, .size = r.size};
  return p;
}
/// Moments by their ranks: the same records meet.
inline packing by_rank(packing p) {
  std::vector<std::int64_t> ticks;
  for (auto const& r : p.records) ticks.push_back(r.lower), ticks.push_back(r.upper);
  std::sort(ticks.begin(), ticks.end());
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  auto const rank = [&](std::int64_t t) { return std::lower_bound(ticks.begin(), ticks.end(), t) - ticks.begin(); };
  for (auto& r : p.records) r.lower = rank(r.lower), r.upper = rank(r.upper);
  return p;
}
/// Each step of time longer by a random factor: the same records meet.
inline packing stretched(packing p, std::uint64_t seed) {
  packing_parts::packing_random rng(seed);
  p = by_rank(std::move(p));
  std::int64_t last = 0;
  for (auto const& r : p.records) last = std::max(last, r.upper);
  std::vector<std::int64_t> at(static_cast<std::size_t>(last) + 1, 0);
  for (std::size_t t = 1; t < at.size(); ++t) at[t] = at[t - 1] + (std::int64_t{1} << packing_parts::below(rng, 12));
  for (auto& r : p.records)
    r.lower = at[static_cast<std::size_t>(r.lower)], r.upper = at[static_cast<std::size_t>(r.upper)];
  return p;
}
inline packing scaled(packing p, std::int64_t factor) {
  for (auto& r : p.records) r.size *= factor;
  for (auto& o : p.offsets) o *= factor;
  p.capacity *= factor;
  return p;
}
/// What lives in [lower, upper), which is given in parts of the whole time.
inline packing window(packing const& given, double from, double to) {
  std::int64_t first = given.records[0].lower, last = given.records[0].upper;
  for (auto const& r : given.records) first = std::min(first, r.lower), last = std::max(last, r.upper);
  auto const moment = [&](double x) {
    return first + static_cast<std::int64_t>(static_cast<double>(last - first) * x);
  };
  packing p;
  p.capacity = given.capacity;
  for (std::size_t i = 0; i < given.records.size(); ++i) {
    auto r = given.records[i];
    r.lower = std::max(r.lower, moment(from)), r.upper = std::min(r.upper, moment(to));
    if (r.lower >= r.upper) continue;
    p.records.push_back(r);
    if (!given.offsets.empty()) p.offsets.push_back(given.offsets[i]);
  }
  return p;
}
/// One after the other in time, records that touch the seam in both at one place joined, where places are known.
inline packing side_by_side(packing a, packing const& b) {
  std::int64_t end = a.records[0].upper, start = b.records[0].lower;
  for (auto const& r : a.records) end = std::max(end, r.upper);
  for (auto const& r : b.records) start = std::min(start, r.lower);
  auto const before = a.records.size();
  for (std::size_t i = 0; i < b.records.size(); ++i) {
    auto r = b.records[i];
    r.lower += end - start, r.upper += end - start;
    std::size_t joined = before;
    if (r.lower == end && !a.offsets.empty() && !b.offsets.empty())
      for (std::size_t k = 0; k < before && joined == before; ++k)
        if (a.records[k].upper == end && a.offsets[k] == b.offsets[i] && a.records[k].size == r.size) joined = k;
    if (joined < before) {
      a.records[joined].upper = r.upper;
      continue;
    }
    a.records.push_back(r);
    if (!a.offsets.empty() && !b.offsets.empty()) a.offsets.push_back(b.offsets[i]);
  }
  if (a.offsets.size() != a.records.size()) a.offsets.clear();
  a.capacity = std::max(a.capacity, b.capacity);
  return a;
}
/// Both at once, one above the other.
inline packing stacked(packing a, packing const& b) {
  for (std::size_t i = 0; i < b.records.size(); ++i) {
    a.records.push_back(b.records[i]);
    if (!a.offsets.empty() && !b.offsets.empty()) a.offsets.push_back(a.capacity + b.offsets[i]);
  }
  if (a.offsets.size() != a.records.size()) a.offsets.clear();
  a.capacity += b.capacity;
  return a;
}

}  // namespace neap::testing
