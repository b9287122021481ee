// The roofline model (Williams, Waterman, Patterson, CACM 2009) with two terms that planning needs: a launch cost, so
// that many small ops are not free, and saturation, because a device reaches half of its rate only at some size. Without
// them every cut of an op into parts would look free.
//
//   seconds = launch + max((flops + half_flops) / rate, (bytes + half_bytes) / bandwidth)      an op of the compute stream
//   seconds = link latency + bytes / link rate                                                 a store or a load
//
// An op without work takes no time.
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/plan/durations.hpp>
#include <neap/simulate/cost_model.hpp>

#include <concepts>
#include <string_view>

namespace neap { inline namespace v0 {

namespace detail {
/// What people call an op: the operator's name, or what a file calls an opaque one; empty for external graphs.
template <class G>
std::string_view operator_name(G const& g, op_id o) {
  if constexpr (std::derived_from<G, op_graph>) {
    auto const* x = g.template as<op::opaque>(o);
    return x ? g.text(x->target) : g.facets(o).name;
  } else {
    return {};
  }
}
/// The element type that decides an op's rate: its first floating input's, else its first output's, else f32.
template <class G>
dtype rate_type(G const& g, op_id o) {
  if constexpr (std::derived_from<G, op_graph>) {
    for (auto v : g.inputs(o))
      if (is_floating(g.type(v).element)) return g.type(v).element;
    return g.outputs(o).empty() ? dtype::f32 : g.type(g.output(o)).element;
  } else {
    return dtype::f32;
  }
}
}  // namespace detail

/// The model of a device in numbers (plan/durations.hpp).
struct roofline : device_figures {
  double rate(dtype t) const {
    auto const r = flops_per_second[static_cast<std::size_t>(t)];
    return r > 0 ? r : flops_per_second[static_cast<std::size_t>(dtype::f32)];
  }
  void set_rate(dtype t, double r) { flops_per_second[static_cast<std::size_t>(t)] = r; }

  template <class G>
  seconds_t operator()(G const& g, op_id o) const;
  /// An op of the compute stream with so much to do; what has nothing to do is not launched.
  seconds_t of_work(double flops, double bytes, dtype type) const;
  /// The latency that came with an op, negative if none did. A part of an op takes of that op's latency what this device
  /// would take for the part beside the whole.
  template <class G>
  seconds_t given(G const& g, op_id o) const;

  /// Some cores of a host: OpenBLAS at 100 GFLOP/s a core in f32, a spill file at 1 GB/s. Throws neap::error where
  /// `threads` is less than 1.
  static roofline host(int threads);
  /// The yardstick of the exported PyTorch graphs, like an H100: 50 TFLOP/s in f32, 400 in 16 bits, 3 TB/s, 3 us a
  /// launch, no saturation; PCIe 5 beside it.
  static roofline h100_like();

  // Devices by their makers' figures: products without sparsity, f32 not rounded to tf32; the link is what PCI Express
  // carries one way (16 lanes: version 4 31.5 GB/s, version 5 63.0 GB/s). No maker states the cost of a launch or the work
  // at which half of a rate is reached: those are round numbers of ours, for steps captured as a graph. What is measured
  // on a device is better (execute/measured.hpp).

  /// NVIDIA A100 80GB SXM: f32 19.5, f64 9.7, 16 bits 312 TFLOP/s, 2039 GB/s, PCIe 4 (data sheet "NVIDIA A100 Tensor Core
  /// GPU", 2021).
  static roofline a100();
  /// NVIDIA H100 SXM: f32 67, f64 34, 16 bits 989 TFLOP/s, 3350 GB/s, PCIe 5 (data sheet "NVIDIA H100 Tensor Core GPU",
  /// 2023, which states 1979 with sparsity).
  static roofline h100();
  /// NVIDIA H200 SXM: an H100 with 4800 GB/s (data sheet "NVIDIA H200 Tensor Core GPU", 2024).
  static roofline h200();
  /// NVIDIA GeForce RTX 3090: f32 35.6, f64 a 64th of it, 16 bits with sums in f32 71 TFLOP/s, 936 GB/s, PCIe 4 (white paper
  /// "NVIDIA Ampere GA102 GPU Architecture", 2020).
  static roofline rtx3090();
  /// NVIDIA GeForce RTX 4090: f32 82.6, f64 a 64th of it, 16 bits with sums in f32 165.2 TFLOP/s, 1008 GB/s, PCIe 4 (white
  /// paper "NVIDIA Ada GPU Architecture", 2022).
  static roofline rtx4090();

 private:
  static roofline gpu(double f32, double f64, double half, double bandwidth, double link);
};

template <class G>
seconds_t roofline::operator()(G const& g, op_id o) const {
  if (flow::is_view(g, o)) return 0;
  if (!free_ops.empty())
    if (auto const name = detail::operator_name(g, o); !name.empty())
      for (auto const& f : free_ops)
        if (f == name) return 0;
  auto const w = flow::cost(g, o);
  double const bytes = w.read + w.written;
  if (auto const s = flow::stream(g, o); s != op_stream::compute) {
    auto const link = s == op_stream::to_host ? to_host_bytes_per_second : to_device_bytes_per_second;
    return link_latency + (link > 0 ? bytes / link : 0);
  }
  return of_work(w.flops, bytes, detail::rate_type(g, o));
}
template <class G>
seconds_t roofline::given(G const& g, op_id o) const {
  if constexpr (std::derived_from<G, op_graph>)
    if (auto const* x = g.template as<op::opaque>(o); x && x->seconds >= 0 && x->is_part()) {
      auto const type = detail::rate_type(g, o);
      auto const whole = of_work(x->whole_flops, x->whole_bytes, type);
      if (whole > 0) return x->seconds * of_work(x->flops, x->read + x->written, type) / whole;
    }
  return flow::seconds(g, o);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/simulate/impl/roofline.ipp>
#endif
