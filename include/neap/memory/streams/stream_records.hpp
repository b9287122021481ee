// Records on several streams, whose lives are ordered by happens-before, not by one clock.
//
// A life is a pair of vector clocks. `born[s]`: so many ops of stream s have certainly ended when the record is first
// touched; `dies[s]`: so many must have ended before its bytes are free. One life happens before another if its death
// is not beyond the other's birth in any component.
//
// A gap cuts a life into parts: the record dies, and is born again later at the same offset. A gap's window says which of
// its bytes are in use all the same; they live on as a part of their own, from the birth of the part before the gap to the
// death of the part behind it. Two parts are in conflict unless one happens before the other; parts in conflict share no
// byte. With one stream a part is the interval [born, dies), and this is the problem of memory/records.hpp.
//
//   stream 0   a|--- part 0 ---|...... gap ......|--- part 1 ---|
//   stream 1                      b |--------|                      b waits for a's part 0, a's part 1 for b
#pragma once

#include <neap/memory/records.hpp>
#include <neap/plan/memory_plan.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 {

/// Between two parts of a life, as clocks.
struct stream_gap {
  std::vector<std::int64_t> dies{};                 ///< so many ops must have ended before the bytes are free
  std::vector<std::int64_t> born{};                 ///< so many have certainly ended when they are touched again
  std::int64_t window_lower = 0, window_upper = 0;  ///< bytes of the record that stay in use; half-open
};

struct stream_record {
  std::int64_t size = 0;  ///< bytes
  std::int64_t alignment = 1;
  std::int64_t offset = any_offset;  ///< fixed offset in bytes, or any_offset
  std::int32_t stream = 0;           ///< where it lives; hand-overs within a stream need no wait
  std::int32_t pool = -1;            ///< the required pool, or -1 for any (memory/streams/stream_pools.hpp)
  std::vector<std::int64_t> born{};  ///< a count of ended ops for each stream
  std::vector<std::int64_t> dies{};
  std::vector<stream_gap> gaps{};  ///< in order
};

/// A type that says how many bytes it needs and when, by clocks: members `born` and `dies`, and a size as in `usage`.
template <class R>
concept stream_usage = (
                           requires(R const& r) { usage_size(r); } || requires(R const& r) { r.size; }) &&
                       requires(R const& r) {
                         std::begin(r.born) != std::end(r.born);
                         std::begin(r.dies) != std::end(r.dies);
                       };

template <class Range>
concept stream_usage_range = requires(Range const& r) {
  std::begin(r) != std::end(r);
  std::size(r);
  requires stream_usage<std::remove_cvref_t<decltype(*std::begin(r))>>;
};

/// Records as columns. Made implicitly from any range of records; what their type lacks costs nothing. O(clocks).
struct stream_problem {
  std::size_t streams = 0;
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> alignment;    ///< empty: all 1
  std::vector<std::int64_t> fixed;        ///< empty: all any_offset
  std::vector<std::int32_t> stream;       ///< empty: all 0
  std::vector<std::int32_t> pool;         ///< empty: all -1
  std::vector<std::uint32_t> part_begin;  ///< parts of record i: [part_begin[i], part_begin[i + 1]); empty: part i
  std::vector<std::int64_t> born, dies;   ///< of part k: [k * streams, (k + 1) * streams)
  // Windows are parts behind the others of their record. Of part k, the bytes [part_lower[k], part_upper[k]) are in use.
  std::vector<std::uint32_t> window_begin;           ///< of record i: the first of its windows; empty: no windows
  std::vector<std::int64_t> part_lower, part_upper;  ///< empty: no windows
  std::int64_t uneven = -1;                          ///< the first record with clocks of another length, or -1

  stream_problem() = default;

  template <stream_usage_range Range>
    requires(!std::same_as<Range, stream_problem>)
  constexpr stream_problem(Range const& records) {
    using record = std::remove_cvref_t<decltype(*std::begin(records))>;
    if (std::begin(records) != std::end(records)) {
      auto const& first = *std::begin(records);
      streams = static_cast<std::size_t>(std::distance(std::begin(first.born), std::end(first.born)));
    }
    bool cut = false, windows = false;
    if constexpr (requires(record const& r) { r.gaps; })
      for (auto const& r : records)
        for (auto const& g : r.gaps) {
          cut = true;
          if constexpr (requires { g.window_lower; }) windows |= g.window_lower != g.window_upper;
        }
    if (cut) part_begin.push_back(0);
    for (auto const& r : records) {
      size.push_back(detail::size_of(r));
      auto const first_part = parts();
      bool even = append(born, r.born);
      if constexpr (requires { r.gaps; })
        for (auto const& g : r.gaps) even = append(dies, g.dies) && append(born, g.born) && even;
      even = append(dies, r.dies) && even;
      if (!even && uneven < 0) uneven = static_cast<std::int64_t>(size.size() - 1);
      if (windows) {
        window_begin.push_back(static_cast<std::uint32_t>(parts()));
        part_lower.resize(parts(), 0), part_upper.resize(parts(), size.back());
        if constexpr (requires { r.gaps.begin()->window_lower; }) {
          auto before = first_part;
          for (auto const& g : r.gaps) {
            if (g.window_lower != g.window_upper) {
              for (std::size_t c = 0; c < streams; ++c) {
                born.push_back(born[before * streams + c]);
                dies.push_back(dies[(before + 1) * streams + c]);
              }
              part_lower.push_back(g.window_lower), part_upper.push_back(g.window_upper);
            }
            ++before;
          }
        }
      }
      if (cut) part_begin.push_back(static_cast<std::uint32_t>(parts()));
    }
    auto const column = [&](auto& out, auto plain, auto&& of) {
      bool any = false;
      for (auto const& r : records) any |= of(r) != plain;
      if (any)
        for (auto const& r : records) out.push_back(of(r));
    };
    if constexpr (requires(record const& r) { r.alignment; })
      column(alignment, 1, [](record const& r) { return static_cast<std::int64_t>(r.alignment); });
    if constexpr (requires(record const& r) { r.offset; })
      column(fixed, any_offset, [](record const& r) { return static_cast<std::int64_t>(r.offset); });
    if constexpr (requires(record const& r) { r.stream; })
      column(stream, 0, [](record const& r) { return static_cast<std::int32_t>(r.stream); });
    if constexpr (requires(record const& r) { r.pool; })
      column(pool, -1, [](record const& r) { return static_cast<std::int32_t>(r.pool); });
  }

  constexpr std::size_t count() const { return size.size(); }
  /// Whether record `i` needs memory at all.
  constexpr bool occupies(std::size_t i) const { return size[i] > 0; }
  constexpr std::int64_t alignment_of(std::size_t i) const { return alignment.empty() ? 1 : alignment[i]; }
  constexpr std::int64_t fixed_of(std::size_t i) const { return fixed.empty() ? any_offset : fixed[i]; }
  constexpr std::int32_t stream_of(std::size_t i) const { return stream.empty() ? 0 : stream[i]; }
  constexpr std::int32_t pool_of(std::size_t i) const { return pool.empty() ? -1 : pool[i]; }
  constexpr std::size_t parts_begin(std::size_t i) const { return part_begin.empty() ? i : part_begin[i]; }
  constexpr std::size_t parts_end(std::size_t i) const { return part_begin.empty() ? i + 1 : part_begin[i + 1]; }

  constexpr std::size_t windows_begin(std::size_t i) const {
    return window_begin.empty() ? parts_end(i) : window_begin[i];
  }
  constexpr bool has_windows() const { return !part_lower.empty(); }
  constexpr std::int64_t part_from(std::size_t part) const { return has_windows() ? part_lower[part] : 0; }
  /// `part` is one of record i.
  constexpr std::int64_t part_to(std::size_t i, std::size_t part) const {
    return has_windows() ? part_upper[part] : size[i];
  }

  /// Whether part x happens before part y: all that x waits for has ended when y is born.
  constexpr bool part_precedes(std::size_t x, std::size_t y) const {
    for (std::size_t s = 0; s < streams; ++s)
      if (dies[x * streams + s] > born[y * streams + s]) return false;
    return true;
  }
  /// Whether some part of record a happens before some part of record b. (Windows add nothing: they die with a part.)
  constexpr bool hands_over(std::size_t a, std::size_t b) const {
    for (auto x = parts_begin(a); x < parts_end(a); ++x)
      for (auto y = parts_begin(b); y < parts_end(b); ++y)
        if (part_precedes(x, y)) return true;
    return false;
  }
  /// Whether a and b may be alive at once, if windows are left aside. O(parts of a * parts of b * streams).
  constexpr bool meet(std::size_t a, std::size_t b) const {
    for (auto x = parts_begin(a); x < parts_end(a); ++x)
      for (auto y = parts_begin(b); y < parts_end(b); ++y)
        if (!part_precedes(x, y) && !part_precedes(y, x)) return true;
    return false;
  }

 private:
  constexpr std::size_t parts() const { return streams == 0 ? size.size() : dies.size() / streams; }
  /// Appends a clock, cut or filled up to the number of streams; false if it had another length.
  template <class Clock>
  constexpr bool append(std::vector<std::int64_t>& out, Clock const& clock) const {
    std::size_t k = 0;
    for (auto t : clock)
      if (k++ < streams) out.push_back(static_cast<std::int64_t>(t));
    for (auto s = k; s < streams; ++s) out.push_back(0);
    return k == streams && k > 0;
  }
};

/// What is wrong with the records, and with which, or an empty fault: clocks of different lengths, lives or parts that
/// end before they begin, gaps that do, and bytes as in fault_of(memory_problem). O(clocks).
constexpr plan_fault fault_of(stream_problem const& p) {
  auto const bad = [](std::size_t i, std::string_view what) { return plan_fault{what, static_cast<std::int64_t>(i)}; };
  if (p.uneven >= 0) return bad(static_cast<std::size_t>(p.uneven), "its clocks have another number of streams");
  std::int64_t total = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (auto const wrong = detail::wrong_bytes(p.size[i], p.alignment_of(i), p.fixed_of(i), total); !wrong.empty())
      return bad(i, wrong);
    bool const whole = p.windows_begin(i) == p.parts_begin(i) + 1;
    for (auto x = p.parts_begin(i); x < p.windows_begin(i); ++x) {
      if (p.part_precedes(x, x))
        return bad(i, whole ? "its death is not after its birth" : "a part of its life ends before it begins");
      if (x + 1 < p.windows_begin(i) && !p.part_precedes(x, x + 1)) return bad(i, "a gap ends before it begins");
    }
    for (auto x = p.windows_begin(i); x < p.parts_end(i); ++x)
      if (p.part_lower[x] < 0 || p.part_upper[x] < p.part_lower[x] || p.part_upper[x] > p.size[i])
        return bad(i, "a gap's window is outside the record");
  }
  return {};
}

struct stream_wait {
  std::uint32_t earlier, later;  ///< records that share bytes, of different streams: `later` waits for `earlier`
  friend constexpr bool operator==(stream_wait const&, stream_wait const&) = default;
};

struct stream_plan {
  memory_plan plan;  ///< a stream has no one clock, so `moment` says nothing
  std::vector<stream_wait>
      waits;  ///< hand-overs across streams that the offsets make use of; with gaps also to and fro
};

}}  // namespace neap::v0
