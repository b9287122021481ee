// rk-Rotor: the fastest way to train a chain of blocks within a memory limit, each block in one of several options
// (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for heterogeneous chains; options as in
// Zhao et al.: Rockmate). It is the optimum over sequences in which an input that is kept stays until its backward. Where
// it departs from Rockmate's: its plans keep their budget, and one run answers every budget up to the largest.
//
//   auto const solved = neap::rotor::solve(chain, 400).value();
//   if (solved.feasible(377)) run(solved.sequence(377));  // takes solved.time(377)
#pragma once

#include <neap/blocks/rotor_table.hpp>
#include <neap/core/error.hpp>
#include <neap/plan/chain_profile.hpp>
#include <neap/plan/chain_sequence.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A point of the trade of memory for time.
struct chain_front_point {
  slots_t budget = 0;  ///< the least with which this time is reached
  double time = 0;
  friend bool operator==(chain_front_point const&, chain_front_point const&) = default;
};

/// The answers for every budget up to the largest, from one run.
class rotor {
 public:
  /// Budgets are in slots, the chain's input not counted. Fails if the chain is wrong, or its table would be larger than
  /// the options allow.
  static result<rotor> solve(chain_profile const& chain, slots_t largest_budget, rotor_options options = {}) {
    if (auto const good = check(chain); !good) return failure{good.message()};
    try {
      return rotor(least_time(chain), std::max<slots_t>(largest_budget, -1),
                   std::make_unique<detail::rotor_table>(chain, largest_budget, options));
    } catch (detail::rotor_table::too_large const&) {
      return failure{"the solver's table would take more than " + std::to_string(options.max_table_bytes) +
                     " bytes: take a smaller limit, or larger slots"};
    } catch (detail::rotor_table::too_long const&) {
      return failure{"the solver's table for " + std::to_string(chain.size()) + " blocks would take more than " +
                     std::to_string(options.max_table_bytes) + " bytes, whatever the limit"};
    }
  }

  /// The largest budget of the table.
  slots_t largest_budget() const { return largest_; }
  /// Whether some plan fits. A budget larger than the largest is taken for that.
  bool feasible(slots_t budget) const { return time(budget) < HUGE_VAL; }
  /// The least time; infinite if no plan fits.
  double time(slots_t budget) const { return least_ + table_->overhead(std::min(budget, largest_)); }
  /// A sequence of that time; empty if no plan fits.
  chain_sequence sequence(slots_t budget) const {
    return feasible(budget) ? table_->sequence(std::min(budget, largest_)) : chain_sequence{};
  }
  /// Every budget at which the time falls, ascending, up to the largest.
  std::vector<chain_front_point> front() const {
    std::vector<chain_front_point> points;
    double last = HUGE_VAL;
    for (slots_t m = 0; m <= table_->largest(); ++m)
      if (double const t = time(m * table_->unit()); t < last) points.push_back({m * table_->unit(), last = t});
    return points;
  }

 private:
  rotor(double least, slots_t largest, std::unique_ptr<detail::rotor_table> table)
      : least_(least),
        largest_(largest),
        table_(std::move(table)) {}
  double least_;
  slots_t largest_;
  std::unique_ptr<detail::rotor_table> table_;
};

}}  // namespace neap::v0
