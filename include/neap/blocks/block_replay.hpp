// What chain_solver.hpp and graph_solver.hpp share: blocks as their solvers see them, and answers for a block played into a
// graph.
#pragma once

#include <neap/blocks/block_facts.hpp>
#include <neap/blocks/block_options.hpp>
#include <neap/mutate/gap.hpp>
#include <neap/mutate/replay.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The problem of a block for a solver, and what its answers are priced by. Where these are equal, so are the options,
/// whatever the operators.
struct posed_block {
  block_problem block;
  std::vector<unsigned char> held, movable;       // by datum: never given back, could be stored and loaded
  std::vector<std::uint32_t> inputs;              // data of other blocks
  std::vector<std::vector<std::uint32_t>> reads;  // by op of the block: data
  friend bool operator==(posed_block const&, posed_block const&) = default;
};
/// Of a chain, with its problem. `held` by storage, `may_run_again` by op, `seconds` by op; `updates_last` as
/// problem_of() has it.
inline std::pair<block_facts, posed_block> block_of(op_graph const& g, block_chain const& chain, std::uint32_t block,
                                                    std::vector<seconds_t> const& seconds,
                                                    plain_vector<bool> const& held,
                                                    plain_vector<bool> const& may_run_again, bool updates_last) {
  auto facts = facts_of(g, chain, block, span_of(seconds.data(), seconds.size()));
  posed_block posed;
  for (auto const& d : facts.data) {
    posed.held.push_back(held[index(d.storage)]);
    posed.movable.push_back(!held[index(d.storage)] && can_leave(g, d.storage));
  }
  posed.inputs = facts.inputs;
  for (auto& o : facts.ops) {
    o.recomputable = o.recomputable && may_run_again[index(o.op)];
    posed.reads.push_back(o.reads);
  }
  posed.block = problem_of(facts, posed.held, updates_last);
  return {std::move(facts), std::move(posed)};
}

/// Plays answers for blocks into a graph that is rebuilt. Updates that cannot run yet wait.
class block_replay {
 public:
  /// `held` by storage: never given back. All of it outlives the replay.
  block_replay(op_graph const& g, schedule const& order, plain_vector<bool> const& may_run_again,
               block_chain const& chain, plain_vector<bool> const& held)
      : chain_(chain),
        held_(held),
        to_(g, order, may_run_again) {}

  void play(block_facts const& f, block_problem const& b, std::vector<block_step> const& steps) {
    using action = block_step::action;
    for (auto const& s : steps) {
      switch (s.what) {
        case action::compute: run(f.ops[b.op_of[s.index]].op); break;
        case action::drop:
          // The block's input is dead: there is nothing to add.
          if (s.index == block_step::input) break;
          if (auto const& d = f.data[b.datum_of[s.index]]; d.origin == data_origin::inside) forget(d.storage);
          break;
        case action::store: for_each_storage(f, b, s.index, [&](storage_id x) { to_.store(x); }); break;
        case action::load: for_each_storage(f, b, s.index, [&](storage_id x) { to_.load(x); }); break;
      }
    }
  }
  /// Updates that waited and are ready by now.
  void run_waiting() {
    std::erase_if(waiting_, [&](op_id o) { return to_.is_ready(o) && to_.run(o); });
  }
  /// Unless the storage is held.
  void forget(storage_id s) {
    if (!held_[index(s)]) to_.forget(s);
  }
  void store(storage_id s) { to_.store(s); }
  void load(storage_id s) { to_.load(s); }
  std::optional<edited> finish() && { return std::move(to_).finish(); }

 private:
  void run(op_id o) {
    if (chain_.part[o] == step_part::update && !to_.is_ready(o)) waiting_.push_back(o);
    else (void)to_.run_with_views(o);
  }
  /// Of a value; what a block is given may be several.
  template <class Put>
  void for_each_storage(block_facts const& f, block_problem const& b, std::uint32_t value, Put&& put) {
    if (value != block_step::input) return put(f.data[b.datum_of[value]].storage);
    for (auto d : f.inputs)
      if (!held_[index(f.data[d].storage)]) put(f.data[d].storage);
  }

  block_chain const& chain_;
  plain_vector<bool> const& held_;
  replay_builder to_;
  std::vector<op_id> waiting_;
};

}}}  // namespace neap::v0::detail
