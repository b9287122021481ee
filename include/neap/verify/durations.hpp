// How long each op takes by what a plan says that its times come from (plan/durations.hpp), worked out again:
//
//   seconds = launch + max((flops + half_flops) / rate, (bytes + half_bytes) / bandwidth)      an op of the compute stream
//   seconds = link latency + bytes / link rate                                                 a store or a load
//
// An op without work takes no time. A part of an op that came with a latency takes of it what the device would take for the
// part beside the whole.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/plan/durations.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

/// Gives the seconds of an op that comes with a latency, or by the device's numbers; what a table measured is its holder's
/// to look up first. A rate of 0 takes no time.
class stated_durations {
 public:
  explicit stated_durations(duration_source from) : from_(std::move(from)) {}

  seconds_t operator()(op_graph const& g, op_id o) const {
    auto const* x = g.as<op::opaque>(o);
    auto const& d = from_.device;
    if (from_.given && x && x->seconds >= 0) {
      auto const whole = computing(g, o, x->whole_flops, x->whole_bytes);
      if (whole > 0) return x->seconds * computing(g, o, x->flops, x->read + x->written) / whole;
      return x->is_part() ? flow::seconds(g, o) : x->seconds;
    }
    if (flow::is_view(g, o)) return 0;
    std::string_view const name = x ? g.target(o) : g.facets(o).name;
    if (std::find(d.free_ops.begin(), d.free_ops.end(), name) != d.free_ops.end()) return 0;
    auto const w = flow::cost(g, o);
    double const bytes = w.read + w.written;
    bool const out = g.as<op::store>(o) != nullptr, in = g.as<op::load>(o) != nullptr;
    if (out || in) return d.link_latency + over(bytes, out ? d.to_host_bytes_per_second : d.to_device_bytes_per_second);
    return computing(g, o, w.flops, bytes);
  }

 private:
  seconds_t computing(op_graph const& g, op_id o, double flops, double bytes) const {
    if (flops <= 0 && bytes <= 0) return 0;
    auto const& d = from_.device;
    seconds_t const calculating = flops > 0 ? over(flops + d.half_flops, rate(g, o)) : 0;
    seconds_t const moving = bytes > 0 ? over(bytes + d.half_bytes, d.bytes_per_second) : 0;
    return d.launch + std::max(calculating, moving);
  }
  static seconds_t over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }
  /// Of the first floating argument's type, else of the first output's.
  double rate(op_graph const& g, op_id o) const {
    auto type = g.outputs(o).empty() ? dtype::f32 : g.type(g.output(o)).element;
    for (auto v : g.inputs(o))
      if (is_floating(g.type(v).element)) {
        type = g.type(v).element;
        break;
      }
    auto const& rates = from_.device.flops_per_second;
    auto const r = rates[static_cast<std::size_t>(type)];
    return r > 0 ? r : rates[static_cast<std::size_t>(dtype::f32)];
  }
  duration_source from_;
};

}}  // namespace neap::v0
