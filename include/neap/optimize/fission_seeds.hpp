// Which fissions a search builds: those of several candidates - the program as it came, and recomputed by segments at several
// prices, so that each part recomputes within itself - estimated by one sweep each, and ranked by the limits. Then closer
// and closer to the best of them.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class fission_seeds {
 public:
  struct option {
    std::size_t base;  // the candidate's number
    estimated_fission what;
    std::size_t number = 0;  // the seeds' own
    bool tried = false;      // built, or it cannot be
  };

  fission_seeds(objective const& goal, search_policy::part_numbers const& numbers = {})
      : goal_(goal),
        numbers_(numbers) {}

  /// Adds the fissions of the next candidate: its sweep, and what this has found.
  void add(std::shared_ptr<fission_sweep> sweep, plain_vector<estimated_fission> const& front) {
    reach_ = std::max(reach_, sweep->spacing());
    sweeps_.push_back(std::move(sweep));
    take(sweeps_.size() - 1, front);
  }
  /// Adds stretches near the most promising ones; nearer at each call. False once they could not be nearer.
  bool refine(bytes_t target);
  /// What an option makes of its candidate; nothing if it cannot be built.
  std::optional<edited> build(option const& o, candidate const& c) const {
    return sweeps_[o.base]->apply(o.what.what, c);
  }
  /// How many candidates were added, and what is known of one.
  std::size_t bases() const { return sweeps_.size(); }
  fission_sweep& sweep(std::size_t base) { return *sweeps_[base]; }
  /// An option has been built, or cannot be: it is ranked no more.
  void note_tried(option const& o) { options_[o.number].tried = true; }
  /// Those that are expected to meet the target, the quickest first, and behind them the others, the smallest first; where
  /// only latency is limited, the smallest first, in turn one that is expected to meet that and one that is expected to be
  /// a little slower (estimates are wrong by some percent). Of those that come to the same, one.
  plain_vector<option> ranked(bytes_t target) const;

  /// Some that are quicker than `latency` and above the target, of falling peak and rising latency.
  plain_vector<option> quicker(bytes_t target, seconds_t latency) const;

 private:
  void take(std::size_t base, plain_vector<estimated_fission> const& found) {
    for (auto const& f : found)
      if (f.latency <= numbers_.late * goal_.latency) options_.push_back({base, f, options_.size()});
  }
  objective const& goal_;
  search_policy::part_numbers numbers_;
  std::vector<std::shared_ptr<fission_sweep>> sweeps_;  // of each candidate
  plain_vector<option> options_;
  std::uint32_t reach_ = 0;  // of the next refine()
};

/// What a sweep of g's fissions needs of the device, taken from a cost model with a graph of two small ops.
template <class C>
fission_sweep_options priced_for(op_graph const& g, C const& cost) {
  constexpr std::int64_t many = 1 << 20;
  graph_editor edit{g.facet_table()};
  auto const one = edit.add_source(role::input, {dtype::f32, {1}});
  auto const piece = edit.add_source(role::input, {dtype::f32, {many}});
  auto const copied = edit.add(op::copy{}, {one})[0];
  auto const room = edit.add(op::blank{{many}, {}, dtype::f32, -1}, {})[0];
  auto const joined = edit.add(op::place{0, 0}, {room, piece})[0];
  auto const copy = edit.graph().producer(copied), join = edit.graph().producer(joined);
  op_graph const alone(std::move(edit).finish());
  fission_sweep_options options;
  options.launch = cost(alone, copy);
  options.seconds_per_byte = std::max(cost(alone, join) - options.launch, 0.0) / static_cast<double>(2 * 4 * many);
  return options;
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/fission_seeds.ipp>
#endif
