// The GPUs of this machine. A program that is linked with neap::cuda starts on every machine: the driver is loaded by the
// runtime at the first call, and where there is none, or no GPU, these functions give one line that says so. Needs the
// CUDA toolkit's headers; any C++ compiler will do.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A GPU, as the driver describes it.
struct cuda_device {
  int number = 0;            // what cudaSetDevice takes
  std::string name;          // "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  bytes_t memory = 0;            // in all
  bytes_t shared_per_block = 0;  // shared memory that one thread block may have, on request
  int driver = 0;                // newest CUDA version that the driver supports: 1000 * major + 10 * minor

  friend bool operator==(cuda_device const&, cuda_device const&) = default;
};

namespace detail {

inline constexpr int least_cuda_major = 8;  // of the compute capability: what our kernels are compiled for

inline std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Why there is no device after cudaGetDeviceCount gave `outcome`, in one line. `driver` and `runtime` are CUDA versions,
/// 0 for no driver.
inline std::string no_cuda_device(cudaError_t outcome, int driver, int runtime) {
  std::string const start = "cuda: no GPU to be used: ";
  if (driver == 0) return start + "no NVIDIA driver is installed (libcuda.so.1)";
  if (outcome == cudaErrorInsufficientDriver)
    return start + "the driver supports CUDA " + cuda_version_text(driver) + ", this program needs " +
           cuda_version_text(runtime);
  if (outcome == cudaErrorNoDevice || outcome == cudaSuccess) return start + "the driver finds no device";
  return start + cudaGetErrorString(outcome);
}

}  // namespace detail

/// All GPUs of this machine, at least one; or why there is none.
inline result<std::vector<cuda_device>> cuda_devices() {
  int driver = 0, runtime = 0, count = 0;
  cudaDriverGetVersion(&driver);  // leaves 0 where there is no driver
  cudaRuntimeGetVersion(&runtime);
  cudaError_t const outcome = cudaGetDeviceCount(&count);
  if (outcome != cudaSuccess || count == 0) {
    cudaGetLastError();  // the failure stays with the runtime otherwise, and the next check would report it
    return failure{detail::no_cuda_device(outcome, driver, runtime)};
  }
  std::vector<cuda_device> all;
  for (int number = 0; number < count; ++number) {
    cudaDeviceProp facts{};
    if (cudaError_t const read = cudaGetDeviceProperties(&facts, number); read != cudaSuccess) {
      cudaGetLastError();
      return failure{"cuda: device " + std::to_string(number) + ": " + cudaGetErrorString(read)};
    }
    all.push_back({number, facts.name, facts.major, facts.minor, facts.multiProcessorCount,
                   static_cast<bytes_t>(facts.totalGlobalMem), static_cast<bytes_t>(facts.sharedMemPerBlockOptin),
                   driver});
  }
  return all;
}

/// The GPU of this number; or why it cannot be used: there is no GPU, no such number, or its compute capability is below
/// 8.0.
inline result<cuda_device> find_cuda_device(int number = 0) {
  auto const all = cuda_devices();
  if (!all) return failure{all.message()};
  int const count = static_cast<int>(all->size());
  if (number < 0 || number >= count)
    return failure{"cuda: no device " + std::to_string(number) + ": the driver finds " + std::to_string(count)};
  cuda_device const& found = (*all)[static_cast<std::size_t>(number)];
  if (found.major < detail::least_cuda_major)
    return failure{"cuda: device " + std::to_string(number) + " (" + found.name + ") has compute capability " +
                   std::to_string(found.major) + "." + std::to_string(found.minor) + ": at least " +
                   std::to_string(detail::least_cuda_major) + ".0 is needed"};
  return found;
}

}}  // namespace neap::v0
