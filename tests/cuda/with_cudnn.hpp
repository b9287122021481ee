// A backend on the simulated device whose convolutions and attention are cuDNN's.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/cudnn.hpp>

#include <memory>

namespace neap::testing {

struct with_cudnn {
  cuda_backend backend;
  std::shared_ptr<cudnn> library;
  explicit with_cudnn(cudnn_options const& o = {}) : library(std::make_shared<cudnn>(backend.device(), o)) {
    backend.use_convolutions(library);
    backend.use_attention(library);
    backend.reserve_scratch(1 << 16);
  }
};

}  // namespace neap::testing
