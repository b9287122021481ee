// A stream of mutations that are all found at once, at the first draw, and yielded from the one worth most on.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// A mutation, and what it is worth: in any unit, for who finds it.
template <class Mutation>
struct scored {
  double score;
  Mutation what;
};

/// `find(candidate)` gives a plain_vector of scored mutations; of those of one score the first comes first. It is not asked
/// about a candidate without ops.
template <class Mutation, class Find>
class ranked_stream {
 public:
  ranked_stream(candidate const& c, Find find) : candidate_(&c), find_(std::move(find)) {}
  std::optional<Mutation> next() {
    if (!found_) look();
    return at_ < ranked_.size() ? std::optional(ranked_[at_++].what) : std::nullopt;
  }

 private:
  void look() {
    found_ = true;
    if (candidate_->order.size() == 0) return;
    ranked_ = find_(*candidate_);
    detail::sort_list(ranked_, [](auto const& a, auto const& b) { return a.score > b.score; });
  }
  candidate const* candidate_;
  Find find_;
  bool found_ = false;
  std::size_t at_ = 0;
  plain_vector<scored<Mutation>> ranked_;
};

}}}  // namespace neap::v0::detail
