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
#define ALL_TRANSPOSES(kernel, T, side) \
  BLOCKS(kernel<T, false, false, side>) \
  BLOCKS(kernel<T, false, true, side>)  \
  BLOCKS(kernel<T, true, false, side>)  \
  BLOCKS(kernel<T, true, true, side>)

ALL_TRANSPOSES(gemm_by_tensor_cores, bf16, 128)
ALL_TRANSPOSES(gemm_by_tensor_cores, bf16, 64)
ALL_TRANSPOSES(gemm_by_tensor_cores, f16, 128)
ALL_TRANSPOSES(gemm_by_tensor_cores, f16, 64)
ALL_TRANSPOSES(gemm_by_fma, float, 128)
ALL_TRANSPOSES(gemm_by_fma, float, 64)
ALL_TRANSPOSES(gemm_by_fma, double, 64)
ALL_TRANSPOSES(gemm_by_tf32, float, 128)
ALL_TRANSPOSES(gemm_by_tf32, float, 64)
ROWS(add_gemm_parts<bf16>)
ROWS(add_gemm_parts<f16>)
ROWS(add_gemm_parts<float>)
ROWS(add_gemm_parts<double>)
