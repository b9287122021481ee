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
#include <neap/optimize/stages/small_programs.hpp>
#include <neap/optimize/stages/smallest_peak.hpp>

#include <array>

namespace neap { inline namespace v0 { namespace detail {

template <class Run>
struct stage {
  char const* name;  // in stage_record; before a dot the group of search_policy
  phase in;
  bool (*is_on)(Run const&);  // its switch, and whether the search has use for it now
  void (*run)(Run&);
};

// ---- when

template <class Run>
bool misses_memory_limit(Run const& r) {
  return r.state.active_limits.limits_memory && !r.state.is_met();
}
template <class Run>
bool meets_memory_limit(Run const& r) {
  return r.state.active_limits.limits_memory && r.state.is_met();
}
/// Under a limit of memory the answer costs no time, and has addresses: nothing is to be gained.
template <class Run>
bool has_free_answer(Run& r) {
  return r.state.is_free() && r.placing.place() && r.state.out.fits;
}
template <class Run>
bool may_rewrite(Run const& r) {
  return r.state.policy.rules.on && r.state.allowed.rewrite;
}
template <class Run>
bool may_recompute(Run const& r) {
  return r.recomputed.is_on();
}
template <class Run>
bool may_swap(Run const& r) {
  return r.state.allowed.swap > 0;
}
template <class Run>
bool is_small(Run const& r) {
  return r.state.policy.exact.on && r.state.allowed.recompute && !r.state.reorders() &&
         r.state.graph.op_count() <= live_sets::max_ops;
}
template <class Run>
bool may_cut(Run const& r) {
  return r.state.policy.parts.on && r.state.allowed.cut;
}
template <class Run>
bool may_dive(Run const& r) {
  return r.state.policy.dives.on && !r.has_strategy();
}

// ---- which

template <class Run>
inline constexpr std::array<stage<Run>, 19> stages{{
    {"hidden_swaps", phase::begin,
     [](Run const& r) {
       return r.state.policy.hidden_swaps.on && may_swap(r) && r.state.active_limits.limits_memory &&
              !r.state.is_free();
     },
     [](Run& r) { add_hidden_swaps(r.state, r.bases); }},
    {"rules", phase::begin, may_rewrite, [](Run& r) { add_rewritten_base(r); }},

    {"external_seeds", phase::seeds, [](Run const& r) { return r.external.is_on(); },
     [](Run& r) { r.external.add_seeds(false, [&r] { search_first_fit(r); }); }},
    {"parts.sweeps", phase::seeds, [](Run const& r) { return may_cut(r) && !r.parts.is_prepared(); },
     [](Run& r) { r.parts.prepare(r.starts, r.recomputed); }},
    {"exact", phase::seeds, is_small, [](Run& r) { add_small_program(r.state); }},
    {"parts", phase::seeds, may_cut, [](Run& r) { r.parts.add_seeds(r.starts, r.recomputed); }},
    {"segments", phase::seeds, may_recompute, [](Run& r) { r.recomputed.add_seeds(r.starts); }},
    {"offloads", phase::seeds, [](Run const& r) { return r.state.policy.offloads.on && may_swap(r); },
     [](Run& r) { add_offloads(r.state); }},

    {"price_reduction", phase::sub_searches,
     [](Run const& r) { return r.state.policy.price_reduction.on && r.state.allowed.cut && meets_memory_limit(r); },
     [](Run& r) { reduce_price(r); }},
    {"smallest_peak", phase::sub_searches, misses_memory_limit, [](Run& r) { search_until_met(r); }},

    {"further_parts", phase::exploration,
     [](Run const& r) { return r.state.policy.further_parts.on && !r.has_strategy(); },
     [](Run& r) { cut_open_list(r); }},
    {"dives.seeds", phase::exploration, [](Run const& r) { return may_dive(r) && r.state.allowed.recompute; },
     [](Run& r) { dive_from_seeds(r); }},
    {"segments.placed", phase::exploration, [](Run const& r) { return r.state.allowed.recompute; },
     [](Run& r) { reseed_until_placed(r); }},
    {"dives.orders", phase::exploration, may_dive, [](Run& r) { dive_from_orders(r); }},
    {"dives.external", phase::exploration, [](Run const& r) { return may_dive(r) && r.external.is_on(); },
     [](Run& r) { r.diving.search_from_external(); }},
    {"open_list", phase::exploration, [](Run const&) { return true; }, [](Run& r) { search_open_list(r); }},
    {"neighbourhoods", phase::exploration,
     [](Run const& r) { return r.state.policy.neighbourhoods.on && !r.has_strategy(); },
     [](Run& r) { search_neighbourhoods(r.state, r.diving, 16 + r.state.epoch); }},

    {"rules.answer", phase::answer, [](Run const& r) { return may_rewrite(r) && meets_memory_limit(r); },
     [](Run& r) { apply_rules(r.state, r.moves, r.state.best, 1); }},
    {"placement", phase::answer, [](Run const&) { return true; }, [](Run& r) { place_answer(r); }},
}};

/// Runs the stages of a phase, each with a record.
template <class Run>
void run_stages(Run& run, phase now) {
  for (auto const& s : stages<Run>) {
    if (s.in != now || !s.is_on(run)) continue;
    stage_scope const recorded(run.state, s.name);
    s.run(run);
  }
}

/// An epoch at these limits, with so much work, in seconds of the meter.
template <class Run>
void run_epoch(Run& run, objective const& limits, double work) {
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
