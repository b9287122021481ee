// The candidates that a search has met. A candidate is a graph in an order: two that differ in either are two.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/number_set.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdint>
#include <optional>

namespace neap::inline v0 {

/// Distinguishes candidates by a digest of the graph and of its order. Neither depends on how ops and values are
/// numbered. An op at a position is identified by what it computes and by the positions of those whose results it reads,
/// so that two copies of one op differ. Keeps its tables between calls; not for two threads at once.
class candidate_digest {
 public:
  /// Nothing if the order does not have each op of the graph once and after all it must wait for. O(ops + edges), and
  /// nothing is allocated for graphs of a size met before.
  NEAP_ONCE std::optional<digest> operator()(op_graph const& g, schedule const& order) {
    auto const places = places_of(g, order);
    if (!is_order_) return std::nullopt;
    return g.digest().mix(places);
  }

 private:
  /// The sum of one number a position: such numbers do not wait for one another, so a processor works on several at once.
  NEAP_ONCE std::uint64_t places_of(op_graph const& g, schedule const& order) {
    auto const n = g.op_count();
    is_order_ = order.size() == n;
    if (!is_order_) return 0;
    at_.assign(n, no_id);
    std::uint64_t sum = 0;
    bool after_all = true;
    for (std::uint32_t p = 0; p < n; ++p) {
      op_id const o = order[p];
      if (index(o) >= n || at_[o] != no_id) return is_order_ = false, 0;
      std::uint64_t x = g.digest(o).low ^ p;
      for (auto v : g.inputs(o)) {
        auto const by = g.producer(v);
        auto const where = by == nothing<op_id> ? n : at_[by];
        after_all &= where != no_id;
        x = (x ^ where) * 0x9fb21c651e98df25ull;
        x ^= x >> 32;
      }
      for (auto before : g.order_after(o)) after_all &= at_[before] != no_id;
      for (auto v : g.outputs(o)) x += g.is_kept(v);
      at_[o] = p;
      sum += scramble(x);
    }
    is_order_ = after_all;
    return sum;
  }

  bool is_order_ = false;           // of the last call
  table<op_id, std::uint32_t> at_;  // scratch: the position of each op so far
};

/// A set of candidates, by digest.
class seen_candidates {
 public:
  /// Whether it is here for the first time; then it is added.
  NEAP_ONCE bool add(digest const& d) {
    auto const before = digests_.size();
    set_.find_or_add(
        digest_hash{}(d), [&](std::uint32_t n) { return digests_[n] == d; },
        [&] { return digests_.push_back(d), before; });
    return digests_.size() > before;
  }
  bool contains(digest const& d) const {
    return set_.contains(digest_hash{}(d), [&](std::uint32_t n) { return digests_[n] == d; });
  }
  void clear() { set_ = {}, digests_.clear(); }

 private:
  number_set set_;  // rows of digests_
  plain_vector<digest> digests_;
};

}  // namespace neap::inline v0
