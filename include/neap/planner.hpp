// What an engine with its own graph needs to plan it: optimize under a memory or latency limit, schedulers, the simulator,
// memory planners, plans and their verifier. There are no models and no tensors, and nothing runs: neap/neap.hpp has these.
// Compiled apart (NEAP_SEPARATE_COMPILATION), it reads no kernel; otherwise those that say how much workspace ops need.
#pragma once

#include <neap/core/version.hpp>

#include <neap/ir/dataflow.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/external_graph.hpp>
#include <neap/ir/standard_operators.hpp>

#include <neap/plan/external_plan.hpp>
#include <neap/plan/limits.hpp>
#include <neap/plan/memory_plan.hpp>
#include <neap/plan/plan.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

#include <neap/memory/exact_placing.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/memory/planner.hpp>
#include <neap/schedule/incremental.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/lower_bound.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/filter.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/from_range.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/sample.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>

#include <neap/optimize/optimize.hpp>
#include <neap/optimize/sweep.hpp>

#include <neap/verify/plan_verifier.hpp>
