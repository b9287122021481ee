// The interpreter of PTX as a GPU's backend: kernels with an overload for a device_backend run on it.
#pragma once

#include "interpreted_backend.hpp"

#include <neap/core/units.hpp>
#include <neap/cuda/device_backend.hpp>

#include <algorithm>

namespace neap::testing {

class interpreted_device : public interpreted_backend {
 public:
  static constexpr bool runs_on_device = true;
  using interpreted_backend::interpreted_backend;

  bytes_t scratch_bytes = 0;  // of the largest request

  void* scratch(bytes_t bytes) {
    scratch_bytes = std::max(scratch_bytes, bytes);
    return interpreted_backend::scratch(bytes);
  }
};
static_assert(device_backend<interpreted_device>);

}  // namespace neap::testing
