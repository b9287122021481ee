// What an edit would do to a candidate, told without doing it: which ops run again and where, who reads what instead,
// what is left out. A simulator needs no more to say what would come of it.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>

#include <cstdint>

namespace neap::inline v0 {

/// Of a graph and an order of it. Ids below the graph's numbers of values are its own; the values of copies are numbered
/// on from there, in the order of `copies`.
struct edit_outline {
  /// An op that runs once more.
  struct copy {
    op_id like = nothing<op_id>;  // of the graph: kind, time, workspace, types are this one's
    std::uint32_t before = 0;  // runs right before this position of the order; copies of one place as they stand here
    std::uint32_t reads = 0;   // where its inputs begin in `reads`: as many as `like` has
    std::uint32_t makes = 0;   // the number of its first output's value: as many as `like` has follow
  };
  /// An op of the graph that reads another value in a value's place, wherever it reads that.
  struct reread {
    op_id reader = nothing<op_id>;
    value_id from = nothing<value_id>, to = nothing<value_id>;
  };
  plain_vector<copy> copies;     // ascending by `before`
  plain_vector<value_id> reads;  // of all copies, one after another
  plain_vector<reread> rereads;  // those of one reader stand together
  plain_vector<op_id> left_out;  // ops of the graph that nobody needs any more

  void clear() { copies.clear(), reads.clear(), rereads.clear(), left_out.clear(); }
};

}  // namespace neap::inline v0
