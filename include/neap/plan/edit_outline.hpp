// What an edit would do to a candidate, as data: which ops run again and where, who reads what instead,
// what is left out. A simulator needs no more to say what would come of it.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/units.hpp>

#include <cstdint>

namespace neap::inline v0 {

/// Of a graph and an order of it. Ids below the graph's numbers of values are its own; the values of new ops are numbered
/// on from there, in the order of `runs`.
struct edit_outline {
  enum class kind : std::uint8_t { again, store, load, wait };
  /// A new op, right before a position of the order; several at one place as they stand here.
  struct run {
    kind what = kind::again;
    op_id like = nothing<op_id>;  // what runs again: operator, time, workspace, types are this one's
    value_id moved =
        nothing<value_id>;     // what a store, a load or a wait is of, a value of the graph that fills its storage
    std::uint32_t before = 0;  // the position
    std::uint32_t reads = 0;   // where its inputs begin in `reads`: as many as `like` has; one of a transfer or a wait
    seconds_t seconds = 0;     // of a transfer: set where the outline is judged (simulate/transfer_costs.hpp)
  };
  /// An op of the graph that reads another value in a value's place, wherever it reads that.
  struct reread {
    op_id reader = nothing<op_id>;
    value_id from = nothing<value_id>, to = nothing<value_id>;
  };
  plain_vector<run> runs;        // ascending by `before`
  plain_vector<value_id> reads;  // of all runs, one after another
  plain_vector<reread> rereads;  // those of one reader stand together
  plain_vector<op_id> left_out;  // ops of the graph that are dead now

  void clear() { runs.clear(), reads.clear(), rereads.clear(), left_out.clear(); }
};

}  // namespace neap::inline v0
