// Updates of several tensors in one launch: tests/cuda/update_many.cpp runs each.
#include <neap/cuda/kernels/update_many.cuh>
#include <neap/cuda/launch.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);

ROWS(update_many<device_sgd, float, 2, 1>)
ROWS(update_many<device_momentum, float, 3, 2>)
ROWS(update_many<device_lion, float, 3, 2>)
ROWS(update_many<device_adam, float, 4, 3>)

// Tensors with gaps have a launch each.
ROWS(map_kernel<device_sgd, float, 2, 1>)
ROWS(map_kernel<device_momentum, float, 3, 2>)
ROWS(map_kernel<device_lion, float, 3, 2>)
ROWS(map_kernel<device_adam, float, 4, 3>)
