// The verifier of plans, for one source file of a program
// whose files are compiled with NEAP_SEPARATE_COMPILATION; neap/src.hpp says more.
#pragma once

#if !defined(NEAP_SEPARATE_COMPILATION)
#error "neap/src/verify.hpp: all files of the program, this one too, are compiled with NEAP_SEPARATE_COMPILATION"
#endif

#include <neap/verify/impl/equivalence.ipp>
#include <neap/verify/impl/execution.ipp>
#include <neap/verify/impl/partition.ipp>
#include <neap/verify/impl/pins.ipp>
#include <neap/verify/impl/plan_verifier.ipp>
#include <neap/verify/impl/value_numbers.ipp>
#include <neap/verify/impl/whole_program.ipp>
