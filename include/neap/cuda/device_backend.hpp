// Kernels for devices are overloads of  run(Backend&, Op const&, kernel_arguments const&)  for a device_backend, or device
// forms of the functions that operators call (map_on_device and others), in cuda/kernels/.
#pragma once

#include <neap/backend/device_backend.hpp>
