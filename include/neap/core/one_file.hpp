// NEAP_ONE_FILE: said of a program that is one source file, `g++ ... -DNEAP_ONE_FILE program.cpp`. Of the standard
// operators only those are compiled that the program can come to use, with their kernels; otherwise a file that computes
// compiles all kernels, because another file of the program may use any operator. In a program of several files the
// linker refuses the name: it is defined twice.
#pragma once

#if defined(NEAP_ONE_FILE)
#if defined(NEAP_SEPARATE_COMPILATION)
#error "neap: NEAP_ONE_FILE is for programs of one source file, NEAP_SEPARATE_COMPILATION for those of several"
#endif
namespace neap { inline namespace v0 { namespace detail {
extern char const neap_one_file_is_said_in_several_files;
[[gnu::used]] char const neap_one_file_is_said_in_several_files = 1;
}}}  // namespace neap::v0::detail
#endif
