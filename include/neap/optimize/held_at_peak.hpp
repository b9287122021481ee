// What holds a peak: values that wait there for late readers and that no recomputation may free, with the reason.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/candidate.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// A storage that is idle at the peak and stays, since the op that makes it may not run again.
struct held_storage {
  op_id op;
  std::string name;  // "blocks.3.allreduce"; without a name: the operator and its number
  std::string why;   // "run_once", "keep", "it has effects", ...
  bytes_t bytes = 0;
};

namespace detail {

/// Why an op that may not run again may not.
std::string why_not_again(op_graph const& g, op_id o);

/// Those of a candidate, the largest first. O(ops + edges).
template <class G>
std::vector<held_storage> held_at_peak(candidate<G> const& c) {
  auto const& g = c.graph;
  auto const peak = c.result.peak_position;
  enum : std::uint8_t { before = 1, at = 2, after = 4 };
  table<storage_id, std::uint8_t> touched(g.storage_count(), 0);
  for (std::uint32_t p = 0; p < c.order.size(); ++p) {
    std::uint8_t const when = p < peak ? before : p == peak ? at : after;
    for (auto v : g.inputs(c.order[p])) touched[g.storage(v)] |= when;
    for (auto v : g.outputs(c.order[p])) touched[g.storage(v)] |= when;
  }
  for (auto v : g.kept()) touched[g.storage(v)] |= at;  // an output: it stays whatever may run again
  std::vector<held_storage> held;
  for (auto s : g.storages()) {
    auto const first = g.record(s).first;
    auto const o = g.producer(first);
    if (touched[s] != (before | after) || g.is_resident(s) || g.bytes(s) == 0 || o == nothing<op_id>) continue;
    if (c.result.takes_over[s] != nothing<storage_id> && c.result.live[s].first > peak) continue;
    if (graph_traits<G>::stream(g, o) != op_stream::compute) continue;  // it was loaded
    op_id not_again = graph_traits<G>::is_recomputable(g, o) ? nothing<op_id> : o;
    if (g.record(s).updates != 0)
      for (auto v : g.values())
        if (g.storage(v) == s && g.record(v).alias == alias_kind::update) not_again = g.producer(v);
    if (not_again == nothing<op_id>) continue;
    auto const* x = g.template as<op::opaque>(not_again);
    auto const given = g.name(not_again);
    std::string const name = !given.empty() ? std::string(given)
                                            : std::string(x ? g.text(x->target) : g.facets(not_again).name) + " #" +
                                                  std::to_string(index(g.origin(not_again)));
    held.push_back({not_again, name, why_not_again(g, not_again), g.bytes(s)});
  }
  sort_list(held, [](held_storage const& a, held_storage const& b) { return a.bytes > b.bytes; });
  return held;
}

/// "blocks.3.allreduce may not run again: run_once (64 bytes)".
std::string text_of(held_storage const& h);

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/held_at_peak.ipp>
#endif
