// The stages of an epoch, in the order in which they run: the list that the diagram in include/neap/README.md shows.
//
// A new stage is a file in stages/, a row here, and its numbers in search_policy.hpp.
#pragma once

#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stage_scope.hpp>
#include <neap/optimize/stages/exploration.hpp>
#include <neap/optimize/stages/neighbourhoods.hpp>
#include <neap/optimize/stages/offloads.hpp>
#include <neap/optimize/stages/rules.hpp>
#include <neap/optimize/stages/smallest_peak.hpp>

#include <array>

namespace neap { inline namespace v0 { namespace detail {

struct stage {
  char const* name;  // in stage_record; before a dot the group of search_policy
  phase in;
  bool (*is_on)(search_run const&);  // its switch, and whether the search has use for it now
  void (*run)(search_run&);
};

// ---- when

inline bool misses_memory_limit(search_run const& r) {
  return r.state.active_limits.limits_memory && !r.state.is_met();
}
inline bool meets_memory_limit(search_run const& r) { return r.state.active_limits.limits_memory && r.state.is_met(); }
/// Under a limit of memory the answer costs no time, and has addresses: nothing is to be gained.
inline bool has_free_answer(search_run& r) { return r.state.is_free() && r.placing.place() && r.state.out.fits; }
inline bool may_rewrite(search_run const& r) { return r.state.policy.rules.on && r.state.allowed.rewrite; }
inline bool may_recompute(search_run const& r) { return r.recomputed.is_on(); }
inline bool may_swap(search_run const& r) { return r.state.allowed.swap > 0; }
inline bool may_cut(search_run const& r) { return r.state.policy.parts.on && r.state.allowed.cut; }
inline bool may_dive(search_run const& r) { return r.state.policy.dives.on && !r.has_strategy(); }

// ---- which

inline constexpr std::array<stage, 18> epoch_stages{{
    {"hidden_swaps", phase::begin,
     [](search_run const& r) {
       return r.state.policy.hidden_swaps.on && may_swap(r) && r.state.active_limits.limits_memory &&
              !r.state.is_free();
     },
     [](search_run& r) { add_hidden_swaps(r.state, r.bases); }},
    {"rules", phase::begin, may_rewrite, [](search_run& r) { add_rewritten_base(r); }},

    {"external_seeds", phase::seeds, [](search_run const& r) { return r.external.is_on(); },
     [](search_run& r) { r.external.add_seeds(false, [&r] { search_first_fit(r); }); }},
    {"parts.sweeps", phase::seeds, [](search_run const& r) { return may_cut(r) && !r.parts.is_prepared(); },
     [](search_run& r) { r.parts.prepare(r.starts, r.recomputed); }},
    {"parts", phase::seeds, may_cut, [](search_run& r) { r.parts.add_seeds(r.starts, r.recomputed); }},
    {"segments", phase::seeds, may_recompute, [](search_run& r) { r.recomputed.add_seeds(r.starts); }},
    {"offloads", phase::seeds, [](search_run const& r) { return r.state.policy.offloads.on && may_swap(r); },
     [](search_run& r) { add_offloads(r.state); }},

    {"price_reduction", phase::sub_searches,
     [](search_run const& r) {
       return r.state.policy.price_reduction.on && r.state.allowed.cut && meets_memory_limit(r);
     },
     [](search_run& r) { reduce_price(r); }},
    {"smallest_peak", phase::sub_searches, misses_memory_limit, [](search_run& r) { search_until_met(r); }},

    {"further_parts", phase::exploration,
     [](search_run const& r) { return r.state.policy.further_parts.on && !r.has_strategy(); },
     [](search_run& r) { cut_open_list(r); }},
    {"dives.seeds", phase::exploration, [](search_run const& r) { return may_dive(r) && r.state.allowed.recompute; },
     [](search_run& r) { dive_from_seeds(r); }},
    {"segments.placed", phase::exploration, [](search_run const& r) { return r.state.allowed.recompute; },
     [](search_run& r) { reseed_until_placed(r); }},
    {"dives.orders", phase::exploration, may_dive, [](search_run& r) { dive_from_orders(r); }},
    {"dives.external", phase::exploration, [](search_run const& r) { return may_dive(r) && r.external.is_on(); },
     [](search_run& r) { r.diving.search_from_external(); }},
    {"open_list", phase::exploration, [](search_run const&) { return true; },
     [](search_run& r) { search_open_list(r); }},
    {"neighbourhoods", phase::exploration,
     [](search_run const& r) { return r.state.policy.neighbourhoods.on && !r.has_strategy(); },
     [](search_run& r) { search_neighbourhoods(r.state, r.diving, 16 + r.state.epoch); }},

    {"rules.answer", phase::answer, [](search_run const& r) { return may_rewrite(r) && meets_memory_limit(r); },
     [](search_run& r) { apply_rules(r.state, r.moves, r.state.best, 1); }},
    {"placement", phase::answer, [](search_run const&) { return true; }, [](search_run& r) { place_answer(r); }},
}};

/// Runs the stages of a phase, each with a record.
inline void run_stages(search_run& run, phase now) {
  for (auto const& s : epoch_stages) {
    if (s.in != now || !s.is_on(run)) continue;
    stage_scope const recorded(run.state, s.name);
    s.run(run);
  }
}

/// An epoch at these limits, with so much work, in seconds of the meter.
inline void run_epoch(search_run& run, objective const& limits, double work) {
  run.begin_epoch(limits, work);
  run.state.part = limits.limits_memory ? run.state.policy.epochs.before_addresses : 1;
  run_stages(run, phase::begin);
  if (!has_free_answer(run)) {
    run.starts = run.bases;
    run_stages(run, phase::seeds);
    run_stages(run, phase::sub_searches);
    if (!misses_memory_limit(run)) run_stages(run, phase::exploration);
  }
  run_stages(run, phase::answer);
}

}}}  // namespace neap::v0::detail
