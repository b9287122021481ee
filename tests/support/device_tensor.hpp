// A tensor in the memory of the simulated device, and what it was filled with.
#pragma once

#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/cuda/check.hpp>
#include <neap/cuda/memory.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace neap::testing {

/// Dense; small multiples of 1/8, exact in all types. It begins `shift` elements behind an address that is aligned.
template <class T>
class device_tensor {
 public:
  std::vector<T> host;
  tensor_ref ref;  // of the device

  device_tensor(shape const& dims, unsigned seed, std::int64_t shift = 0)
      : host(static_cast<std::size_t>(elements(dims))),
        memory_(static_cast<bytes_t>((host.size() + static_cast<std::size_t>(shift)) * sizeof(T)) + 16, "a tensor") {
    std::mt19937 random(seed);
    for (auto& x : host) x = T(static_cast<float>(static_cast<int>(random() % 17) - 8) / 8);
    ref = {memory_.data() + shift * static_cast<std::int64_t>(sizeof(T)), dtype_of<T>, dims, dense_strides(dims)};
    check_cuda(cudaMemcpy(ref.data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
    check_cuda(cudaDeviceSynchronize(), "copy");
  }
  std::vector<T> read(cudaStream_t stream) const {
    check_cuda(cudaStreamSynchronize(stream), "wait");
    std::vector<T> out(host.size());
    check_cuda(cudaMemcpy(out.data(), ref.data, out.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return out;
  }

 private:
  cuda_device_memory memory_;
};

}  // namespace neap::testing
