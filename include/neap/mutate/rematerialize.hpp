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

  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const;
  std::string describe(candidate const& c) const;

 private:
  plain_vector<detail::late_place> places(candidate const& c, replay_facts const& facts) const {
    if (in_all_parts) return detail::places_alike(c.graph, facts, {storage, resume});
    plain_vector<detail::late_place> one;
    one.push_back({storage, resume});
    return one;
  }
};

namespace detail {
/// A recomputation for each gap at the peak, worth the bytes that leave for a second of it, chains and all; none where it
/// cannot be done.
struct find_recomputations {
  std::uint32_t max_ops;
  float keep_ratio;

  plain_vector<scored<recompute>> operator()(candidate const& c) const;
};
}  // namespace detail

/// The mutator: `recompute` for every gap at the peak whose producer can be computed again.
struct rematerialize {
  static constexpr permissions allows{.recompute = true};

  std::uint32_t max_ops = 64;
  float keep_ratio = 1.0f / 16;

  auto operator()(candidate const& c) const {
    using find = detail::find_recomputations;
    return detail::ranked_stream<recompute, find>(c, find{max_ops, keep_ratio});
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/rematerialize.ipp>
#endif
