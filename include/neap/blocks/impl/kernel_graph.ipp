// The bodies of <neap/blocks/kernel_graph.hpp>.
#pragma once

#include <neap/blocks/kernel_graph.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort_once.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC kernel_graph make_kernels(op_graph const& g, basic_program const& b, simplified_program const& p,
                                    backward_nodes const& back) {
  kernel_graph k;
  auto const n = static_cast<std::uint32_t>(p.nodes.size());
  std::vector<std::vector<op_id>> backward(n);
  table<op_id, std::uint32_t> computation(g.op_count(), no_id);
  for (auto o : b.order) {
    if (b.part[o] == step_part::forward) continue;
    auto const of = back.node[o];
    if (of != no_id && b.part[o] == step_part::backward && p.nodes[of].trained) backward[of].push_back(o);
    else k.rest.push_back(o);
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    kernel_computation c{kernel_kind::forward, i, p.nodes[i].ops, false, {}, {}, {}};
    for (auto o : c.ops)
      for (auto v : g.outputs(o)) c.is_loss |= g.is_kept(v) && g.role(v) == role::loss;
    k.computations.push_back(std::move(c));
  }
  for (std::uint32_t i = n; i-- > 0;)
    if (!backward[i].empty())
      k.computations.push_back({kernel_kind::backward, i, std::move(backward[i]), false, {}, {}, {}});
  for (std::uint32_t c = 0; c < k.computations.size(); ++c)
    for (auto o : k.computations[c].ops) computation[o] = c;

  // Each memory's maker and who reads it.
  enum : std::uint8_t { forward_elsewhere = 1, kept = 2, backward_elsewhere = 4 };
  table<storage_id, std::uint32_t> maker(g.storage_count(), no_id), first_reader(g.storage_count(), no_id);
  table<storage_id, std::uint8_t> use(g.storage_count(), 0);
  for (auto s : g.storages())
    if (auto const from = g.producer(g.record(s).first); from != nothing<op_id>) maker[s] = computation[from];
  for (auto v : g.kept()) use[g.storage(v)] |= kept;
  for (std::uint32_t c = 0; c < k.computations.size(); ++c)
    for (auto o : k.computations[c].ops)
      for (auto v : g.inputs(o)) {
        auto const s = g.storage(v);
        if (maker[s] == no_id || maker[s] == c) continue;
        use[s] |= k.computations[c].kind == kernel_kind::forward ? forward_elsewhere : backward_elsewhere;
        if (k.computations[c].kind == kernel_kind::backward && first_reader[s] == no_id) first_reader[s] = c;
      }
  // Data nodes, by kind and node.
  std::vector<std::uint32_t> at(3 * n, no_id);
  table<storage_id, std::uint32_t> data_of(g.storage_count(), no_id);
  auto const put = [&](kernel_data_kind kind, std::uint32_t node, storage_id s) {
    auto& d = at[static_cast<std::size_t>(kind) * n + node];
    if (d == no_id) d = static_cast<std::uint32_t>(k.data.size()), k.data.push_back({kind, node, {}, 0});
    k.data[d].storages.push_back(s), k.data[d].bytes += g.bytes(s);
    data_of[s] = d;
  };
  for (auto s : g.storages()) {
    if (maker[s] == no_id || use[s] == 0) continue;
    auto const& c = k.computations[maker[s]];
    if (c.kind == kernel_kind::forward)
      put(use[s] & (forward_elsewhere | kept) ? kernel_data_kind::data : kernel_data_kind::phantoms, c.node, s);
    else if (first_reader[s] != no_id) put(kernel_data_kind::gradient, k.computations[first_reader[s]].node, s);
  }
  for (std::uint32_t c = 0; c < k.computations.size(); ++c) {
    auto& x = k.computations[c];
    for (auto o : x.ops) {
      for (auto v : g.inputs(o))
        if (auto const s = g.storage(v); maker[s] != no_id && maker[s] != c && data_of[s] != no_id)
          x.reads.push_back(data_of[s]);
      for (auto v : g.outputs(o))
        if (auto const d = data_of[g.storage(v)]; d != no_id && maker[g.storage(v)] == c) x.makes.push_back(d);
    }
    detail::sort_once(x.reads), detail::sort_once(x.makes);
    if (x.kind == kernel_kind::forward) continue;
    auto const& f = k.computations[x.node];  // what the forward node reads and makes, the backward one might
    for (auto const* list : {&f.reads, &f.makes})
      for (auto d : *list)
        if (!std::binary_search(x.reads.begin(), x.reads.end(), d)) x.fakes.push_back(d);
    detail::sort_once(x.fakes);
  }
  return k;
}

NEAP_FUNC std::string to_text(op_graph const& g, kernel_graph const& k) {
  std::string s;
  auto const named = [&](std::uint32_t d) {
    return std::string(name_of(k.data[d].kind)) + " " + std::to_string(k.data[d].node);
  };
  for (auto const& c : k.computations) {
    s += std::string(name_of(c.kind)) + " " + std::to_string(c.node) + (c.is_loss ? " (loss)" : "") + ":";
    for (auto d : c.reads) s += " reads " + named(d) + ";";
    for (auto d : c.fakes) s += " knows " + named(d) + ";";
    for (auto d : c.makes) s += " makes " + named(d) + " (" + std::to_string(k.data[d].bytes) + " B);";
    s += "\n";
    for (auto o : c.ops) s += "    " + detail::assignment_text(g, o) + "\n";
  }
  if (!k.rest.empty()) s += "rest:\n";
  for (auto o : k.rest) s += "    " + detail::assignment_text(g, o) + "\n";
  return s;
}

}}  // namespace neap::v0
