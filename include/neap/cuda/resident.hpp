// A tensor of a model whose data live on a GPU while it is trained there. Needs the CUDA toolkit's headers.
#pragma once

#include <neap/cuda/check.hpp>
#include <neap/cuda/memory.hpp>
#include <neap/model/storage.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

class cuda_resident final : public storage_elsewhere {
 public:
  /// `block`: what the address lies in.
  cuda_resident(int device, std::byte* address, bytes_t bytes, std::shared_ptr<cuda_device_memory const> block)
      : device_(device),
        address_(address),
        bytes_(bytes),
        block_(std::move(block)) {}

  int device() const { return device_; }
  std::byte* address() const { return address_; }

  /// The newest data of the storage are here from now on, for what the stream does next; false: they are already. Throws
  /// neap::error if a copy fails; they are then where they were.
  bool move_here(tensor_storage& s, std::shared_ptr<cuda_resident> const& self, cudaStream_t stream) {
    if (s.is_elsewhere() && s.elsewhere().get() == this) return false;
    check_cuda(cudaMemcpyAsync(address_, s.data(), static_cast<std::size_t>(bytes_), cudaMemcpyHostToDevice, stream),
               "copy of a weight to the device");
    s.move_elsewhere(self);
    changed_ = false;
    return true;
  }
  /// A step has written them.
  void written() { changed_ = true; }

  void fetch(std::byte* to) override {
    if (!changed_) return;
    check_cuda(cudaSetDevice(device_), "choice of a device");
    check_cuda(cudaMemcpy(to, address_, static_cast<std::size_t>(bytes_), cudaMemcpyDeviceToHost),
               "copy of a weight to the host");
    changed_ = false;
  }

 private:
  int device_;
  std::byte* address_;
  bytes_t bytes_;
  std::shared_ptr<cuda_device_memory const> block_;
  bool changed_ = false;  // since the host had the same
};

}}}  // namespace neap::v0::detail
