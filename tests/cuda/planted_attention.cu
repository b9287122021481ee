// Copies of attention's kernels with a fault each (planted_attention.cmake), beside those without: tests/cuda/CMakeLists.txt
// makes PTX of this file.
#include <neap/cuda/kernels/attention.cuh>
#include <neap/cuda/launch.cuh>

#include "planted_attention.cuh"

#include <source_location>

#define INSTANCE(...)                                                                               \
  template void neap::launch_blocks_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, \
                                                    std::source_location);

NEAP_PLANTED_INSTANCES
INSTANCE(neap::detail::attention_forward<neap::bf16, 32>)
INSTANCE(neap::detail::attention_backward<neap::bf16, 32, true>)
INSTANCE(neap::detail::attention_backward<neap::bf16, 32, false>)
template void neap::launch_on<neap::detail::attention_deltas<neap::bf16>>(
    cudaStream_t, std::int64_t, neap::detail::attention_deltas<neap::bf16> const&, std::int64_t, std::source_location);
