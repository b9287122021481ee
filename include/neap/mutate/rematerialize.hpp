// rematerialize: a value that waits in memory for late readers is freed after its early ones and computed again for the
// late ones, with whatever of its inputs is no longer in memory, back to values that are. Views are followed: the unit is
// the storage. The mutations come from the candidate's peak, the most bytes for the least time first. What a part of an op
// has made is first computed again in all parts that are alike (places_alike.hpp), then in this one alone.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/late_readers.hpp>
#include <neap/mutate/places_alike.hpp>
#include <neap/mutate/ranked_stream.hpp>

#include <string>

namespace neap { inline namespace v0 {

/// Compute a storage's values again for its readers from position `resume` on.
struct recompute {
  storage_id storage = nothing<storage_id>;
  std::uint32_t resume = 0;      // the first late position
  std::uint32_t max_ops = 64;    // gives up beyond that many copied ops
  float keep_ratio = 1.0f / 16;  // inputs this much smaller are kept for longer instead of computed again
  bool in_all_parts = false;     // what other parts have made in its place, too, where that can be had

  friend bool operator==(recompute const&, recompute const&) = default;

  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const;
  template <class G>
  std::string describe(candidate<G> const& c) const;

 private:
  template <class G>
  plain_vector<detail::late_place> places(candidate<G> const& c, replay_facts const& facts) const {
    if (in_all_parts) return detail::places_alike(c.graph, facts, {storage, resume});
    plain_vector<detail::late_place> one;
    one.push_back({storage, resume});
    return one;
  }
};

template <class G>
bool recompute::edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
  detail::late_readers late(c.graph, facts, c.result, max_ops, keep_ratio);
  out.clear();
  std::vector<op_id> maybe_dead;
  for (auto const& p : places(c, facts)) {
    if (!late.begin(p.storage, p.resume).plan() || late.copied().empty()) {
      if (p.storage == storage) return false;
      continue;
    }
    late.edit(out);
    maybe_dead.insert(maybe_dead.end(), late.copied().begin(), late.copied().end());
  }
  if (in_all_parts) out.sort_rereads();  // an op may read what several parts have made
  remove_dead(c.graph, out, std::move(maybe_dead));
  return true;
}

template <class G>
std::string recompute::describe(candidate<G> const& c) const {
  auto const o = c.graph.producer(c.graph.record(storage).first);
  return detail::text_of({"recompute ", c.graph.facets(o).name, " #", index(c.graph.origin(o)), " (",
                          c.graph.bytes(storage), " bytes) before position ", resume,
                          (in_all_parts ? ", and the like in all parts" : "")});
}

namespace detail {
/// A recomputation for each gap at the peak, worth the bytes that leave for a second of it, chains and all; none where it
/// cannot be done.
struct find_recomputations {
  std::uint32_t max_ops;
  float keep_ratio;

  template <class G>
  plain_vector<scored<recompute>> operator()(candidate<G> const& c) const;
};
template <class G>
plain_vector<scored<recompute>> find_recomputations::operator()(candidate<G> const& c) const {
  replay_facts const facts(c.graph, c.order);
  late_readers late(c.graph, facts, c.result, max_ops, keep_ratio);
  plain_vector<scored<recompute>> found;
  for (auto const& g : gaps_at(c.graph, c.order, c.result, c.result.peak_position)) {
    if (!late.begin(g.storage, g.resume).plan() || late.copied().empty()) continue;
    auto const seconds = late.seconds() + 1e-5 * c.result.latency;
    double const score = static_cast<double>(c.graph.bytes(g.storage)) / seconds;
    if (!(score > 0)) continue;
    auto const maker = c.graph.producer(c.graph.record(g.storage).first);
    if (c.graph.record(maker).part != nothing<part_id>)
      found.push_back({score, {g.storage, g.resume, max_ops, keep_ratio, true}});
    found.push_back({score, {g.storage, g.resume, max_ops, keep_ratio}});
  }
  return found;
}
}  // namespace detail

/// The mutator: `recompute` for every gap at the peak whose producer can be computed again.
struct rematerialize {
  static constexpr permissions allows{.recompute = true};

  std::uint32_t max_ops = 64;
  float keep_ratio = 1.0f / 16;

  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    using find = detail::find_recomputations;
    return detail::ranked_stream<recompute, G, find>(c, find{max_ops, keep_ratio});
  }
};

}}  // namespace neap::v0
