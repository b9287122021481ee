// The standard operators' own functions (shapes, gradients, attributes...), for one source file of a program whose files
// are compiled with NEAP_COMPILED_APART; neap/compiled.hpp says more.
#pragma once

#if !defined(NEAP_COMPILED_APART)
#error "neap/compiled_operators.hpp: all files of the program, this one too, are compiled with NEAP_COMPILED_APART"
#endif

#include <neap/ir/standard_operators.hpp>

namespace neap::inline v0::detail {

template <class... Op>
consteval standard_facet_rows rows_of_facets(type_list<Op...>) {
  return {{make_facets<Op>()...}};
}
constinit standard_facet_rows const standard_facets = rows_of_facets(standard_operators::list{});

}  // namespace neap::inline v0::detail
