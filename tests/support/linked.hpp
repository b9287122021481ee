// A device for programs that come with their latencies: they keep them, and values move by a link.
#pragma once

#include <neap/simulate/roofline.hpp>

namespace neap::testing {

/// Latencies that came with a graph, what has none is free, and a link of so many bytes a second each way.
inline given_or<roofline> linked(double bytes_per_second) {
  roofline device;
  device.bytes_per_second = 0;
  device.to_host_bytes_per_second = device.to_device_bytes_per_second = bytes_per_second;
  return {device};
}

}  // namespace neap::testing
