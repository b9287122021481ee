// The standard operators' own functions (shapes, gradients, attributes...), for one source file of a program whose files
// are compiled with NEAP_SEPARATE_COMPILATION; neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/operators.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif

#include <neap/ir/standard_operators.hpp>

namespace neap { inline namespace v0 { namespace detail {

template <class... Op>
consteval standard_facet_rows rows_of_facets(type_list<Op...>) {
  return {{make_facets<Op>()...}};
}
constinit standard_facet_rows const standard_facets = rows_of_facets(standard_operators::list{});

}}}  // namespace neap::v0::detail
