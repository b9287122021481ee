// All kernels of the standard set that are functors on the block abstraction, in f32 and bf16, and the few of other types:
// compiled for each way to lay out rows. tests/cuda/CMakeLists.txt makes PTX of this file (kernels.ptx), and compares what
// ptxas says of it with ptxas.csv. tests/cuda/interpreted.cpp runs each: a new kernel needs a case in
// tests/support/kernel_cases.hpp.
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/arg_max.hpp>
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/kernels/softmax.hpp>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);

// Kernels of a type of element.
#define OF_TYPE(T)                             \
  ROWS(softmax_rows<T, false>)                 \
  ROWS(softmax_rows<T, true>)                  \
  ROWS(softmax_backward_rows<T, false>)        \
  ROWS(softmax_backward_rows<T, true>)         \
  ROWS(cross_entropy_rows<T>)                  \
  ROWS(cross_entropy_backward_rows<T>)         \
  ROWS(squared_error_chunks<T>)                \
  ROWS(norm_rows<T>)                           \
  ROWS(norm_backward_rows<T>)                  \
  ROWS(group_norm_groups<T>)                   \
  ROWS(group_norm_backward_groups<T>)          \
  ROWS(batch_norm_channels<T>)                 \
  ROWS(batch_norm_inference_channels<T>)       \
  ROWS(batch_norm_backward_channels<T, false>) \
  ROWS(batch_norm_backward_channels<T, true>)  \
  ROWS(add_groups<T>)                          \
  ROWS(add_picked_rows<T>)                     \
  ROWS(scatter_add_kernel<T>)                  \
  ROWS(square_chunks<T>)                       \
  ROWS(square_means<T>)                        \
  ROWS(adafactor_step<T>)
OF_TYPE(float)
OF_TYPE(bf16)

// Those of what is computed in, and those that move elements of a size.
ROWS(sum_losses<float>)
ROWS(column_means<float>)
ROWS(mean_of_rows<float>)
ROWS(map_kernel<squared_error_slope, float, 3, 1>)
ROWS(adafactor_length)
ROWS(add_partials)
ROWS(arg_max_lines<float>)
ROWS(arg_max_lines<std::int64_t>)
ROWS(count_positions)
ROWS(pick_rows<std::uint16_t>)
ROWS(pick_rows<std::uint32_t>)
ROWS(gather_kernel<std::uint16_t>)
ROWS(gather_kernel<std::uint32_t>)
ROWS(gather_kernel<std::uint64_t>)
