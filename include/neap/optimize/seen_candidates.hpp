// The candidates that a search has met. A candidate is a graph in an order: two that differ in either are two.
#pragma once

#include <neap/core/number_set.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdint>
#include <optional>

namespace neap { inline namespace v0 {

/// Distinguishes candidates by a digest of the graph and of its order. Neither depends on how ops and values are
/// numbered. An op at a position is identified by what it computes and by the positions of those whose results it reads,
/// so that two copies of one op differ. Keeps its tables between calls; not for two threads at once.
class candidate_digest {
 public:
  /// Nothing if the order does not have each op of the graph once and after all it must wait for. O(ops + edges), and
  /// nothing is allocated for graphs of a size met before.
  std::optional<digest> operator()(op_graph const& g, schedule const& order);

 private:
  /// The sum of one number a position: such numbers do not wait for one another, so a processor works on several at once.
  std::uint64_t places_of(op_graph const& g, schedule const& order);

  bool is_order_ = false;           // of the last call
  table<op_id, std::uint32_t> at_;  // scratch: the position of each op so far
};

/// A set of candidates, by digest.
class seen_candidates {
 public:
  /// Whether it is here for the first time; then it is added.
  bool add(digest const& d);
  bool contains(digest const& d) const {
    return set_.contains(digest_hash{}(d), [&](std::uint32_t n) { return digests_[n] == d; });
  }
  void clear() { set_ = {}, digests_.clear(); }

 private:
  number_set set_;  // rows of digests_
  plain_vector<digest> digests_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/seen_candidates.ipp>
#endif
