// --device: a preset's name, or a JSON file with the constants of a cost model. --costs: a table of measured costs.
#pragma once

#include "common.hpp"

#include <neap/import/element_types.hpp>
#include <neap/import/file.hpp>
#include <neap/import/file_kind.hpp>
#include <neap/plan/durations.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/cost_table.hpp>
#include <neap/simulate/roofline.hpp>

#include <algorithm>
#include <initializer_list>

#include <unistd.h>

namespace cli {

/// The cost model of a plan: what was measured, then latencies that come with the graph, unless a device was named.
struct device_cost {
  neap::roofline model = neap::roofline::h100_like();
  bool given_first = true;
  std::optional<neap::cost_table> measured{};

  template <class G>
  double operator()(G const& g, neap::op_id o) const {
    if (measured && !neap::flow::is_view(g, o))
      if (auto const* t = measured->find(neap::cost_key(g, o))) return *t;
    if (given_first)
      if (auto const t = model.given(g, o); t >= 0) return t;
    return model(g, o);
  }
  /// What a plan file says of it.
  neap::duration_source source() const {
    return {measured ? std::optional(measured->digest()) : std::nullopt, given_first, model};
  }
};

/// Unknown keys are mistakes of writing.
inline void refuse_other_keys(neap::io::json_place const& j, std::initializer_list<std::string_view> known) {
  for (auto const& [key, value] : j.raw().items())
    if (std::find(known.begin(), known.end(), key) == known.end()) j[key.c_str()].fail("unknown key");
}

inline neap::roofline read_device(std::string const& path) {
  auto const text = value_or_refuse(neap::io::read_file(path));
  auto const document = value_or_refuse(neap::io::parse_document(text, path, neap::io::wanted_file::device));
  if (auto const kind = neap::io::document_kind(document);
      !document.empty() && !document.contains("flops_per_s") && kind != "a JSON object of no known kind")
    throw refused{path + ": " + kind + "; " + std::string(neap::io::wanted_file::device)};
  neap::io::json_place const j(document, path);
  refuse_other_keys(j, {"name", "flops_per_s", "bandwidth_bytes_per_s", "launch_us", "half_saturation_flops",
                        "link_bytes_per_s", "link_latency_us", "free_ops"});
  neap::roofline r;
  auto const rates = j["flops_per_s"];
  rates.require(rates.is_object() && !rates.raw().empty(), "must be an object of rates by element type");
  for (auto const& [type, rate] : rates.raw().items()) {
    auto const place = rates[type.c_str()];
    auto const known = neap::io::element_type(type);
    if (!known) place.fail(known.message());
    r.set_rate(*known, place.number(1e-3));
  }
  if (!rates.has("f32")) rates.fail("lacks \"f32\", the rate of types that have none");
  r.bytes_per_second = j["bandwidth_bytes_per_s"].number(1e-3);
  if (j.has("launch_us")) r.launch = j["launch_us"].microseconds();
  r.half_flops = j.work("half_saturation_flops");
  if (j.has("link_bytes_per_s")) {
    refuse_other_keys(j["link_bytes_per_s"], {"to_host", "to_device"});
    r.to_host_bytes_per_second = j["link_bytes_per_s"]["to_host"].number(1e-3);
    r.to_device_bytes_per_second = j["link_bytes_per_s"]["to_device"].number(1e-3);
  }
  if (j.has("link_latency_us")) r.link_latency = j["link_latency_us"].microseconds();
  if (j.has("free_ops")) {
    auto const list = j["free_ops"];
    for (std::size_t i = 0; i < list.size(); ++i) r.free_ops.push_back(list[i].text());
  }
  return r;
}

/// The file that --device names, if it names one.
inline std::string file_of_device(std::string const& name) {
  return name == "h100-like" || name == "host" ? std::string() : name;
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
