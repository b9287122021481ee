// Elementwise kernels: the map of every functor of the standard set in f32, a few in f64 and i64, fused programs, and
// copies, fills and triangles of every size of element. tests/cuda/elementwise.cpp runs each.
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>

#include "../support/elementwise_functors.hpp"

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);
#define MAP(functor, inputs, outputs, low, high) ROWS(map_kernel<functor, float, inputs, outputs>)
NEAP_MAPPED_FUNCTORS(MAP)

#define OF_TYPE(T)                     \
  ROWS(map_kernel<op::add, T, 2, 1>)   \
  ROWS(map_kernel<choice_of, T, 3, 1>) \
  ROWS(map_kernel<identity_of, T, 1, 1>)
OF_TYPE(double)
OF_TYPE(std::int64_t)
ROWS(map_kernel<adam_step, double, 4, 3>)

ROWS(fused_kernel<float>)
ROWS(fused_kernel<double>)

#define OF_SIZE(U)          \
  ROWS(copy_kernel<U>)      \
  ROWS(transpose_kernel<U>) \
  ROWS(triangle_kernel<U>)
OF_SIZE(std::uint8_t)
OF_SIZE(std::uint16_t)
OF_SIZE(std::uint32_t)
OF_SIZE(std::uint64_t)
