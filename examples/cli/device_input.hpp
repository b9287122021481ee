// --device: a preset's name, or a JSON file with the constants of a cost model.
#pragma once

#include "common.hpp"

#include <neap/import/file.hpp>
#include <neap/import/json.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>

#include <unistd.h>

namespace cli {

/// The cost model of a plan: latencies that come with the graph first, unless a device was named.
struct device_cost {
  neap::roofline model = neap::roofline::h100_like();
  bool given_first = true;

  template <class G>
  double operator()(G const& g, neap::op_id o) const {
    if (given_first)
      if (auto const t = neap::flow::seconds(g, o); t >= 0) return t;
    return model(g, o);
  }
};

inline neap::roofline read_device(std::string const& path) {
  auto const text = value_or_refuse(neap::io::read_file(path));
  auto const document = value_or_refuse(neap::io::parse_json(text, path));
  neap::io::json_place const j(document, path + ": ");
  neap::roofline r;
  auto const rates = j["flops_per_s"];
  rates.require(rates.is_object() && !rates.raw().empty(), "must be an object of rates by element type");
  for (auto const& [type, rate] : rates.raw().items()) {
    auto const place = rates[type.c_str()];
    bool known = false;
    for (std::size_t t = 0; t < neap::dtype_names.size(); ++t)
      if (type == neap::dtype_names[t]) r.set_rate(static_cast<neap::dtype>(t), place.number(1e-3)), known = true;
    if (!known) place.fail("unknown element type");
  }
  r.bytes_per_second = j["bandwidth_bytes_per_s"].number(1e-3);
  r.launch = j.number_or("launch_us", 0, 0) * 1e-6;
  r.half_flops = j.number_or("half_saturation_flops", 0, 0);
  if (j.has("link_bytes_per_s")) {
    r.to_host_bytes_per_second = j["link_bytes_per_s"]["to_host"].number(1e-3);
    r.to_device_bytes_per_second = j["link_bytes_per_s"]["to_device"].number(1e-3);
  }
  r.link_latency = j.number_or("link_latency_us", 0, 0) * 1e-6;
  if (j.has("free_ops")) {
    auto const list = j["free_ops"];
    for (std::size_t i = 0; i < list.size(); ++i) r.free_ops.push_back(list[i].text());
  }
  return r;
}

inline device_cost device_of(std::string const& name) {
  if (name.empty() || name == "h100-like") return {neap::roofline::h100_like(), name.empty()};
  if (name == "host") return {neap::roofline::host(2), false};
  if (::access(name.c_str(), F_OK) != 0)
    throw refused{"--device: \"" + name + "\" is neither h100-like nor host nor a file"};
  try {
    return {read_device(name), false};
  } catch (neap::error const& e) { throw refused{e.what()}; }
}

}  // namespace cli
