// NEAP_ONCE: the word before a function that need not be compiled in every file of a program.
//
// neap is a header-only library, and most of its code is not templates: the planner, graphs and their editor,
// differentiation. Each file of a program would compile all of it again. Where NEAP_COMPILED_APART is defined, such a
// function is a declaration whose body the compiler forgets, and neap/compiled.hpp, in one file, makes the code. Without
// that name the word says `inline`.
//
// The word is for functions that are long and not templates; what is short or runs in inner loops of templates is better
// inlined. A header that has it is reached from neap/compiled.hpp (a house test checks it), else no file would define the
// code.
//
// NEAP_INSTANTIATE_ONCE(declaration) says the same of what a template makes for the standard operators: it is made in that
// one file.
//
// NEAP_READS_BODIES is 0 where the words only declare. A header of which one short function is wanted and much stands
// behind it then leaves the body out, with all that only the body needs (memory/exact_placing.hpp).
//
// The code is made in several files, each in less memory: neap/compiled_search.hpp reads what neap/compiled.hpp makes as
// any other file does, and then gives the words their other meaning; so does neap/compiled_execution.hpp.
#pragma once

#if defined(__clang__)
// Weak: of an inline constructor clang makes one of the two symbols, and which one depends on the optimisation.
#define NEAP_MAKE_ONCE __attribute__((used, weak)) inline
#else
#define NEAP_MAKE_ONCE __attribute__((used)) inline
#endif

#if defined(__clang__) && !defined(__CUDACC__)
// A body that is there to be inlined only, and may not be. Members cannot have the `extern` that clang misses.
#define NEAP_DECLARE_ONCE __attribute__((gnu_inline, noinline, optnone)) inline
#elif !defined(__CUDACC__)
// A body that is there to be inlined only, and, as it is said to be optimised otherwise than its callers, never is.
#define NEAP_DECLARE_ONCE __attribute__((gnu_inline, optimize("O0"))) inline
#endif
#if defined(NEAP_COMPILED_APART) && defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#endif

#if defined(NEAP_COMPILING)
#define NEAP_ONCE NEAP_MAKE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) template __VA_ARGS__
#define NEAP_READS_BODIES 1
#elif defined(NEAP_COMPILED_APART) && defined(NEAP_DECLARE_ONCE)
#define NEAP_ONCE NEAP_DECLARE_ONCE
#define NEAP_INSTANTIATE_ONCE(...) extern template __VA_ARGS__
#define NEAP_READS_BODIES 0
#else
#define NEAP_ONCE inline
#define NEAP_INSTANTIATE_ONCE(...) static_assert(true)
#define NEAP_READS_BODIES 1
#endif
