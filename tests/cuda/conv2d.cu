// Convolution as nvcc compiles it, for tests that read its PTX: tests/cuda/conv2d.cpp runs each kernel.
#include <neap/cuda/kernels/conv2d.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define BLOCKS(...)                                                                                 \
  template void neap::launch_blocks_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, \
                                                    std::source_location);
#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);
#define OF_TYPE(T)                   \
  ROWS(pack_filter<T>)               \
  ROWS(correlate_directly<T>)        \
  ROWS(depthwise_weight_gradient<T>) \
  ROWS(add_gemm_parts<T>)

OF_TYPE(float)
OF_TYPE(bf16)
BLOCKS(correlate_by_tensor_cores<bf16, 128>)
BLOCKS(correlate_by_tensor_cores<bf16, 64>)
BLOCKS(weight_gradient_by_tensor_cores<bf16, 128>)
BLOCKS(weight_gradient_by_tensor_cores<bf16, 64>)
BLOCKS(correlate_by_fma<float, 128>)
BLOCKS(correlate_by_fma<float, 64>)
BLOCKS(weight_gradient_by_fma<float, 64>)
// Filters of one tap are products.
BLOCKS(gemm_by_tensor_cores<bf16, false, false, 64>)
BLOCKS(gemm_by_tensor_cores<bf16, true, false, 64>)
BLOCKS(gemm_by_fma<float, false, false, 64>)
BLOCKS(gemm_by_fma<float, true, false, 64>)
