// Measured costs on a GPU, by events: measured (execute/measured.hpp) takes a cuda_backend as it takes a host_backend. Its
// file is the device's and the driver's.
//
//   measured cost(device, "costs");
//   cost.whole(training_step(copy, ...), batch);       // every op of a step where it stands
//   roofline figures = figures_of(device);             // the maker's, with the link as measured
//   measure_link(device).apply(figures);
//
// Not in the umbrella header: include it where it is used, before execute/measured.hpp is.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/cuda/backend.hpp>
#include <neap/cuda/events.hpp>
#include <neap/cuda/kernels.hpp>
#include <neap/cuda/memory.hpp>
#include <neap/execute/measure.hpp>
#include <neap/simulate/roofline.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// The maker's figures of the device (roofline's presets); of one that is not known, an H100's.
inline roofline figures_of(cuda_backend const& backend) {
  std::string const& name = backend.device().name;
  auto const is = [&](char const* part) { return name.find(part) != std::string::npos; };
  if (is("A100")) return roofline::a100();
  if (is("H200")) return roofline::h200();
  if (is("RTX 3090")) return roofline::rtx3090();
  if (is("RTX 4090")) return roofline::rtx4090();
  return roofline::h100();
}

/// Bytes a second between the host's pinned memory and the device.
struct link_rates {
  double to_host = 0, to_device = 0;            // one way alone
  double to_host_both = 0, to_device_both = 0;  // while the other way is busy as well

  void apply(roofline& figures) const {
    figures.to_host_bytes_per_second = to_host_both, figures.to_device_bytes_per_second = to_device_both;
  }
};

namespace detail {
inline seconds_t seconds_between(cuda_event const& from, cuda_event const& to) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "time between events");
  return 1e-3 * static_cast<double>(milliseconds);
}
inline seconds_t median(std::vector<seconds_t>& all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
}  // namespace detail

/// Copies of `bytes` bytes each way, alone and both at once; the median of `rounds`, after one that is not counted. Throws
/// neap::error where there is no memory for two such blocks on each side.
inline link_rates measure_link(cuda_backend& backend, bytes_t bytes = bytes_t{64} << 20, int rounds = 7) {
  check_cuda(cudaSetDevice(backend.device().number), "choice of a device");
  cuda_device_memory const device(2 * bytes, "a measurement");
  cuda_pinned_memory const host(2 * bytes, "a measurement");
  struct way {
    cudaStream_t stream;
    void *to, *from;
    cudaMemcpyKind kind;
    detail::cuda_event begin = detail::make_cuda_event(true), end = detail::make_cuda_event(true);
  };
  way out{backend.to_host_stream(), host.data(), device.data(), cudaMemcpyDeviceToHost};
  way in{backend.to_device_stream(), device.data() + bytes, host.data() + bytes, cudaMemcpyHostToDevice};
  auto const n = static_cast<std::size_t>(bytes);
  std::fill_n(host.data(), 2 * n, std::byte{0});
  check_cuda(cudaMemcpy(device.data(), host.data(), 2 * n, cudaMemcpyHostToDevice), "a measurement");
  auto const issue = [&](way& w) {
    check_cuda(cudaEventRecord(w.begin.get(), w.stream), "a measurement");
    check_cuda(cudaMemcpyAsync(w.to, w.from, n, w.kind, w.stream), "a measurement");
    check_cuda(cudaEventRecord(w.end.get(), w.stream), "a measurement");
  };
  auto const rate = [&](way& w, way* beside) {
    std::vector<seconds_t> all;
    for (int round = 0; round <= rounds; ++round) {
      issue(w);
      if (beside) issue(*beside);
      check_cuda(cudaStreamSynchronize(w.stream), "a measurement");
      if (beside) check_cuda(cudaStreamSynchronize(beside->stream), "a measurement");
      if (round > 0) all.push_back(detail::seconds_between(w.begin, w.end));
    }
    return static_cast<double>(bytes) / std::max(detail::median(all), 1e-12);
  };
  return {rate(out, nullptr), rate(in, nullptr), rate(out, &in), rate(in, &out)};
}

/// The time of one op on the device, in seconds, between two events: the median of rounds. As measure_op of the host
/// (execute/measure.hpp).
inline std::optional<seconds_t> measure_op(op_graph const& g, op_id o, cuda_backend& backend,
                                           measure_options const& options = {}) {
  auto const kernel = detail::kernel_on(backend, g.facets(o));
  if (!kernel || flow::is_view(g, o)) return std::nullopt;
  check_cuda(cudaSetDevice(backend.device().number), "choice of a device");
  plain_vector<tensor_layout> layouts;
  plain_vector<tensor_ref> refs;
  std::vector<cuda_device_memory> memory;
  auto const in = g.inputs(o);
  auto const add = [&](value_id v, tensor_ref const* shared) {
    auto const& l = g.layout(v);
    layouts.push_back(l);
    if (shared) return refs.push_back(tensor_ref(*shared));
    auto const bytes = std::max<bytes_t>(std::max(g.bytes(g.storage(v)), l.type.bytes()), 64);
    byte_block filled(static_cast<std::size_t>(bytes), 64);
    detail::fill_measured(filled.data(), bytes, l.type);
    memory.emplace_back(bytes, "a measurement");
    check_cuda(cudaMemcpyAsync(memory.back().data(), filled.data(), static_cast<std::size_t>(bytes),
                               cudaMemcpyHostToDevice, backend.stream()),
               "a measurement");
    check_cuda(cudaStreamSynchronize(backend.stream()), "a measurement");
    refs.push_back(tensor_ref::place(memory.back().data(), l));
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::size_t k = 0;  // one value read twice
    while (in[k] != in[i]) ++k;
    tensor_ref const same = k < i ? refs[k] : tensor_ref{};
    add(in[i], k < i ? &same : nullptr);
  }
  for (auto v : g.outputs(o)) {
    auto const& r = g.record(v);
    bool const updates = r.alias == alias_kind::update && r.of >= 0;
    tensor_ref const same = updates ? refs[static_cast<std::size_t>(r.of)] : tensor_ref{};
    add(v, updates ? &same : nullptr);
  }
  auto const all = span_of(layouts);
  work_context const context{all.first(in.size()), all.subspan(in.size())};
  auto const& f = g.facets(o);
  cuda_device_memory const workspace(f.workspace ? f.workspace(g.attributes(o), context) : 0, "a measurement");
  backend.reserve_scratch(detail::scratch_bytes(backend, g, o, context));
  auto const begin = detail::make_cuda_event(true), end = detail::make_cuda_event(true);
  auto const r = span_of(refs);
  std::vector<seconds_t> times;
  seconds_t whole = 0;
  for (int round = 0; round <= options.rounds && whole <= options.seconds_an_op; ++round) {
    check_cuda(cudaEventRecord(begin.get(), backend.stream()), "a measurement");
    kernel(backend, g.attributes(o), {r.first(in.size()), r.subspan(in.size()), workspace.data()});
    check_cuda(cudaEventRecord(end.get(), backend.stream()), "a measurement");
    check_cuda(cudaStreamSynchronize(backend.stream()), "a measurement");
    auto const t = detail::seconds_between(begin, end);
    whole += t;
    if (round > 0 || whole > options.seconds_an_op) times.push_back(t);
  }
  return detail::median(times);
}

}}  // namespace neap::v0
