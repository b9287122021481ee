// Graphs, models, training steps, schedules and memory plans, for one source file of a program whose files are compiled
// with NEAP_SEPARATE_COMPILATION; neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src_model.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif
#if defined(NEAP_FUNC) && !defined(NEAP_SRC)
#error "neap/src_model.hpp stands before other headers of neap"
#endif
#define NEAP_SRC

#include <neap/core/separate_compilation.hpp>
#undef NEAP_INSTANTIATE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) template __VA_ARGS__

#include <neap/core/impl/error.ipp>
#include <neap/core/impl/min_cut.ipp>
#include <neap/core/impl/number_set.ipp>
#include <neap/core/impl/readable.ipp>
#include <neap/core/impl/tensor_type.ipp>
#include <neap/core/impl/text_part.ipp>
#include <neap/core/impl/units.ipp>
#include <neap/core/impl/worker_team.ipp>
#include <neap/ir/impl/digests.ipp>
#include <neap/ir/impl/dim_links.ipp>
#include <neap/ir/impl/editor.ipp>
#include <neap/ir/impl/graph.ipp>
#include <neap/ir/impl/operator.ipp>
#include <neap/ir/impl/pin_rules.ipp>
#include <neap/ir/operators/impl/fused.ipp>
#include <neap/ir/operators/impl/fused_rows.ipp>
#include <neap/memory/impl/exact_placing.ipp>
#include <neap/memory/impl/lifetimes.ipp>
#include <neap/memory/impl/make_plan.ipp>
#include <neap/model/functions/impl/einsum.ipp>
#include <neap/model/functions/impl/elementwise.ipp>
#include <neap/model/functions/impl/matrix.ipp>
#include <neap/model/functions/impl/movement.ipp>
#include <neap/model/functions/impl/rows.ipp>
#include <neap/model/impl/apply.ipp>
#include <neap/model/impl/context.ipp>
#include <neap/model/impl/fields.ipp>
#include <neap/model/impl/initialise.ipp>
#include <neap/model/impl/op_names.ipp>
#include <neap/model/impl/precision.ipp>
#include <neap/model/impl/sample_form.ipp>
#include <neap/model/impl/storage.ipp>
#include <neap/model/impl/tensor.ipp>
#include <neap/model/impl/trace.ipp>
#include <neap/model/nn/impl/linear.ipp>
#include <neap/model/nn/impl/norm.ipp>
#include <neap/plan/impl/memory_plan.ipp>
#include <neap/schedule/impl/exact_windows.ipp>
#include <neap/schedule/impl/incremental.ipp>
#include <neap/schedule/impl/memory_greedy.ipp>
#include <neap/schedule/impl/order.ipp>
#include <neap/schedule/impl/refine.ipp>
#include <neap/schedule/impl/slide.ipp>
#include <neap/simulate/impl/simulator.ipp>
#include <neap/train/impl/accumulate.ipp>
#include <neap/train/impl/activation_recovery.ipp>
#include <neap/train/impl/batch_parts.ipp>
#include <neap/train/impl/batch_use.ipp>
#include <neap/train/impl/clip.ipp>
#include <neap/train/impl/differentiate.ipp>
#include <neap/train/impl/freeze.ipp>
#include <neap/train/impl/fuse_elementwise.ipp>
#include <neap/train/impl/fuse_epilogues.ipp>
#include <neap/train/impl/fuse_rows.ipp>
#include <neap/train/impl/fuse_updates.ipp>
#include <neap/train/impl/fused_graph.ipp>
#include <neap/train/impl/grad.ipp>
#include <neap/train/impl/loss.ipp>
#include <neap/train/impl/mixed.ipp>
#include <neap/train/impl/old_values.ipp>
#include <neap/train/impl/optimizer.ipp>
#include <neap/train/impl/program_copy.ipp>
#include <neap/train/impl/program_places.ipp>
#include <neap/train/impl/step_numbers.ipp>
#include <neap/train/impl/training_step.ipp>
