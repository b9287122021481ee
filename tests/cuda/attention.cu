// Attention's kernels as a device's `run` launches them: tests/cuda/CMakeLists.txt makes PTX of this file.
#include <neap/cuda/kernels/attention.cuh>
#include <neap/cuda/launch.cuh>

using namespace neap;

void launch_attention(cuda_backend& b, kernel_arguments const& a) {
  run(b, op::attention{}, a);
  run(b, op::attention_grad{}, a);
}
