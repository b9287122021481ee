// Kernels of updates with products of matrices in them, in the types that small shapes take:
// tests/cuda/product_updates.cpp runs each.
#include <neap/cuda/kernels/gemm.cuh>
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define BLOCKS(...)                                                                                 \
  template void neap::launch_blocks_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, \
                                                    std::source_location);
#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);

BLOCKS(gemm_block<float, false, false>)
BLOCKS(gemm_block<float, false, true>)
BLOCKS(gemm_block<float, true, false>)
BLOCKS(gemm_block<bf16, false, false>)
BLOCKS(gemm_block<bf16, false, true>)
BLOCKS(gemm_block<bf16, true, false>)

// muon
ROWS(map_kernel<device_muon_momentum, float, 2, 1>)
ROWS(map_kernel<device_muon_ahead, float, 2, 1>)
ROWS(map_kernel<device_muon_step, float, 2, 1>)
ROWS(map_kernel<device_over_length, float, 1, 1>)
ROWS(map_kernel<muon_polynomial, float, 2, 1>)
ROWS(map_kernel<plus_number, float, 1, 1>)
ROWS(square_chunks<float>)
ROWS(add_partials)
ROWS(copy_kernel<std::uint32_t>)
ROWS(copy_kernel<std::uint64_t>)

// updates by products
ROWS(map_kernel<device_sgd, float, 2, 1>)
ROWS(map_kernel<device_momentum, float, 3, 2>)
ROWS(map_kernel<device_lion, float, 3, 2>)
ROWS(map_kernel<device_adam, float, 4, 3>)
