// What an edit does to a graph and an order of it, as data: which ops run again and where, what is stored and loaded, who
// reads what instead, what is left out. Mutations and the answers of solvers are written in it; one function builds it
// (mutate/build_edit.hpp), and a simulator needs no more to judge it without building (simulate/outlined_facts.hpp).
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

/// Of a graph and an order of it. Ids below the graph's numbers of ops and values are its own; new ops and their values are
/// numbered on from there, in the order of `runs`.
struct graph_edit {
  enum class kind : std::uint8_t { again, store, load, wait };
  /// A new op, right before a position of the order.
  struct run {
    kind what = kind::again;
    op_id like = nothing<op_id>;  // what runs again: operator, time, workspace, types are this one's
    value_id moved =
        nothing<value_id>;     // what a store, a load or a wait is of, a value of the graph that fills its storage
    std::uint32_t before = 0;  // the position
    std::uint32_t reads = 0;   // where its inputs begin in `reads`: as many as `like` has; one of a transfer or a wait
    seconds_t seconds = 0;     // of a transfer: set where the edit is judged (simulate/transfer_costs.hpp)

    /// How many values it makes.
    std::size_t output_count(op_graph const& g) const { return what == kind::again ? g.outputs(like).size() : 1; }
    std::span<value_id const> inputs(op_graph const& g, graph_edit const& edit) const {
      return {edit.reads.data() + reads, what == kind::again ? g.inputs(like).size() : 1};
    }
  };
  /// An op of the graph that reads another value in a value's place, wherever it reads that.
  struct reread {
    op_id reader = nothing<op_id>;
    value_id from = nothing<value_id>, to = nothing<value_id>;
  };
  plain_vector<run> runs;                // several at one place run as they stand
  plain_vector<std::uint32_t> sequence;  // numbers of the runs as they run, ascending by `before`; empty: as they stand
  plain_vector<value_id> reads;          // of all runs, one after another
  plain_vector<reread> rereads;          // those of one reader stand together
  plain_vector<op_id> left_out;          // ops of the graph that are dead now

  std::uint32_t new_values = 0;  // of all runs

  void clear() {
    runs.clear(), sequence.clear(), reads.clear(), rereads.clear(), left_out.clear();
    new_values = 0;
  }
  /// The number of the run that comes k-th.
  std::size_t in_order(std::size_t k) const { return sequence.empty() ? k : sequence[k]; }
  /// An op of g runs again; what it reads is added to `reads` next. The first value that it makes.
  value_id run_again(op_graph const& g, op_id like, std::uint32_t before) {
    return add(g, {kind::again, like, nothing<value_id>, before, static_cast<std::uint32_t>(reads.size())},
               g.outputs(like).size());
  }
  /// A transfer or a wait of what fills the storage of `moved`. The value that it makes.
  value_id transfer(op_graph const& g, kind what, value_id moved, value_id of, std::uint32_t before) {
    reads.push_back(of);
    return add(g, {what, nothing<op_id>, moved, before, static_cast<std::uint32_t>(reads.size() - 1)}, 1);
  }
  /// A reader reads another value in a value's place. O(its rereads that were added last).
  void read_instead(op_id reader, value_id from, value_id to) {
    for (auto k = rereads.size(); k > 0 && rereads[k - 1].reader == reader; --k)
      if (rereads[k - 1].from == from) return void(rereads[k - 1].to = to);
    rereads.push_back({reader, from, to});
  }
  /// Brings the rereads of one reader together; of several in one value's place the last one counts. O(n log n).
  void sort_rereads();

 private:
  value_id add(op_graph const& g, run const& r, std::size_t makes) {
    runs.push_back(r);
    auto const first = id_at<value_id>(g.value_count() + new_values);
    new_values += static_cast<std::uint32_t>(makes);
    return first;
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/plan/impl/graph_edit.ipp>
#endif
