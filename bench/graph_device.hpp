// The devices whose models made the latencies of graph files.
#pragma once

#include <neap/import/graph_file.hpp>
#include <neap/simulate/roofline.hpp>

namespace bench {

/// MAGIS's, for its testing nets; an H100's for those exported from PyTorch.
inline neap::roofline device_of(neap::io::imported_graph const& g) {
  if (g.format != "magis") return neap::roofline::h100_like();
  neap::roofline r;
  r.set_rate(neap::dtype::f32, 19.5e12);
  r.bytes_per_second = 1.5e12;
  r.launch = r.link_latency = 5e-6;
  r.to_host_bytes_per_second = r.to_device_bytes_per_second = 16e9;
  for (auto name : {"placeholder", "reshape", "permute", "slice", "concat", "index_out"}) r.free_ops.push_back(name);
  return r;
}

}  // namespace bench
