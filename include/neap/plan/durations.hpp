// What the times of a plan come from, as plain data: with the graph they can be worked out again.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A device as a planner sees it, in numbers (simulate/roofline.hpp has the formula). Views and the ops named in
/// `free_ops` cost nothing.
struct device_figures {
  std::array<double, dtype_names.size()> flops_per_second{};  // by element type; 0: as f32
  double bytes_per_second = 1e11;                             // of the device's memory
  seconds_t launch = 0;                                       // of each op that is not free
  double half_flops = 0, half_bytes = 0;                      // work at which half of the rate is reached
  double to_host_bytes_per_second = 1e10, to_device_bytes_per_second = 1e10;
  seconds_t link_latency = 0;         // of each transfer
  std::vector<std::string> free_ops;  // by operator name
  friend bool operator==(device_figures const&, device_figures const&) = default;
};

/// An op takes what was measured of it; where nothing was, the latency that came with it, if such count; else what the
/// device's numbers say.
struct duration_source {
  std::optional<digest> table;  // of measured costs (cost_table::digest); nothing: none were measured
  bool given = true;            // latencies that came with the graph count
  device_figures device;
  friend bool operator==(duration_source const&, duration_source const&) = default;
};

}}  // namespace neap::v0
