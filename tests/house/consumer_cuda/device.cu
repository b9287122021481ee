#include <neap/cuda.hpp>

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }

// 2 * x on the GPU, or what keeps it from that.
neap::result<float> twice_on_gpu(float x) {
  if (auto const gpu = neap::find_cuda_device(); !gpu) return neap::failure{gpu.message()};
  float* there = nullptr;
  neap::check_cuda(cudaMalloc(&there, sizeof x), "memory");
  neap::check_cuda(cudaMemcpy(there, &x, sizeof x, cudaMemcpyDefault), "copy");
  twice<<<1, 1>>>(there);
  neap::check_cuda(cudaMemcpy(&x, there, sizeof x, cudaMemcpyDefault), "copy back");
  neap::check_cuda(cudaFree(there), "memory");
  return x;
}
