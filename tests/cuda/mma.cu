// The kernels of mma.hpp: tests/cuda/CMakeLists.txt makes PTX of this file.
#include "mma.hpp"

#include <neap/cuda/launch.cuh>

using namespace neap;
using namespace neap::testing;

namespace {
template <class... K>
void launch_each() {
  (launch_blocks_on(nullptr, 0, K{}), ...);
}
}  // namespace

void launch_mma() {
  launch_each<mma_product<bf16, 1>, mma_product<bf16, 2>, mma_product<bf16, 4>, mma_product<f16, 1>,
              mma_product<f16, 4>, mma_product<float, 2>, mma_product<float, 4>, mma_pack<bf16>, mma_pack<f16>>();
}
