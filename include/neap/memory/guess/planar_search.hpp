// Packings that leave nothing free, as planar networks: a boundary between two sections is cut by what lives through it
// into stretches, and in each what begins fills what ends left, to the byte. Stretches are the nodes of a network, records
// its arcs, sizes a flow (Brooks, Smith, Stone and Tutte 1940). Records with such stretches can be packed just if the network
// is planar, and no offset is needed to tell: the orders in which the records of a section may lie are a PQ-tree
// (memory/guess/pq_tree.hpp), in which what ends in one stretch must be contiguous and what begins there takes its place.
//
//        |ccccccc|      stretches {a, b} -> {d}, {e} -> {f}; c crosses. Then a and b are neighbours, in either order
//        |aaa|   |
//        |bbb|ddd|
//        |eee|fff|
//
// The search goes from boundary to boundary with the likeliest ways in which the records so far may lie, and assigns
// what ends and begins at the next one to stretches.
//
//   blocks    what ends and lies together in all orders left is in one stretch: a packing with more stretches there is
//             one with this one
//   evidence  a stretch whose sums agree by chance is rare, and so counts for its way (stretch_guesses.hpp)
//   free bytes  what a section leaves free is handed over like what is placed, but lives in one section only
//   beam      of all ways at a boundary the likeliest go on. Wrong ways meet fewer sums that agree, and fall behind (the
//             M-algorithm of sequential decoding: Anderson and Mohan 1984)
//   begin     a search begins in any section, where all that lives may lie in any order, and goes to one end of time; the
//             ways that got there are gone back to where they began, and from there on to the other end:
//
//                       begin |------> end       then       begin <-----|------- end
//                                                                search   retrace
//
//             Two from the ends, six from sections between, then as many with twice as many ways
//   exchange  what lies together in most ways of searches that came to a section from the other side counts against ways
//             in which it cannot (memory/guess/likely_sets.hpp)
//
// It finds packings and proves nothing.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/guess/likely_sets.hpp>
#include <neap/memory/guess/planar_orders.hpp>
#include <neap/memory/guess/planar_problem.hpp>
#include <neap/memory/guess/stretch_assignment.hpp>
#include <neap/memory/guess/stretch_guesses.hpp>
#include <neap/memory/guess/way_history.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// The ways on from a boundary, of which the likeliest are kept.
class way_candidates {
 public:
  struct candidate {
    double likelihood, rank;  // rank: with what the other side knows
    state_hash state;
    std::uint32_t from, first, count;  // way, stretches
  };

  void start(std::size_t width) { width_ = width, clear(); }
  void clear() { all_.clear(), stretches_.clear(), ranks_.clear(), seen_.clear(); }
  /// Whether as many as are kept have a higher rank than one of this likelihood can have.
  bool too_low(double likelihood) const { return ranks_.size() == width_ && likelihood < ranks_.front(); }
  void add(double likelihood, double rank, state_hash const& state, std::uint32_t from,
           plain_vector<stretch> const& assigned) {
    all_.push_back({likelihood, rank, state, from, static_cast<std::uint32_t>(stretches_.size()),
                    static_cast<std::uint32_t>(assigned.size())});
    stretches_.append(assigned.data(), assigned.size());
    if (seen_.contains(state)) return;
    seen_.insert(state);
    ranks_.push_back(rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
    if (ranks_.size() <= width_) return;
    std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
    ranks_.pop_back();
  }
  /// f(candidate, its stretches) for the best of different states, the highest rank first.
  template <class F>
  void for_each_best(F&& f) {
    sort_list(all_, [](candidate const& a, candidate const& b) { return a.rank > b.rank; });
    seen_.clear();
    std::size_t kept = 0;
    for (auto const& c : all_) {
      if (kept == width_) break;
      if (seen_.contains(c.state)) continue;
      seen_.insert(c.state);
      ++kept;
      f(c, stretches_.data() + c.first);
    }
  }
  double best_likelihood() const { return all_.front().likelihood; }

 private:
  std::size_t width_ = 0;
  plain_vector<candidate> all_;
  plain_vector<stretch> stretches_;
  plain_vector<double> ranks_;  // a heap: the highest of different states, the least first
  failed_states seen_;
};

/// For lives without holes, offsets that are free and not aligned. Deterministic.
class planar_search final : public placement_search {
 public:
  explicit planar_search(packing_problem const& problem)
      : problem_(problem),
        orders_(problem_),
        turned_orders_(problem_),
        history_(problem_),
        offsets_(problem.count(), 0) {}

  /// Begins anew: do the records fit below `capacity`?
  void start(std::int64_t capacity) override {
    nodes_ = 0, level_ = 0, ways_.clear();
    hopeless_ = !problem_.read(capacity);
    if (hopeless_) return;
    for (std::size_t d = 0; d < 2; ++d) {
      starts_[d] = problem_.inner_starts(d);
      likely_[d].assign(problem_.sections(), {});
    }
    start_ = 0, widenings_ = 0;
  }

  /// Goes on from where it stopped. A node is a stretch that was tried; `stop` is tested for each after the way or
  /// boundary that it belongs to.
  feasibility run(stop_condition const& stop) override {
    while (!hopeless_) {
      if (next_ == ways_.size()) {
        if (ways_.empty()) begin_search();
        else if (turning_) end_turn();
        else go_on();
        if (!ways_.empty() && at_ == problem_.sections()) {
          if (first_section_ == 0 || turned_) {
            history_.place(ways_.front().step, direction_, first_section_, turned_, orders_, offsets_, tried_);
            return feasibility::yes;
          }
          begin_turn();
        }
      } else if (turning_) turn(ways_[next_++]);
      else expand(ways_[next_++]);
      bool stopped = false;
      for (; tried_ > 0 && !stopped; --tried_) stopped = stop(++nodes_);
      if (stopped) break;
    }
    return feasibility::unknown;
  }

  std::int64_t offset(std::size_t record) const override { return offsets_[record]; }

 private:
  static constexpr std::uint32_t none = planar_orders::none;

  struct way {
    std::uint32_t root;  // the orders of what is alive
    double likelihood;   // beside the others
    std::uint32_t step;  // how it came about, in history_
  };

  planar_boundary& boundary() { return problem_.boundary(direction_, at_); }

  /// The next search, the other way in time: from an end, from another section, or from an end with more ways.
  void begin_search() {
    auto const turn = level_ % planar_policy::searches_of_width;
    if (turn == 0 && level_ > 0) ++widenings_;
    ++level_;
    width_ = planar_policy::first_width << std::min(widenings_, planar_policy::most_widenings);
    direction_ = turn % 2;
    first_section_ = turn < 2 ? 0 : starts_[direction_][start_++ / 2 % starts_[direction_].size()];
    turned_ = false, ++tried_;
    orders_.clear(), history_.clear(), guesses_.clear();
    at_ = first_section_ + 1;
    ways_.assign(1, {orders_.all_in(direction_, first_section_), 1, none});
    next_ = 0;
    candidates_.start(width_);
  }

  /// The ways on from that one.
  void expand(way const& from) {
    orders_.find_items(boundary(), from.root);
    if (orders_.items.size() > planar_policy::most_items) return;
    orders_.find_blocks(from.root, blocks_);
    sort_list(blocks_);
    // Where there are few ways each has more ways on; wider searches look at rarer ones.
    auto const most = std::max(planar_policy::least_continuations, 4 * width_ / ways_.size());
    auto const least_chance = planar_policy::rarest_chance *
                              static_cast<double>(planar_policy::least_continuations * planar_policy::first_width) /
                              static_cast<double>(most * width_);
    auto const& guesses = guesses_.at(boundary(), orders_, blocks_, least_chance);
    auto const number = static_cast<std::uint32_t>(next_ - 1);
    ++tried_;
    tried_ += assignment_.run(boundary(), orders_, blocks_, guesses, least_chance, most, {from.root, from.likelihood},
                              [&](std::uint32_t root, double likelihood, plain_vector<stretch> const& assigned) {
                                if (candidates_.too_low(likelihood)) return;  // its rank is no higher
                                candidates_.add(likelihood, likelihood * agreement(root), orders_.state_of(root),
                                                number, assigned);
                              });
  }
  /// Of the orders behind the boundary with what searches the other way in time found likely there.
  double agreement(std::uint32_t root) const {
    auto const& sets = likely_[1 - direction_][problem_.sections() - 1 - at_];
    return sets.empty() ? 1 : sets.agreement(orders_.tree, root);
  }

  /// To the next boundary, with the likeliest ways.
  void go_on() {
    plain_vector<way> ways;
    planar_orders behind(problem_);
    candidates_.for_each_best([&](way_candidates::candidate const& c, stretch const* assigned) {
      auto const before = orders_.size();
      auto const& from = ways_[c.from];
      auto root = from.root;
      orders_.find_items(boundary(), root);
      for (std::uint32_t k = 0; k < c.count; ++k, ++tried_) {
        std::uint32_t by = none;
        root = orders_.put(boundary(), root, assigned[k], by);
      }
      ways.push_back({orders_.copy_to(behind, root), c.likelihood / candidates_.best_likelihood(),
                      history_.add(from.step, assigned, c.count)});
      orders_.shrink(before);
    });
    std::swap(orders_, behind), std::swap(ways_, ways);
    candidates_.clear(), guesses_.clear();
    next_ = 0, ++at_;
    if (!ways_.empty()) likely_[direction_][at_ - 1].learn(orders_.tree, ways_, orders_.record_count());
  }

  // From ways to the end to ways of the same packings from there to the first section, which go on to the begin.
  void begin_turn() {
    turning_ = turned_ = true, next_ = 0;
    direction_ = 1 - direction_, at_ = problem_.sections() - first_section_;
    history_.begin_second_part();
    seen_.clear();
  }
  void turn(way const& from) {
    std::vector<replacement> path;
    auto const root = history_.retrace(from.step, 1 - direction_, first_section_, orders_, path, tried_);
    auto const state = orders_.state_of(root);
    if (seen_.contains(state)) return;
    seen_.insert(state);
    turned_ways_.push_back({orders_.copy_to(turned_orders_, root), from.likelihood, from.step});
  }
  void end_turn() {
    std::swap(orders_, turned_orders_), std::swap(ways_, turned_ways_);
    turned_orders_.clear(), turned_ways_.clear(), seen_.clear();
    turning_ = false, next_ = 0;
    guesses_.clear();
  }

  planar_problem problem_;
  planar_orders orders_, turned_orders_;
  way_history history_;
  std::size_t direction_ = 0, level_ = 0, width_ = 0;
  std::uint32_t at_ = 0;  // the boundary
  plain_vector<way> ways_, turned_ways_;
  std::size_t next_ = 0;                              // of the ways
  std::uint32_t first_section_ = 0;                   // where the search began
  bool turned_ = false, turning_ = false;             // it goes on from there to the begin; it is about to
  std::array<std::vector<std::uint32_t>, 2> starts_;  // other sections to begin at, the best first
  std::size_t start_ = 0, widenings_ = 0;
  std::array<std::vector<likely_sets>, 2> likely_;  // by section, forth and back
  std::vector<std::uint32_t> blocks_;
  stretch_guesses guesses_;
  stretch_assignment assignment_;
  way_candidates candidates_;
  failed_states seen_;
  std::vector<std::int64_t> offsets_;
  std::int64_t tried_ = 0;  // stretches, since `stop` was tested
  bool hopeless_ = true;
};

}  // namespace neap::inline v0::detail
