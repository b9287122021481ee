#include <neap/backend/kernels/softmax.hpp>
#include <neap/cuda.hpp>

#include <cstdio>

neap::result<float> twice_on_gpu(float x);

// With a GPU a kernel runs there; without one the reason is printed, and the host computes all the same.
int main() {
  auto const there = twice_on_gpu(21);
  if (there) std::printf("on the GPU: %g\n", *there);
  else std::puts(there.message().c_str());
  if (there ? *there != 42 : there.message().empty()) return 1;

  neap::host_backend backend(1);
  float x[]{1, 1, 1, 1};
  neap::tensor_ref const row{x, neap::dtype::f32, {4}, {1}};
  neap::softmax(backend, row, row);
  return x[3] == 0.25f ? 0 : 2;
}
