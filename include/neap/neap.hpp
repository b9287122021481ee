// What a host program needs: models and training steps, planning under a memory or latency limit, execution. Apart are
// graph files (neap/import, two more libraries), saved models and trainings (neap/train/training_file.hpp), reports (each
// header of neap/report), and what few programs need: the zoo, the exact memory planner and its relatives, graphs as text, traversals, the verifiers
// of graphs and plans, measured cost tables.
#pragma once

#include <neap/core/version.hpp>

#include <neap/ir/dataflow.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <neap/model/model.hpp>
#include <neap/train/fuse.hpp>
#include <neap/train/training_step.hpp>

#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/memory/planner.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
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

#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
