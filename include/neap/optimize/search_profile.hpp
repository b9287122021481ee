// What a search did, and where its time went: by kind of work, and by stage.
#pragma once

#include <neap/plan/simulation.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

/// Counted always; timed only where search_options::profile is set, and 0 otherwise. Evaluated candidates are counted in
/// search_outcome::candidates.
struct search_profile {
  std::size_t drawn = 0;       // mutations that pipelines yielded
  std::size_t outlined = 0;    // of those: evaluated by their edit alone
  std::size_t built = 0;       // graphs made by mutations and by seeds
  std::size_t duplicates = 0;  // of those built: a graph and an order that were evaluated before
  std::size_t placed = 0;      // candidates with addresses
  double drawing = 0;          // seconds: mutations drawn
  double applying = 0;         // mutations made into graphs and orders
  double checking = 0;         // search for duplicates
  double judging = 0;          // facts collected, orders simulated
  double placing = 0;          // addresses found

  /// The sum of what several threads have counted and timed.
  search_profile& operator+=(search_profile const& x) {
    drawn += x.drawn, outlined += x.outlined, built += x.built, duplicates += x.duplicates, placed += x.placed;
    drawing += x.drawing, applying += x.applying, checking += x.checking, judging += x.judging, placing += x.placing;
    return *this;
  }
  double timed() const { return drawing + applying + checking + judging + placing; }
};

/// One run of a stage (search_stages.hpp). Work, seconds and candidates are its own: those of stages inside it, of
/// sub-searches, have records of their own.
struct stage_record {
  std::string stage;
  std::string within;          // the stage whose sub-search it is a part of; empty for a stage of the epoch
  std::uint32_t epoch = 0;     // from 1 on; 0: before the first
  double work = 0;             // seconds of the work meter (core/work_meter.hpp)
  double seconds = 0;          // of the clock
  std::size_t candidates = 0;  // evaluated
  plan_cost before, after;     // the best candidate's at its begin and end, of the sub-search where there is one
};

/// One step from the original program to the best candidate.
struct search_step {
  std::string how;    // the mutation in words
  std::string stage;  // that made it
  plan_cost cost;     // after it
  friend bool operator==(search_step const&, search_step const&) = default;
};

namespace detail {

/// What `work` gives; its time is added to a sum, if profiling.
template <class Work>
auto timed(bool profiling, double& sum, Work&& work) {
  if (!profiling) return work();
  auto const begin = std::chrono::steady_clock::now();
  auto result = work();
  sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace detail

}}  // namespace neap::v0
