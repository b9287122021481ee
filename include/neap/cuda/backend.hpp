// The backend of a GPU: launches kernels in order on a stream of its own. Made in .cpp files as well; launching needs nvcc.
#pragma once

#include <neap/cuda/attention_library.hpp>
#include <neap/cuda/check.hpp>
#include <neap/cuda/convolutions.hpp>
#include <neap/cuda/device.hpp>
#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/memory.hpp>
#include <neap/cuda/products.hpp>
#include <neap/cuda/scratch.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Runs kernels on one GPU. For one thread at a time: all that use it share its streams, scratch memory and libraries.
class cuda_backend {
 public:
  static constexpr std::string_view name = "cuda";
  static constexpr bool addresses_host_memory = false;
  static constexpr bool runs_on_device = true;

  /// Throws neap::error, in one line, where there is no such device.
  explicit cuda_backend(int device = 0, std::source_location at = std::source_location::current()) {
    auto found = find_cuda_device(device);
    if (!found) throw_error(at, {found.message()});
    device_ = *found;
    check_cuda(cudaSetDevice(device), "choice of a device", at);
    for (auto* s : {&stream_, &to_host_stream_, &to_device_stream_}) {
      cudaStream_t made = nullptr;
      check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "creation of a stream", at);
      s->reset(made);
    }
  }

  cuda_device const& device() const { return device_; }
  /// What times depend on: "NVIDIA H100 80GB HBM3, compute capability 9.0, driver for CUDA 13.0".
  std::string description() const {
    return device_.name + ", compute capability " + std::to_string(device_.major) + "." +
           std::to_string(device_.minor) + ", driver for CUDA " + detail::cuda_version_text(device_.driver);
  }
  /// Where kernels are launched.
  cudaStream_t stream() const { return stream_.get(); }
  /// Where tensors are copied to the host's memory and back, beside the kernels.
  cudaStream_t to_host_stream() const { return to_host_stream_.get(); }
  cudaStream_t to_device_stream() const { return to_device_stream_.get(); }

  /// Scratch memory of kernels, aligned to 256 bytes: launches of the stream share it, each finds there what another one
  /// has left. Throws neap::error if fewer bytes are reserved: an operator states its need by device_scratch
  /// (cuda/scratch.hpp).
  void* scratch(bytes_t bytes, std::source_location at = std::source_location::current()) {
    if (bytes > scratch_.bytes())
      throw_error(at, {"cuda: a kernel takes ", bytes, " bytes of scratch memory, and ", scratch_.bytes(),
                       " are reserved: its operator's device_scratch gives too few"});
    return scratch_.data();
  }
  bytes_t scratch_bytes() const { return scratch_.bytes(); }
  /// Makes the scratch memory at least as large. It may be at another address from then on: waits for the stream. Throws
  /// neap::error where the device has not so much memory; the scratch memory is then as it was.
  void reserve_scratch(bytes_t bytes, std::source_location at = std::source_location::current()) {
    if (bytes <= scratch_.bytes()) return;
    check_cuda(cudaStreamSynchronize(stream()), "wait for a stream", at);
    scratch_ = cuda_device_memory(bytes, "scratch of kernels", at);
  }

  /// From now on this library makes products of matrices, those that it can; none: our own kernels do. Reserves its scratch
  /// memory.
  void use_products(std::shared_ptr<cuda_product_library> library,
                    std::source_location at = std::source_location::current()) {
    if (library) reserve_scratch(library->scratch_bytes(), at);
    products_ = std::move(library);
  }
  cuda_product_library* products() const { return products_.get(); }

  /// From now on this library computes convolutions, those that it can; none: our own kernels do. Executables reserve the
  /// scratch memory that it takes: use it before they are made.
  void use_convolutions(std::shared_ptr<cuda_convolution_library> library) { convolutions_ = std::move(library); }
  cuda_convolution_library* convolutions() const { return convolutions_.get(); }
  /// Likewise of attention.
  void use_attention(std::shared_ptr<cuda_attention_library> library) { attention_ = std::move(library); }
  cuda_attention_library* attention() const { return attention_.get(); }

  /// Operators of one's own that graphs on this backend may have. Each has its kernel beside it,
  /// void run(cuda_backend&, Op const&, kernel_arguments const&).
  template <class... Op>
  void add_operators() {
    static_assert((has_kernel<cuda_backend, Op> && ...),
                  "neap: the backend has no kernel for one of these operators: write  void run(neap::cuda_backend&, "
                  "Op const&, neap::kernel_arguments const&)  in the operator's namespace");
    (own_.push_back({&facets_of<Op>, detail::kernel_or_null<cuda_backend, Op>(), detail::scratch_or_null<Op>()}), ...);
  }
  /// The kernel of such an operator, and what it takes of the scratch memory; nullptr: none.
  kernel_function<cuda_backend> own_kernel(operator_facets const& f) const { return own(f).kernel; }
  detail::scratch_function own_scratch(operator_facets const& f) const { return own(f).scratch; }

  /// Runs kernel(block) for every block.id in [0, rows), after what was launched before. Returns at once. `row_work`:
  /// about how many indices a row has (0: unknown, taken as many). In .cu files, with neap/cuda/launch.cuh.
  template <class K>
  void launch(std::int64_t rows, K const& kernel, std::int64_t row_work = 0,
              std::source_location at = std::source_location::current());

  /// Runs kernel(shared memory) on `blocks` thread blocks, after what was launched before. Returns at once. For kernels
  /// with a layout of their own (cuda_block_kernel in neap/cuda/launch.cuh). In .cu files.
  template <class K>
  void launch_blocks(std::int64_t blocks, K const& kernel, std::source_location at = std::source_location::current());

 private:
  struct stream_deleter {
    void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
  };
  struct own_operator {
    operator_facets const* facets;
    kernel_function<cuda_backend> kernel;
    detail::scratch_function scratch;
  };
  own_operator own(operator_facets const& f) const {
    for (auto const& o : own_)
      if (o.facets == &f) return o;
    return {};
  }
  cuda_device device_;
  std::vector<own_operator> own_;
  using owned_stream = std::unique_ptr<CUstream_st, stream_deleter>;
  owned_stream stream_, to_host_stream_, to_device_stream_;
  cuda_device_memory scratch_;
  std::shared_ptr<cuda_product_library> products_;
  std::shared_ptr<cuda_convolution_library> convolutions_;
  std::shared_ptr<cuda_attention_library> attention_;
};

}}  // namespace neap::v0
