// The library's code, for one source file of a program whose files are all compiled with NEAP_COMPILED_APART:
//
//   #include <neap/compiled.hpp>          // in one file, and nothing else
//   #include <neap/compiled_kernels.hpp>  // in another one: the kernels
//
// The program's other files include neap's headers as ever, and compile in a fraction of the time. With CMake,
// neap_compile_apart(my_program) does all of it. A program that lacks one of the two files does not link: the linker
// misses neap::v0::detail::standard_facets, or neap::v0::detail::standard_kernels().
#pragma once

#if !defined(NEAP_COMPILED_APART)
#error "neap/compiled.hpp: all files of the program, this one too, are compiled with NEAP_COMPILED_APART"
#endif
#if defined(NEAP_ONCE)
#error "neap/compiled.hpp stands before other headers of neap"
#endif
#define NEAP_COMPILING

#include <neap/neap.hpp>

namespace neap::inline v0::detail {

template <class... Op>
consteval standard_facet_rows rows_of_facets(type_list<Op...>) {
  return {{make_facets<Op>()...}};
}
constinit standard_facet_rows const standard_facets = rows_of_facets(standard_operators::list{});

}  // namespace neap::inline v0::detail
