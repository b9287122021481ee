// The library's code, for one source file of a program whose files are all compiled with NEAP_SEPARATE_COMPILATION:
//
//   #include <neap/src.hpp>
//
// Its parts may stand in files of their own instead, which are compiled side by side, each in less memory:
//
//   #include <neap/src/model.hpp>          // graphs, models, training steps, schedules, memory plans
//   #include <neap/src/search.hpp>         // mutators and the search
//   #include <neap/src/execution.hpp>      // what runs plans
//   #include <neap/src/verify.hpp>         // the verifier of plans
//   #include <neap/src/blocks.hpp>         // blocks, their solvers, and reports
//   #include <neap/src/operators.hpp>      // the standard operators' own functions
//   #include <neap/src/kernels.hpp>        // their kernels; it alone reads Thrust's headers
//   #include <neap/src/image_kernels.hpp>  // the kernels of convolutions, pools and norms of channels
//
// A program that reads graph files (neap/import, linked to neap::import) has one file more, with neap/src/import.hpp.
//
// With CMake, neap_compile_apart(my_program) does all of it. A program that lacks a part does not link: the linker misses
// functions of neap::v0, neap::v0::detail::standard_facets, neap::v0::detail::standard_kernels(), or
// neap::v0::detail::run_kernel.
#pragma once

#include <neap/src/model.hpp>

#include <neap/src/search.hpp>

#include <neap/src/execution.hpp>

#include <neap/src/verify.hpp>

#include <neap/src/blocks.hpp>

#include <neap/src/operators.hpp>

#include <neap/src/kernels.hpp>

#include <neap/src/image_kernels.hpp>
