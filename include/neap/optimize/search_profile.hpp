// What a search did, and where its time went.
#pragma once

#include <chrono>
#include <cstddef>

namespace neap { inline namespace v0 {

/// Counted always; timed only where search_options::profile is set, and 0 otherwise. What a search judges stands in
/// search_outcome::candidates.
struct search_profile {
  std::size_t drawn = 0;       // mutations that pipelines gave
  std::size_t outlined = 0;    // of those: judged by what they would do, before anything was built
  std::size_t built = 0;       // graphs made by mutations and by seeds
  std::size_t duplicates = 0;  // of those built: a graph and an order that were met before
  std::size_t placed = 0;      // candidates that were given addresses
  double drawing = 0;          // seconds: mutations drawn
  double applying = 0;         // mutations made into graphs and orders
  double checking = 0;         // whether a candidate was met before
  double judging = 0;          // facts collected, orders simulated
  double placing = 0;          // addresses found
  double seeding = 0;          // everything else that seeds take: cuts, sweeps over fissions, their graphs

  /// What several threads have counted and timed; seconds are of all of them together.
  search_profile& operator+=(search_profile const& x) {
    drawn += x.drawn, outlined += x.outlined, built += x.built, duplicates += x.duplicates, placed += x.placed;
    drawing += x.drawing, applying += x.applying, checking += x.checking, judging += x.judging, placing += x.placing;
    seeding += x.seeding;
    return *this;
  }
  double timed() const { return drawing + applying + checking + judging + placing + seeding; }
};

namespace detail {

/// What `work` gives; its time is added to a sum, if profiling.
template <class Work>
auto timed(bool asked, double& sum, Work&& work) {
  if (!asked) return work();
  auto const begin = std::chrono::steady_clock::now();
  auto result = work();
  sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

/// While it is there, time that counts as nothing else counts as seeding, if profiling.
class seeding_time {
 public:
  seeding_time(bool asked, search_profile& to) : to_(asked ? &to : nullptr) {
    if (to_) other_ = to_->timed(), begin_ = clock::now();
  }
  seeding_time(seeding_time const&) = delete;
  seeding_time& operator=(seeding_time const&) = delete;
  ~seeding_time() {
    if (to_) to_->seeding += std::chrono::duration<double>(clock::now() - begin_).count() - (to_->timed() - other_);
  }

 private:
  using clock = std::chrono::steady_clock;
  search_profile* to_;
  double other_ = 0;  // timed before
  clock::time_point begin_;
};

}  // namespace detail

}}  // namespace neap::v0
