// Products of matrices as nvcc compiles them, for tests that read their PTX: tests/cuda/gemm.cpp runs each.
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
#define ALL_TRANSPOSES(T)             \
  BLOCKS(gemm_block<T, false, false>) \
  BLOCKS(gemm_block<T, false, true>)  \
  BLOCKS(gemm_block<T, true, false>)  \
  BLOCKS(gemm_block<T, true, true>)

ALL_TRANSPOSES(bf16)
ALL_TRANSPOSES(f16)
ALL_TRANSPOSES(float)
ALL_TRANSPOSES(double)
ROWS(add_gemm_parts<bf16>)
ROWS(add_gemm_parts<f16>)
ROWS(add_gemm_parts<float>)
ROWS(add_gemm_parts<double>)
