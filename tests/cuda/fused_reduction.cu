// Kernels of reductions of programs. tests/cuda/fused_reduction.cpp runs each.
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);
#define REDUCED_IN(C)                 \
  ROWS(fused_reduce_kernel<C, true>)  \
  ROWS(fused_reduce_kernel<C, false>) \
  ROWS(add_splits<C>)
REDUCED_IN(float)
REDUCED_IN(double)
