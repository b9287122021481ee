// What searches that place one record after the other have in common (skyline_search.hpp, fill_search.hpp): a stack of
// frames, each a part of the problem that is left, its records and sections behind one another in two pools; and runs, of
// which each begins anew with other preferences.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/split_mix.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

struct search_frame {
  static constexpr std::uint32_t none = 0xffffffffu;

  std::size_t entries = 0, sections_at = 0;         // where its entries and sections begin in the pools
  std::size_t free_entries = 0, free_sections = 0;  // where the pools are free for what it opens
  std::uint32_t count = 0, begin = 0, end = 0;      // entries, by the begin of their lives; sections [begin, end)
  std::uint32_t parent = none;                      // the frame whose placement made it
  std::uint32_t placed = none;                      // the entry that is placed
  state_hash state{};
};

/// The frame of the whole problem, at the begin of the pools.
template <class Frame>
constexpr Frame root_frame(std::size_t records, std::uint32_t sections) {
  Frame root;
  root.count = static_cast<std::uint32_t>(records), root.end = sections;
  root.free_entries = records, root.free_sections = sections;
  return root;
}
/// The frame of what a placement leaves of `f`, which is number `parent`: behind it in the pools, which get room for it.
template <class Frame, class Entry, class Section>
constexpr Frame frame_behind(Frame const& f, std::uint32_t parent, plain_vector<Entry>& entries,
                             plain_vector<Section>& sections) {
  Frame rest;
  rest.entries = f.free_entries, rest.sections_at = f.free_sections;
  rest.count = f.count - 1, rest.begin = f.begin, rest.end = f.end, rest.parent = parent;
  rest.free_entries = rest.entries + rest.count, rest.free_sections = rest.sections_at + (f.end - f.begin);
  if (entries.size() < rest.free_entries) entries.resize(2 * rest.free_entries + 64, Entry{});
  if (sections.size() < rest.free_sections) sections.resize(2 * rest.free_sections + 64, Section{});
  return rest;
}
/// Pushes a frame for each run of the whole's sections that unplaced records cross; the smallest is searched first.
/// crosses(s): whether one lives in section s and the next; begins(k): where the life of the whole's k-th entry begins.
template <class Frame, class Crosses, class Begins>
constexpr void push_parts(plain_vector<Frame>& frames, Frame const& whole, std::uint32_t parent, Crosses const& crosses,
                          Begins const& begins) {
  std::size_t const first_new = frames.size();
  Frame part = whole;
  part.parent = parent, part.end = whole.begin;
  for (std::uint32_t dealt = 0; part.end < whole.end;) {
    part.begin = part.end++;
    while (part.end < whole.end && crosses(part.end - 1)) ++part.end;
    part.sections_at = whole.sections_at + (part.begin - whole.begin);
    part.entries = whole.entries + dealt, part.count = 0;
    while (dealt < whole.count && begins(dealt) < part.end) ++dealt, ++part.count;
    if (part.count > 0) frames.push_back(part);
  }
  detail::sort_range(frames.data() + first_new, frames.data() + frames.size(), [](Frame const& a, Frame const& b) {
    return a.count != b.count ? a.count > b.count : a.begin > b.begin;
  });
}

/// Runs of a search, each longer than the one before: the first with the preferences that it is given, records in their
/// order, later ones with these disturbed.
class search_runs {
 public:
  explicit constexpr search_runs(std::size_t records) : preference_(records, 0) {}

  /// The first run, of so many nodes; 0: it does not end.
  constexpr void start(std::int64_t nodes) {
    number_ = 0, length_ = end_ = nodes;
    disturb();
  }
  constexpr void next(std::int64_t nodes) {
    ++number_;
    length_ += length_ / 8 + 1;
    end_ = nodes + length_;
    disturb();
  }
  constexpr bool end() const { return end_ > 0; }
  constexpr bool is_over(std::int64_t nodes) const { return end() && nodes >= end_; }
  constexpr std::size_t number() const { return static_cast<std::size_t>(number_); }
  /// Of a record, the least first.
  constexpr double preference(std::uint32_t record) const { return preference_[record]; }
  /// In [0, 1), another one at each call, the same ones in each run of a number.
  constexpr double uniform() { return random_.uniform(); }

 private:
  constexpr void disturb() {
    random_ = split_mix(static_cast<std::uint64_t>(number_));
    auto const spread = static_cast<double>(preference_.size()) * (number_ == 0 ? 0 : 0.3);
    for (std::uint32_t i = 0; i < preference_.size(); ++i)
      preference_[i] = static_cast<double>(i) + spread * random_.uniform();
  }

  std::vector<double> preference_;
  split_mix random_{0};
  std::int64_t number_ = 0, length_ = 0, end_ = 0;
};

}  // namespace neap::inline v0::detail
