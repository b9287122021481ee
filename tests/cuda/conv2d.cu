// Convolution as nvcc compiles it, for tests that read its PTX: tests/cuda/conv2d.cpp runs each kernel.
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/kernels/gemm.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define BLOCKS(...)                                                                                 \
  template void neap::launch_blocks_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, \
                                                    std::source_location);
#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);
#define OF_TYPE(T)            \
  ROWS(correlate_directly<T>) \
  ROWS(convolve_weight_gradient<T>)

OF_TYPE(float)
OF_TYPE(bf16)
// Filters of one tap are products.
BLOCKS(gemm_block<float, false, false>)
BLOCKS(gemm_block<float, true, false>)
BLOCKS(gemm_block<bf16, false, false>)
BLOCKS(gemm_block<bf16, true, false>)
