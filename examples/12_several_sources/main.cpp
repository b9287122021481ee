// Lesson 12: a program of several source files. Each would compile the library's code and its kernels again; so all are
// compiled with NEAP_SEPARATE_COMPILATION, and one more file compiles them for all:
//
//   neap.cpp:                #include <neap/src.hpp>
//
// or eight, side by side and each in less memory:
//
//   neap_model.cpp:          #include <neap/src/model.hpp>
//   neap_search.cpp:         #include <neap/src/search.hpp>
//   neap_execution.cpp:      #include <neap/src/execution.hpp>
//   neap_verify.cpp:         #include <neap/src/verify.hpp>
//   neap_blocks.cpp:         #include <neap/src/blocks.hpp>
//   neap_operators.cpp:      #include <neap/src/operators.hpp>
//   neap_kernels.cpp:        #include <neap/src/kernels.hpp>
//   neap_image_kernels.cpp:  #include <neap/src/image_kernels.hpp>
//
// With CMake one line does all of it, and optimises those eight whatever the build type:
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
