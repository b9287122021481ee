// Lesson 12: a program of several source files. Each would compile the library's code and its kernels again; so all are
// compiled with NEAP_COMPILED_APART, and six more files compile them for all:
//
//   neap.cpp:                #include <neap/compiled.hpp>
//   neap_search.cpp:         #include <neap/compiled_search.hpp>
//   neap_execution.cpp:      #include <neap/compiled_execution.hpp>
//   neap_operators.cpp:      #include <neap/compiled_operators.hpp>
//   neap_kernels.cpp:        #include <neap/compiled_kernels.hpp>
//   neap_image_kernels.cpp:  #include <neap/compiled_image_kernels.hpp>
//
// With CMake one line does all of it, and optimises those six whatever the build type:
//
//   target_link_libraries(my_program PRIVATE neap::neap)
//   neap_compile_apart(my_program)
#include "model.hpp"

#include <cstdio>

int main() {
  network model;
  neap::initialise(model, 1);
  double const first = trained(model, 1), last = trained(model, 200);
  std::printf("loss %.4f -> %.4f\n", first, last);
  return last < 0.1 * first ? 0 : 1;
}
