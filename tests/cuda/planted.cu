// The kernels of planted.hpp, each with each of its faults, and the copy of the kernel of reductions of programs that
// planted_reduction.cmake makes: tests/cuda/CMakeLists.txt makes PTX of this file.
#include "planted.hpp"

#include "../support/faulty_program.hpp"

#include <neap/cuda/launch.cuh>

#include "planted_reduction.cuh"

#include <source_location>

using namespace neap;
using namespace neap::testing;

namespace {
template <template <auto> class Kernel, class Enum, int... I>
void launch_faults(std::integer_sequence<int, I...>) {
  (launch_on(nullptr, 0, Kernel<static_cast<Enum>(I)>{}), ...);
}
template <template <auto> class Kernel, class Enum>
void launch_all() {
  launch_faults<Kernel, Enum>(std::make_integer_sequence<int, static_cast<int>(Enum::end)>{});
}
}  // namespace

void launch_planted() {
  launch_all<planted_softmax, softmax_fault>();
  launch_all<planted_norm, norm_fault>();
  launch_all<planted_cross_entropy, cross_entropy_fault>();
  launch_all<planted_groups, groups_fault>();
  launch_all<planted_positions, positions_fault>();
  launch_all<planted_scatter, scatter_fault>();
  launch_all<planted_parts, parts_fault>();
  launch_all<softmax_on_planted_block, block_fault>();
  launch_all<log_softmax_on_planted_block, block_fault>();
  launch_all<norm_on_planted_block, block_fault>();
  launch_all<softmax_on_planted_warp, warp_fault>();
}

#define INSTANCE(...)                                                                                      \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);
INSTANCE(neap::detail::planted::fused_reduce_kernel<float, true, faulty_program>)
INSTANCE(neap::detail::planted::fused_reduce_kernel<float, false, faulty_program>)
INSTANCE(neap::detail::add_splits<float>)
