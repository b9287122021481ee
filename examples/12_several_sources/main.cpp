// Lesson 12: a program of several source files. Each would compile the kernels again; so all are compiled with
// NEAP_EXTERN_KERNELS, and one more file compiles the kernels for all:
//
//   #include <neap/model/kernels.hpp>
//   NEAP_COMPILE_KERNELS
//
// With CMake one line does both, and optimises that file whatever the build type:
//
//   target_link_libraries(my_program PRIVATE neap::neap)
//   neap_compile_kernels(my_program)
#include "model.hpp"

#include <cstdio>

int main() {
  network model;
  neap::initialise(model, 1);
  double const first = trained(model, 1), last = trained(model, 200);
  std::printf("loss %.4f -> %.4f\n", first, last);
  return last < 0.1 * first ? 0 : 1;
}
