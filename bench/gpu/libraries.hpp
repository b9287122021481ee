// Libraries of the device's vendor that gpu_check computes with, if NEAP_CHECK_LIBRARIES names the file that has them
// (libgpu_libraries.so): gpu_check itself starts where they are not.
#pragma once

#include <neap/cuda/backend.hpp>

#include <functional>
#include <memory>
#include <string>

namespace neap::bench {

/// Makes a backend use them, if they were asked for. Ends the program with exit status 2, and the loader's message, if they
/// are not there.
void use_libraries(cuda_backend& backend);
/// What step times are of: "neap", "neap with cuBLASLt and cuDNN".
char const* ways_name();
/// Whether they were asked for: then products take epilogues.
bool has_libraries();
/// cuDNN's properties of the device, with which it plans where there is none: text to a file, a CSV row to stdout. Exit
/// status 0, or 2 if there is no cuDNN. Throws neap::error if the library refuses its own text.
int save_library_properties(char const* file);

/// cuDNN's properties of a device.
struct library_properties {
  std::string library;  // and the device
  std::string text;
};

struct check_libraries {
  std::shared_ptr<cuda_product_library> products;
  std::shared_ptr<cuda_convolution_library> convolutions;
  std::shared_ptr<cuda_attention_library> attention;
  std::function<library_properties()> properties;  // none: there is no cuDNN
};

}  // namespace neap::bench

/// What the file with the libraries has.
extern "C" void neap_check_libraries(neap::cuda_device const& device, neap::bench::check_libraries& out);
