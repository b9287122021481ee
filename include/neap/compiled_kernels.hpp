// The kernels of the standard operators, for one source file of a program whose files are compiled with
// NEAP_COMPILED_APART (neap/compiled.hpp says more). It alone reads Thrust's headers.
#pragma once

#include <neap/backend/kernels/sort_positions.hpp>
#include <neap/model/kernels.hpp>

template struct neap::detail::compile_standard_kernels<neap::standard_operators>;
