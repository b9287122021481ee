// rematerialize: a value that waits in memory for late readers is freed after its early ones and computed again for the
// late ones, with whatever of its inputs is no longer in memory, back to values that are. Views are followed: the unit is
// the storage. The mutations come from the candidate's peak, the most bytes for the least time first.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/late_readers.hpp>
#include <neap/mutate/ranked_stream.hpp>

#include <string>

namespace neap::inline v0 {

/// Compute a storage's values again for its readers from position `resume` on.
struct recompute {
  storage_id storage = nothing<storage_id>;
  std::uint32_t resume = 0;      // the first late position
  std::uint32_t most_ops = 64;   // gives up beyond that many copied ops
  float keep_ratio = 1.0f / 16;  // inputs this much smaller are kept for longer instead of computed again

  friend bool operator==(recompute const&, recompute const&) = default;

  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c) const;
  /// What apply() would do; false where it does nothing. `facts` are the candidate's.
  template <class G>
  bool outline(candidate<G> const& c, replay_facts const& facts, edit_outline& out) const;
  template <class G>
  std::string describe(candidate<G> const& c) const;
};

template <class G>
std::optional<edited<G>> recompute::apply(candidate<G> const& c) const {
  replay_facts const facts(c.graph, c.order);
  detail::late_readers late(c.graph, facts, c.result, most_ops, keep_ratio);
  late.begin(storage, resume);
  if (!late.plan() || late.copied().empty()) return std::nullopt;
  graph_editor edit{c.graph};
  std::vector<op_id> copies;
  late.apply(edit, copies);
  schedule order;
  order.order.reserve(c.order.size() + copies.size());
  order.order.insert(order.order.end(), c.order.begin(), c.order.begin() + resume);
  order.order.insert(order.order.end(), copies.begin(), copies.end());
  order.order.insert(order.order.end(), c.order.begin() + resume, c.order.end());
  return detail::finish_edit<G>(std::move(edit), std::move(order), late.copied());
}

template <class G>
bool recompute::outline(candidate<G> const& c, replay_facts const& facts, edit_outline& out) const {
  detail::late_readers late(c.graph, facts, c.result, most_ops, keep_ratio);
  late.begin(storage, resume);
  if (!late.plan() || late.copied().empty()) return false;
  out.clear();
  late.outline(out);
  return true;
}

template <class G>
std::string recompute::describe(candidate<G> const& c) const {
  auto const o = c.graph.producer(c.graph.record(storage).first);
  return "recompute " + std::string(c.graph.facets(o).name) + " #" + std::to_string(index(c.graph.origin(o))) + " (" +
         std::to_string(c.graph.bytes(storage)) + " bytes) before position " + std::to_string(resume);
}

namespace detail {
/// A recomputation for each gap at the peak, worth the bytes that leave for a second of it, chains and all; none where it
/// cannot be done.
struct find_recomputations {
  std::uint32_t most_ops;
  float keep_ratio;

  template <class G>
  plain_vector<scored<recompute>> operator()(candidate<G> const& c) const;
};
template <class G>
plain_vector<scored<recompute>> find_recomputations::operator()(candidate<G> const& c) const {
  replay_facts const facts(c.graph, c.order);
  late_readers late(c.graph, facts, c.result, most_ops, keep_ratio);
  plain_vector<scored<recompute>> found;
  for (auto const& g : gaps_at(c.graph, c.order, c.result, c.result.peak_position)) {
    if (!late.begin(g.storage, g.resume).plan() || late.copied().empty()) continue;
    auto const seconds = late.seconds() + 1e-5 * c.result.latency;
    if (double const score = static_cast<double>(c.graph.bytes(g.storage)) / seconds; score > 0)
      found.push_back({score, {g.storage, g.resume, most_ops, keep_ratio}});
  }
  return found;
}
}  // namespace detail

/// The mutator: `recompute` for every gap at the peak whose producer can be computed again.
struct rematerialize {
  static constexpr permissions allows{.recompute = true};

  std::uint32_t most_ops = 64;
  float keep_ratio = 1.0f / 16;

  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    using find = detail::find_recomputations;
    return detail::ranked_stream<recompute, G, find>(c, find{most_ops, keep_ratio});
  }
};

}  // namespace neap::inline v0
