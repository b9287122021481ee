// Blocks, their solvers, and reports, for one source file of a program
// whose files are compiled with NEAP_SEPARATE_COMPILATION; neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/blocks.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif

#include <neap/blocks/impl/backward_of.ipp>
#include <neap/blocks/impl/block_chain.ipp>
#include <neap/blocks/impl/block_classes.ipp>
#include <neap/blocks/impl/block_options.ipp>
#include <neap/blocks/impl/block_phases.ipp>
#include <neap/blocks/impl/block_problem.ipp>
#include <neap/blocks/impl/block_swaps.ipp>
#include <neap/blocks/impl/chain_solver.ipp>
#include <neap/blocks/impl/checkmate_milp.ipp>
#include <neap/blocks/impl/cut.ipp>
#include <neap/blocks/impl/dataflow_program.ipp>
#include <neap/blocks/impl/graph_solver.ipp>
#include <neap/blocks/impl/grouped_remat.ipp>
#include <neap/blocks/impl/kernel_graph.ipp>
#include <neap/blocks/impl/option_gaps.ipp>
#include <neap/blocks/impl/remat_branch_and_bound.ipp>
#include <neap/blocks/impl/remat_neighbourhoods.ipp>
#include <neap/blocks/impl/remat_solver.ipp>
#include <neap/blocks/impl/rotor_chain.ipp>
#include <neap/blocks/impl/rotor_table.ipp>
#include <neap/blocks/impl/simplified_program.ipp>
#include <neap/blocks/impl/solver_seeds.ipp>
#include <neap/blocks/impl/use_gap.ipp>
#include <neap/report/impl/memory_notes.ipp>
#include <neap/report/impl/memory_svg.ipp>
#include <neap/report/impl/plan_writer.ipp>
#include <neap/report/impl/results_csv.ipp>
#include <neap/report/impl/svg.ipp>
