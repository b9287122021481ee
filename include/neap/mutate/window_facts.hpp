// The facts of a stretch of an order as if it were a graph of its own: a scheduler that reads facts can order the
// stretch, between what runs before it and what runs after.
//
//   order     a b c d e f g h          window [2, 6)          rows     0 1 2 3
//                 -------                                     stand for c d e f
//
// What was made before and is read last in the stretch is there from its first position; what it makes and is needed
// later is kept; what lives through it never changes the count, and is left out. Without transfers the bytes of any order
// of the stretch differ from those in the whole by one constant. Transfers in flight at its ends are not seen.
#pragma once

#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

/// Where the ops of an order stand, and where each of its storages is last read or written.
struct order_places {
  table<op_id, std::uint32_t> at;
  table<storage_id, std::uint32_t> last;  // kept ones: behind the end

  order_places() = default;
  order_places(flow_facts const& facts, schedule const& order) { assign(facts, order); }
  /// O(ops + storages they touch).
  void assign(flow_facts const& facts, schedule const& order);
};

class window_facts : public flow_facts {
 public:
  /// Learns the positions [begin, end) of a valid order; keeps the memory of the tables. O(what stands there, with what it
  /// waits for and touches), and once O(storages of the whole).
  void assign(flow_facts const& whole, schedule const& order, order_places const& places, std::uint32_t begin,
              std::uint32_t end);

 private:
  static constexpr std::uint32_t lives_through = no_id - 1;  // in place of a row

  /// The row of a storage that an op of the window touches; it is given one when it is met first.
  std::uint32_t learn(flow_facts const& whole, order_places const& places, std::uint32_t begin, std::uint32_t end,
                      storage_id s, op_id me);

  table<storage_id, std::uint32_t> row_of_;  // of the whole's storages, while the window is learnt
  plain_vector<storage_id> known_;           // those that have one
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/window_facts.ipp>
#endif
