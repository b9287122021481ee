// A candidate as a chain of blocks, rk-Rotor's answer for it at any budget, and what that answer comes to as a graph and
// an order. The join of neap/block (what the blocks are), neap/solve (what to do) and mutate/replay.hpp (doing it).
//
//   neap::chain_solver const chain(graph, order, result, may_run_again, neap::use_gaps_for_blocks{});
//   for (auto const& p : chain.front()) ...                 // budgets and times, from one run
//   auto const e = chain.expand(p.budget);     // an edited graph and its order
//
// A block's model is near the truth, not the truth: takeovers, and what several blocks share, are not in it. So budgets
// are the solver's own: who wants a peak searches for the budget that gives it (blocks/solver_seeds.hpp).
#pragma once

#include <neap/blocks/block_basis.hpp>
#include <neap/blocks/block_options.hpp>
#include <neap/blocks/block_replay.hpp>
#include <neap/blocks/rotor.hpp>
#include <neap/blocks/use_gap.hpp>
#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct chain_solver_options {
  slots_t slots = 3000;    // that what the chain would save without limits is counted in
  option_levels levels{};  // limits that blocks are solved for
  double link = 0;         // bytes a second, by which values leave the device while their block pauses; 0: they stay
  std::int64_t max_table_bytes = 256ll << 20;  // of rk-Rotor's table
  // What backwards leave makes blocks unequal, and rk-Rotor takes longer over such chains: longer ones are solved without.
  std::size_t max_unequal = 150;
  // Time goes with slots times the square of the blocks: long chains have fewer slots, but some.
  slots_t least_slots = 300, max_cells = 16'000'000;
  bool one_block = false;  // the whole program is one block: Checkmate's problem
  simplify_options simplify{};
  cut_options cut{.max_nodes = 64};  // a layer is whole: what it adds to would reach over three blocks otherwise
};

class chain_solver {
 public:
  /// Blocks of the graph in this order; `result`: its simulation. empty() where the graph has no blocks to
  /// choose between: no gradients, one block, parts, an order that no chain can follow.
  template <class S>
  chain_solver(op_graph const& g, schedule const& order, simulation const& result,
               plain_vector<bool> const& may_run_again, S const& solver, chain_solver_options const& options = {})
      : chain_solver(g, order, basis_of(g, order, result, options.simplify), may_run_again, solver, options) {}
  /// The same of what is known of the graph in this order; that need not outlive the solver.
  template <class S>
  chain_solver(op_graph const& g, schedule const& order, block_basis const& basis,
               plain_vector<bool> const& may_run_again, S const& solver, chain_solver_options const& options = {})
      : g_(g),
        order_(order),
        may_run_again_(may_run_again),
        droppable_(droppable_storages(g, may_run_again)),
        options_(options) {
    static_assert(detail::check_front_solver<S>());
    if (basis.empty() || !has_forward_end(g) || !has_backward_end(g)) return;
    auto const part = [&](step_part x) {
      return std::any_of(order.begin(), order.end(), [&](op_id o) { return basis.basic.part[o] == x; });
    };
    if (!part(step_part::forward) || !part(step_part::backward)) return;
    auto const ends = options.one_block ? block_ends{static_cast<std::uint32_t>(basis.simplified.nodes.size())}
                                        : cut_blocks(g, basis.simplified, options.cut);
    chain_ = make_chain(g, basis.basic, basis.simplified, basis.backward, ends);
    if (chain_.blocks.size() < 2 && !options.one_block) return;
    note_reach();
    // In single precision: what differs by when an op runs alone is rounded away, and equal blocks have equal times.
    auto seconds = basis.seconds;
    for (auto& s : seconds) s = static_cast<float>(s);
    for (std::uint32_t k = 0; k < chain_.blocks.size(); ++k) add_block(k, seconds, solver);
    auto const stays = staying();
    for (std::uint32_t k = 0; k < rows_.size(); ++k) {
      auto const& m = models_[rows_[k].model];
      profile_.blocks.push_back({.input = k > 0 ? model(k - 1).posed.block.handed_on : 0,
                                 .pass_time = m.pass.time,
                                 .pass_temporary = m.pass.temporary,
                                 .left = rows_.size() <= options.max_unequal ? left_by(k, stays) : 0});
    }
    price_.link = options.link;
    solve();
  }

  /// Whether some block has values that could leave the device, and there is a link.
  bool can_swap() const {
    return std::any_of(models_.begin(), models_.end(), [](auto const& m) { return m.prices.back().moved > 0; });
  }
  /// Whether they may leave, as it is solved now.
  bool moves_values() const { return price_.lets_move(); }
  /// Solves again, with values that may leave their blocks, at a price of the link (link_price::part).
  void swap_at(double part);
  /// Solves again as at first: what is saved stays.
  void swap_nothing() { swap_at(link_price::stay); }

  bool empty() const { return !rotor_; }
  /// Whether its answers leave nothing to a graph of blocks: each block hands on to the next one alone.
  bool is_chain() const { return rotor_ && chain_.is_chain; }
  block_chain const& blocks() const { return chain_; }
  /// In bytes.
  chain_profile const& profile() const { return profile_; }
  /// How many blocks had to be solved.
  std::size_t solved_blocks() const { return models_.size(); }
  /// Of the largest block: a solver may have a limit.
  std::size_t max_values() const;
  /// The budgets, in slots, at which the chain's time falls, ascending.
  std::vector<chain_front_point> const& front() const { return front_; }
  bytes_t slot_bytes() const { return slot_; }

  /// What the answer for a budget comes to. Nothing where it needs what cannot run again.
  std::optional<edited> expand(slots_t budget) const {
    detail::block_replay to(g_, order_, may_run_again_, chain_, held_);
    std::vector<std::uint32_t> saved(chain_.blocks.size(), 0);
    for (auto const& step : rotor_->sequence(budget)) {
      auto const k = step.block;
      switch (step.step) {
        case chain_step::pass_keep:
        case chain_step::pass_drop:
          to.play(rows_[k].facts, model(k).posed.block, model(k).pass.steps);
          if (step.step == chain_step::pass_drop && k > 0) forget_output(to, k - 1);
          break;
        case chain_step::save:
          saved[k] = price_number(k, step.option);
          to.play(rows_[k].facts, model(k).posed.block, model(k).prices[saved[k]].forward);
          break;
        case chain_step::backward:
          to.play(rows_[k].facts, model(k).posed.block, model(k).prices[saved[k]].backward);
          to.run_waiting();
          break;
        case chain_step::loss: break;
      }
    }
    return std::move(to).finish();
  }

 private:
  struct row {
    std::uint32_t model;
    block_facts facts;
  };
  /// Of blocks that pose the same problem: their operators may differ.
  struct block_model {
    detail::posed_block posed;
    bytes_t input;
    bool gives_back;  // the block before does not need what it hands on
    block_pass pass;
    std::vector<block_price> prices;
  };

  block_model const& model(std::uint32_t block) const { return models_[rows_[block].model]; }

  /// Storages that stay to the end, or up to what joins the gradients of all blocks.
  plain_vector<bool> staying() const;
  /// Of those that a block's backward makes, the bytes.
  bytes_t left_by(std::uint32_t k, plain_vector<bool> const& stays) const;

  /// Storages that more than two neighbouring blocks touch, or that must not be forgotten: they stay.
  void note_reach();

  template <class S>
  void add_block(std::uint32_t k, std::vector<seconds_t> const& seconds, S const& solver) {
    auto [facts, posed] = detail::block_of(g_, chain_, k, seconds, held_, may_run_again_, false);
    row r{0, std::move(facts)};
    bytes_t const input = k > 0 ? model(k - 1).posed.block.handed_on : 0;
    bool const gives_back = k > 0 && !model(k - 1).posed.block.reads_handed_on;
    for (; r.model < models_.size(); ++r.model)
      if (auto const& m = models_[r.model]; m.input == input && m.gives_back == gives_back && m.posed == posed) break;
    if (r.model == models_.size()) {
      auto const answers = options_of(posed.block, solver, options_.levels);
      auto prices = prices_of(r.facts, posed.block, answers, posed.movable, input, gives_back,
                              options_.link > 0 ? options_.levels.swapped : 0);
      auto pass = pass_of(posed.block);
      models_.push_back({std::move(posed), input, gives_back, std::move(pass), std::move(prices)});
    }
    rows_.push_back(std::move(r));
  }

  /// Of equals rk-Rotor takes the first: with values away these stand first, so that it is early blocks that they leave.
  /// Those pause longest.
  std::uint32_t price_number(std::uint32_t block, std::uint32_t option) const {
    auto const count = static_cast<std::uint32_t>(profile_.blocks[block].options.size());
    return price_.lets_move() ? count - 1 - option : option;
  }
  void solve();

  /// What a block has handed on is needed no more.
  void forget_output(detail::block_replay& to, std::uint32_t k) const {
    for (auto v : chain_.blocks[k].outputs) to.forget(g_.storage(v));
  }

  op_graph const& g_;
  schedule const& order_;
  plain_vector<bool> may_run_again_;
  plain_vector<bool> droppable_, held_;  // by storage
  chain_solver_options options_;
  block_chain chain_;
  std::vector<row> rows_;
  std::vector<block_model> models_;
  chain_profile profile_;
  std::unique_ptr<rotor> rotor_;
  std::vector<chain_front_point> front_;
  bytes_t slot_ = 1;
  link_price price_;
};

/// Solves blocks by search over use-gaps, all limits of a block in one run. `work`: evaluations a block.
struct use_gaps_for_blocks {
  std::int64_t work = 20'000;
  std::uint64_t seed = 1;
  std::vector<remat_answer> operator()(remat_problem const& p, std::span<remat_limits const> limits) const {
    return use_gap{{.work = work}, seed}.front(p, limits);
  }
};

/// Leaves blocks with the two plain options.
struct plain_blocks {
  std::vector<remat_answer> operator()(remat_problem const&, std::span<remat_limits const>) const { return {}; }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/chain_solver.ipp>
#endif
