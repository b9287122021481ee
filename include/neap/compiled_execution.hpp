// Execution, for one source file of a program whose files are compiled with NEAP_COMPILED_APART;
// neap/compiled.hpp says more.
#pragma once

#if !defined(NEAP_COMPILED_APART)
#error "neap/compiled_execution.hpp: all files of the program, this one too, are compiled with NEAP_COMPILED_APART"
#endif
#if defined(NEAP_ONCE) && !defined(NEAP_COMPILING)
#error "neap/compiled_execution.hpp stands before other headers of neap"
#endif

// Declarations of what neap/compiled.hpp and neap/compiled_search.hpp define.
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
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
#include <neap/optimize/policy_text.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/fuse_elementwise.hpp>
#include <neap/train/fuse_epilogues.hpp>
#include <neap/train/training_step.hpp>

// The rest is made here.
#undef NEAP_ONCE
#undef NEAP_INSTANTIATE_ONCE
#undef NEAP_READS_BODIES
#define NEAP_ONCE NEAP_MAKE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) template __VA_ARGS__
#define NEAP_READS_BODIES 1

#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
