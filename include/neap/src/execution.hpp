// What runs plans, for one source file of a program whose files are compiled with NEAP_SEPARATE_COMPILATION;
// neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/execution.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif
#if defined(NEAP_FUNC) && !defined(NEAP_SRC)
#error "neap/src/execution.hpp stands before other headers of neap"
#endif
#define NEAP_SRC

// Declarations of what neap/src/model.hpp and neap/src/search.hpp define; the rest is made here.
#include <neap/model/model.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>

#include <neap/core/separate_compilation.hpp>
#undef NEAP_INSTANTIATE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) template __VA_ARGS__

#include <neap/capture/impl/container_recorder.ipp>
#include <neap/capture/impl/expression.ipp>
#include <neap/capture/impl/host_function.ipp>
#include <neap/capture/impl/host_recorder.ipp>
#include <neap/capture/impl/recorder.ipp>
#include <neap/capture/impl/recording_state.ipp>
#include <neap/capture/impl/scalar_recorder.ipp>
#include <neap/capture/impl/stage_list.ipp>
#include <neap/capture/impl/storage_table.ipp>
#include <neap/capture/impl/tensor_recorder.ipp>
#include <neap/execute/evaluator.hpp>
#include <neap/execute/impl/arena.ipp>
#include <neap/execute/impl/batch_runner.ipp>
#include <neap/execute/impl/compiled_base.ipp>
#include <neap/execute/impl/compiled_paths.ipp>
#include <neap/execute/impl/path_planner.ipp>
#include <neap/execute/impl/path_run.ipp>
#include <neap/execute/impl/plan_like.ipp>
#include <neap/execute/impl/spill_file.ipp>
#include <neap/execute/trainer.hpp>
