// The library's code, for source files of a program whose files are all compiled with NEAP_COMPILED_APART:
//
//   #include <neap/compiled.hpp>                // in one file: graphs, models, training steps, plans, where no templates
//   #include <neap/compiled_search.hpp>         // in a second: mutators and the search, with what they make of templates
//   #include <neap/compiled_execution.hpp>      // in a third: what runs plans
//   #include <neap/compiled_operators.hpp>      // in a fourth: the standard operators' own functions
//   #include <neap/compiled_kernels.hpp>        // in a fifth: their kernels
//   #include <neap/compiled_image_kernels.hpp>  // in a sixth: the kernels of convolutions, pools and norms of channels
//
// The program's other files include neap's headers as ever, and compile in a fraction of the time. (One file may include
// all six, in this order; six are compiled side by side, and in less memory.) With CMake, neap_compile_apart(my_program)
// does all of it. A program that lacks one of them does not link: the linker misses functions of neap::v0,
// neap::v0::detail::standard_facets, neap::v0::detail::standard_kernels(), or neap::v0::detail::run_kernel.
#pragma once

#if !defined(NEAP_COMPILED_APART)
#error "neap/compiled.hpp: all files of the program, this one too, are compiled with NEAP_COMPILED_APART"
#endif
#if defined(NEAP_ONCE)
#error "neap/compiled.hpp stands before other headers of neap"
#endif
#define NEAP_COMPILING

#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/fuse_elementwise.hpp>
#include <neap/train/fuse_epilogues.hpp>
#include <neap/train/training_step.hpp>
