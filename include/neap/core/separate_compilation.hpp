// NEAP_SEPARATE_COMPILATION: defined for all files of a program, it leaves the functions of impl/*.ipp out of them; the
// program compiles those once, with neap/src.hpp in a file of its own. Without that name neap is header-only: each header
// includes its .ipp at its end.
//
// A header declares, and its impl/NAME.ipp defines the functions that are no templates, no members of templates, not
// constexpr and not so short that they are better inlined. NEAP_FUNC is the word before such a definition.
//
// NEAP_INSTANTIATE_ONCE(declaration) does the same for what a template makes for the standard operators.
#pragma once

#if defined(NEAP_SEPARATE_COMPILATION)
#define NEAP_FUNC
#define NEAP_INSTANTIATE_ONCE(...) extern template __VA_ARGS__
#else
#define NEAP_FUNC inline
#define NEAP_INSTANTIATE_ONCE(...) static_assert(true)
#endif
