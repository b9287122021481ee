// Mutators and the search, for one source file of a program whose files are compiled with NEAP_SEPARATE_COMPILATION;
// neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/search.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif
#if defined(NEAP_FUNC) && !defined(NEAP_SRC)
#error "neap/src/search.hpp stands before other headers of neap"
#endif
#define NEAP_SRC

// Declarations of what neap/src/model.hpp defines; the rest is made here.
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include <neap/core/separate_compilation.hpp>
#undef NEAP_INSTANTIATE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) template __VA_ARGS__

#include <neap/mutate/impl/build_edit.ipp>
#include <neap/mutate/impl/fission.ipp>
#include <neap/mutate/impl/fission_region.ipp>
#include <neap/mutate/impl/fission_sweep.ipp>
#include <neap/mutate/impl/gap.ipp>
#include <neap/mutate/impl/lift.ipp>
#include <neap/mutate/impl/offload.ipp>
#include <neap/mutate/impl/places_alike.ipp>
#include <neap/mutate/impl/recompute_ground.ipp>
#include <neap/mutate/impl/recompute_stretch.ipp>
#include <neap/mutate/impl/rematerialize.ipp>
#include <neap/mutate/impl/replay.ipp>
#include <neap/mutate/impl/replay_facts.ipp>
#include <neap/mutate/impl/rewrite.ipp>
#include <neap/mutate/impl/rules_in_parts.ipp>
#include <neap/mutate/impl/swap.ipp>
#include <neap/mutate/impl/undo.ipp>
#include <neap/mutate/impl/window_facts.ipp>
#include <neap/optimize/impl/fission_seeds.ipp>
#include <neap/optimize/impl/held_at_peak.ipp>
#include <neap/optimize/impl/once_reasons.ipp>
#include <neap/optimize/impl/op_names.ipp>
#include <neap/optimize/impl/optimize.ipp>
#include <neap/optimize/impl/pareto_front.ipp>
#include <neap/optimize/impl/pin_guard.ipp>
#include <neap/optimize/impl/policy_text.ipp>
#include <neap/optimize/impl/search.ipp>
#include <neap/optimize/impl/search_options.ipp>
#include <neap/optimize/impl/search_policy.ipp>
#include <neap/optimize/impl/search_summary.ipp>
#include <neap/optimize/impl/seen_candidates.ipp>
#include <neap/optimize/impl/warm_start.ipp>

#include <neap/optimize/planned_once.hpp>
