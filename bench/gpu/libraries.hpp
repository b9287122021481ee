// Libraries of the device's vendor that gpu_check computes with: none in gpu_check, those that were found in gpu_libraries.
#pragma once

#include <neap/cuda/backend.hpp>

namespace neap::bench {

/// Makes a backend use them.
void use_libraries(cuda_backend& backend);
/// What step times are of: "neap", "neap with cuBLASLt and cuDNN".
char const* ways_name();
/// Whether the backend has them: then products take epilogues.
bool has_libraries();

}  // namespace neap::bench
