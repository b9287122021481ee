// The library's code, for one source file of a program whose files are all compiled with NEAP_COMPILED_APART:
//
//   #include <neap/compiled.hpp>            // in one file: what is no template, and what planning makes of templates
//   #include <neap/compiled_operators.hpp>  // in another one: the standard operators' own functions
//   #include <neap/compiled_kernels.hpp>    // in a third: their kernels
//
// The program's other files include neap's headers as ever, and compile in a fraction of the time. (One file may include
// all three, in this order; three are compiled side by side, and in less memory.) With CMake,
// neap_compile_apart(my_program) does all of it. A program that lacks one of them does not link: the linker misses
// functions of neap::v0, neap::v0::detail::standard_facets, or neap::v0::detail::standard_kernels().
#pragma once

#if !defined(NEAP_COMPILED_APART)
#error "neap/compiled.hpp: all files of the program, this one too, are compiled with NEAP_COMPILED_APART"
#endif
#if defined(NEAP_ONCE)
#error "neap/compiled.hpp stands before other headers of neap"
#endif
#define NEAP_COMPILING

#include <neap/neap.hpp>
