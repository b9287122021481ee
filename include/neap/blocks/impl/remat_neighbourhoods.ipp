// The bodies of <neap/blocks/remat_neighbourhoods.hpp>.
#pragma once

#include <neap/blocks/remat_neighbourhoods.hpp>

#include <neap/blocks/impl/remat_branch_and_bound.ipp>
#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/core/philox.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

template <std::size_t Words>
class neighbourhood_search {
 public:
  using set = value_set<Words>;

  neighbourhood_search(remat_neighbourhoods const& how, remat_problem const& p, remat_limits const& limits)
      : how_(how),
        problem_(p),
        limits_(limits),
        f_(p, limits),
        watch_(how.budget),
        draw_(how.seed),
        beside_(f_.values) {
    if (f_.hopeless) return;
    set chosen;
    for (auto const& g : f_.gaps)
      if (g.begins < g.to && f_.cost[g.value] < f_.never) chosen.set(g.value);
    chosen.for_each([&](std::size_t v) { free_.push_back(static_cast<std::uint32_t>(v)); });
    for (std::size_t i = 0; i < f_.ops; ++i) {
      set const all = (f_.inputs[i] | f_.outputs[i]) & chosen;
      all.for_each([&](std::size_t v) { beside_[v] |= all; });
    }
    size_.fill(std::min(solver_policy::first_values, free_.size()));
    size_[by_phases] = std::min(solver_policy::first_phases, f_.ops);
  }

  remat_answer run(remat_answer best) {
    if (!has_steps(best) || free_.empty()) return best;
    double const bound = std::max(best.lower_bound, f_.rounded(f_.bound(0, f_.given())));
    read(best);
    for (std::int64_t in_vain = 0; in_vain < how_.patience && !watch_.over() && bound < best.time * (1 - 1e-12);) {
      auto const kind = static_cast<neighbourhood>(draw_.below(kinds));
      settle(kind);
      remat_branch_and_bound const exact{.budget = {solver_policy::each, how_.budget.seconds - watch_.seconds()},
                                         .narrow = solver_policy::narrow,
                                         .widest = solver_policy::widest};
      remat_phases<Words> search(exact, problem_, limits_, &settled_, &f_.price);
      search.run(best.time);
      watch_.spent(search.work() + solver_policy::set_up);
      if (search.found()) {
        best = answer_of(problem_, search.best_sequence);
        read(best);
        in_vain = 0;
        continue;
      }
      ++in_vain;
      auto const most = kind == by_phases ? f_.ops : free_.size();
      bool const whole = search.bound() >= best.time * (1 - 1e-9);
      if (whole) size_[kind] = std::min(most, size_[kind] + 1);
      else if (size_[kind] > solver_policy::least_free) --size_[kind];
    }
    best.lower_bound = std::min(bound, best.time);
    if (best.lower_bound >= best.time * (1 - 1e-12)) best.status = remat_status::optimal;
    best.work = watch_.work();
    return best;
  }

 private:
  enum neighbourhood : std::uint8_t { by_graph, by_order, anywhere, by_phases, kinds };

  /// Keeps what the answer has alive when each phase begins.
  void read(remat_answer const& a) { settled_.alive = f_.alive_by_phase(a.steps, f_.given()); }

  /// Draws what is free; the rest is settled.
  void settle(neighbourhood kind) {
    set all;
    for (std::size_t v = 0; v < f_.values; ++v) all.set(v);
    settled_.values.assign(f_.ops + 1, all);
    settled_.values[0] = settled_.values[f_.ops] = {};
    auto const some = [&](std::size_t n) { return draw_.below(static_cast<std::uint32_t>(n)); };
    auto const size = size_[kind];
    if (kind == by_phases) {
      auto const begin = some(f_.ops + 1 - size);
      for (auto t = begin; t < begin + size; ++t) settled_.values[t + 1] = {};
      settled_.values[f_.ops] = {};
      return;
    }
    set free;
    if (kind == anywhere) {
      for (std::size_t k = 0; k < size; ++k) free.set(free_[some(free_.size())]);
    } else if (kind == by_order) {
      auto const begin = some(free_.size() + 1 - size);
      for (auto k = begin; k < begin + size; ++k) free.set(free_[k]);
    } else {
      set rim;
      for (std::size_t n = 0; n < size; ++n) {
        if (rim.empty()) rim.set(free_[some(free_.size())]);
        auto skip = some(rim.count());
        std::size_t taken = 0;
        rim.for_each([&](std::size_t v) {
          if (skip-- == 0) taken = v;
        });
        free.set(taken);
        rim |= beside_[taken];
        rim -= free;
      }
    }
    for (std::size_t t = 1; t < f_.ops; ++t) settled_.values[t] -= free;
  }

  remat_neighbourhoods how_;
  remat_problem const& problem_;
  remat_limits const& limits_;
  remat_facts<Words> f_;
  budget_watch watch_;
  random_stream draw_;
  std::vector<set> beside_;          ///< by value: those that share an op with it
  std::vector<std::uint32_t> free_;  ///< values with a choice
  std::array<std::size_t, kinds> size_{};
  remat_settled<Words> settled_;
};

}  // namespace detail

NEAP_FUNC remat_answer remat_neighbourhoods::improve(remat_problem const& p, remat_limits const& limits,
                                                     remat_answer const& known) const {
  if (auto const wrong = detail::refused(p)) return *wrong;
  remat_answer found = known;
  detail::with_values(p, max_remat_values,
                      [&](auto words) { found = detail::neighbourhood_search<words>(*this, p, limits).run(known); });
  return found;
}

}}  // namespace neap::v0
