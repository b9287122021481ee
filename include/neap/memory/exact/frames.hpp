// What the searches that place one record after another have in common: a stack of frames, each a part of the problem
// that is left, with its entries and sections in two pools; and restarts with disturbed preferences.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/split_mix.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct search_frame {
  static constexpr std::uint32_t none = 0xffffffffu;

  std::size_t entries = 0, sections_at = 0;         // where its entries and sections begin in the pools
  std::size_t free_entries = 0, free_sections = 0;  // where the pools are free for what it opens
  std::uint32_t count = 0, begin = 0, end = 0;      // entries; sections [begin, end)
  std::uint32_t parent = none;                      // the frame whose placement made it
};

/// The least range with both.
inline void widen(section_range& a, section_range b) {
  if (a.begin == a.end) a = b;
  else if (b.begin < b.end) a = {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// The frame of the whole problem, at the begin of the pools.
template <class Frame>
Frame root_frame(std::size_t records, std::uint32_t sections) {
  Frame root;
  root.count = static_cast<std::uint32_t>(records), root.end = sections;
  root.free_entries = records, root.free_sections = sections;
  return root;
}
/// The frame of what a placement leaves of `f`, which is number `parent`: behind it in the pools, which get room for it.
template <class Frame, class Entry, class Section>
Frame frame_behind(Frame const& f, std::uint32_t parent, plain_vector<Entry>& entries,
                   plain_vector<Section>& sections) {
  Frame rest;
  rest.entries = f.free_entries, rest.sections_at = f.free_sections;
  rest.count = f.count - 1, rest.begin = f.begin, rest.end = f.end, rest.parent = parent;
  rest.free_entries = rest.entries + rest.count, rest.free_sections = rest.sections_at + (f.end - f.begin);
  if (entries.size() < rest.free_entries) entries.resize(2 * rest.free_entries + 64, Entry{});
  if (sections.size() < rest.free_sections) sections.resize(2 * rest.free_sections + 64, Section{});
  return rest;
}
/// Sorts the frames from `first_new` on so that the smallest is on top: it is searched first.
template <class Frame>
void smallest_on_top(plain_vector<Frame>& frames, std::size_t first_new) {
  sort_range(frames.data() + first_new, frames.data() + frames.size(),
             [](Frame const& a, Frame const& b) { return a.count != b.count ? a.count > b.count : a.begin > b.begin; });
}

/// Runs of a search, each longer than the one before: the first prefers records in their order, later ones in disturbed
/// orders (restarts against heavy tails: Gomes et al. 1998).
class search_runs {
 public:
  explicit search_runs(std::size_t records) : preference_(records, 0) {}

  /// The first run, of so many nodes; 0: it does not end.
  void start(std::int64_t nodes) {
    number_ = 0, length_ = end_ = nodes;
    disturb();
  }
  void next(std::int64_t nodes) {
    ++number_;
    length_ += length_ / exact_policy::run_growth + 1;
    end_ = nodes + length_;
    disturb();
  }
  bool is_over(std::int64_t nodes) const { return end_ > 0 && nodes >= end_; }
  std::size_t number() const { return static_cast<std::size_t>(number_); }
  /// Of a record, the least first.
  double preference(std::uint32_t record) const { return preference_[record]; }

 private:
  void disturb() {
    split_mix random(static_cast<std::uint64_t>(number_));
    auto const spread = number_ == 0 ? 0.0 : static_cast<double>(preference_.size()) * exact_policy::disturbance;
    for (std::uint32_t i = 0; i < preference_.size(); ++i)
      preference_[i] = static_cast<double>(i) + spread * random.uniform();
  }

  std::vector<double> preference_;
  std::int64_t number_ = 0, length_ = 0, end_ = 0;
};

}}}  // namespace neap::v0::detail
