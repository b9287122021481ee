// The bodies of <neap/simulate/roofline.hpp>.
#pragma once

#include <neap/simulate/roofline.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC seconds_t roofline::of_work(double flops, double bytes, dtype type) const {
  if (flops <= 0 && bytes <= 0) return 0;
  seconds_t t = 0;
  if (auto const r = rate(type); r > 0 && flops > 0) t = (flops + half_flops) / r;
  if (bytes_per_second > 0 && bytes > 0) t = std::max(t, (bytes + half_bytes) / bytes_per_second);
  return launch + t;
}

NEAP_FUNC roofline roofline::host(int threads) {
  if (threads < 1) throw_error({"roofline::host: takes at least one thread, got ", threads});
  auto const n = static_cast<double>(threads);
  roofline r;
  r.set_rate(dtype::f32, 100e9 * n), r.set_rate(dtype::f64, 50e9 * n);
  r.bytes_per_second = std::min(10e9 * n, 80e9);
  r.launch = 1e-6;
  r.half_flops = 1e5 * n, r.half_bytes = 1e4 * n;
  r.to_host_bytes_per_second = r.to_device_bytes_per_second = 1e9;
  r.link_latency = 20e-6;
  return r;
}

NEAP_FUNC roofline roofline::h100_like() {
  roofline r;
  r.set_rate(dtype::f32, 50e12), r.set_rate(dtype::f64, 50e12);
  r.set_rate(dtype::bf16, 400e12), r.set_rate(dtype::f16, 400e12);
  r.bytes_per_second = 3e12;
  r.launch = 3e-6;
  r.to_host_bytes_per_second = r.to_device_bytes_per_second = 50e9;
  r.link_latency = 5e-6;
  return r;
}

NEAP_FUNC roofline roofline::a100() { return gpu(19.5e12, 9.7e12, 312e12, 2039e9, 31.5e9); }
NEAP_FUNC roofline roofline::h100() { return gpu(67e12, 34e12, 989e12, 3350e9, 63e9); }
NEAP_FUNC roofline roofline::h200() { return gpu(67e12, 34e12, 989e12, 4800e9, 63e9); }
NEAP_FUNC roofline roofline::rtx3090() { return gpu(35.6e12, 0.556e12, 71e12, 936e9, 31.5e9); }
NEAP_FUNC roofline roofline::rtx4090() { return gpu(82.6e12, 1.29e12, 165.2e12, 1008e9, 31.5e9); }

NEAP_FUNC roofline roofline::gpu(double f32, double f64, double half, double bandwidth, double link) {
  roofline r;
  r.set_rate(dtype::f32, f32), r.set_rate(dtype::f64, f64);
  r.set_rate(dtype::bf16, half), r.set_rate(dtype::f16, half);
  r.bytes_per_second = bandwidth;
  r.launch = 1.5e-6;
  r.half_bytes = 1e-6 * bandwidth, r.half_flops = 2e-6 * f32;
  r.to_host_bytes_per_second = r.to_device_bytes_per_second = link;
  r.link_latency = 5e-6;
  return r;
}

}}  // namespace neap::v0
