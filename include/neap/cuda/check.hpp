// Failures of the CUDA runtime as neap::error, with the place of the call. Needs the CUDA toolkit's headers.
#pragma once

#include <neap/core/error.hpp>

#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

namespace neap { inline namespace v0 {

/// Throws neap::error unless the call succeeded: "train.cu:42: cuda: copy of the batch: out of memory".
inline void check_cuda(cudaError_t outcome, std::string_view what,
                       std::source_location at = std::source_location::current()) {
  if (outcome != cudaSuccess) throw_error(at, {"cuda: ", what, ": ", cudaGetErrorString(outcome)});
}

}}  // namespace neap::v0
