// A candidate as a graph of blocks that may hand data to any later one, solved by search over use-gaps and the blocks'
// options, and what an answer comes to as a graph and an order. For programs that are no chains (skips of a U-Net, what a
// decoder reads of its encoder), where chain_solver.hpp must hold what reaches further than the next block.
//
//   neap::graph_solver const blocks(graph, order, result, may_run_again, neap::use_gaps_for_blocks{});
//   neap::option_gaps search(blocks.problem());
//   if (auto const a = search.solve(peak, {.work = 50'000})) auto const e = blocks.expand(*a);
//
// Two levels, as in HiRemate (ICML 2025): inside a block a solver of recomputation finds options, once for equal
// blocks; above, whole blocks run, save and run again. The model counts a block's memory while it runs at its highest, and
// no takeovers, so a simulator mostly finds less.
#pragma once

#include <neap/blocks/block_basis.hpp>
#include <neap/blocks/block_options.hpp>
#include <neap/blocks/block_replay.hpp>
#include <neap/blocks/option_gaps.hpp>
#include <neap/plan/block_graph.hpp>
#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What a graph of blocks pays for a block, and what it runs then. Data are the block's (block_facts::data).
struct graph_price {
  graph_block_option option;
  bytes_t moved = 0;                          // stored and loaded
  std::vector<block_step> forward, backward;  // the answer up to the pause, and behind it
  std::vector<block_step> again;              // makes what the block hands on, from what is saved
};

graph_price graph_price_of(block_facts const& f, std::vector<unsigned char> const& held, block_problem const& b,
                           std::vector<block_step> const& steps);

/// What a graph of blocks chooses among: the answers, and behind them some with values away.
std::vector<graph_price> graph_prices_of(block_facts const& f, std::vector<unsigned char> const& held,
                                         block_problem const& b, std::vector<remat_answer> const& answers,
                                         std::vector<unsigned char> const& movable, int levels);

struct graph_solver_options {
  option_levels levels{4, 3};  // limits that blocks are solved for
  double link = 0;  // bytes a second, by which values leave the device while their block pauses; 0: they stay
  std::uint32_t max_blocks = 64;     // that the program is cut into
  std::uint32_t forward_blocks = 4;  // times as many, of one without a backward part: blocks that only run forward have
                                     // no options, small ones make up for that
  std::array<std::uint32_t, 13> sizes{1, 2, 4, 6, 8, 12, 18, 27, 40, 60, 90, 135, 200};  // of blocks, in nodes, in turn
  std::size_t max_data = option_gaps::max_data;                                          // between blocks
  bool join_data = false;  // where there are more, alike ones are one
  simplify_options simplify{};
};

class graph_solver {
 public:
  /// Blocks of the graph in this order; `result`: its simulation. empty() where the graph has no blocks to
  /// choose between, or too many data between them. All but the solver outlive it.
  template <class S>
  graph_solver(op_graph const& g, schedule const& order, simulation const& result,
               plain_vector<bool> const& may_run_again, S const& solver, graph_solver_options const& options = {})
      : graph_solver(g, order, basis_of(g, order, result, options.simplify), result.resident_bytes, may_run_again,
                     solver, options) {}
  /// The same of what is known of the graph in this order, that need not outlive the solver; `resident`: bytes that are
  /// there throughout.
  template <class S>
  graph_solver(op_graph const& g, schedule const& order, block_basis const& basis, bytes_t resident,
               plain_vector<bool> const& may_run_again, S const& solver, graph_solver_options const& options = {})
      : g_(g),
        order_(order),
        may_run_again_(may_run_again),
        options_(options) {
    static_assert(detail::check_front_solver<S>());
    if (basis.empty()) return;
    auto const& [seconds, basic, simplified, backward] = basis;
    is_step_ = std::any_of(order.begin(), order.end(), [&](op_id o) { return basic.part[o] != step_part::forward; });
    auto const max_blocks = is_step_ ? options.max_blocks : options.forward_blocks * options.max_blocks;
    for (auto const size : options.sizes) {
      auto const ends = cut_blocks(g, simplified, {.max_nodes = size});
      if (ends.size() > max_blocks) continue;
      if (ends.size() < 2) return;
      chain_ = make_chain(g, basic, simplified, backward, ends);
      note_held();
      auto data = group_data(false);
      if (data > options.max_data && options.join_data) data = group_data(true);
      if (data <= options.max_data) break;
      least_data_ = std::min(least_data_, data);
      chain_.blocks.clear();
    }
    if (chain_.blocks.empty()) return;
    for (std::uint32_t k = 0; k < chain_.blocks.size(); ++k) add_block(k, seconds, solver);
    connect();
    choose_options(problem_, {});
    note_ground(resident);
  }

  bool empty() const { return rows_.empty(); }
  /// Why it is empty.
  std::string why_empty() const;
  /// Whether it has a backward part.
  bool is_step() const { return is_step_; }
  block_chain const& blocks() const { return chain_; }
  /// In bytes and seconds.
  block_graph const& problem() const { return problem_; }
  /// How many blocks had to be solved.
  std::size_t solved_blocks() const { return models_.size(); }

  /// Whether values could leave the device: there is a link.
  bool can_swap() const { return options_.link > 0 && !empty(); }
  /// The problem with values that may leave their blocks, and data between blocks that may leave, at a price of the link
  /// (link_price::part). Its answers are expanded as others are.
  block_graph problem_at(double part) const;

  /// What an answer comes to. Nothing where it needs what cannot run again.
  std::optional<edited> expand(block_graph_answer const& a) const {
    detail::block_replay to(g_, order_, may_run_again_, chain_, held_);
    std::vector<unsigned char> leaves(storages_.size(), 0);  // is stored when it is made for the first time
    for (auto const& s : a.steps)
      if (s.what == block_graph_step::action::load) leaves[s.index] = 1;
    for (auto const& s : a.steps) {
      if (s.what == block_graph_step::action::drop) {
        for (auto x : storages_[s.index]) to.forget(x);
        continue;
      }
      if (s.what == block_graph_step::action::load) {
        for (auto x : storages_[s.index]) to.load(x);
        continue;
      }
      auto const& m = models_[rows_[s.index].model];
      auto const play = [&](std::vector<block_step> const& steps) {
        to.play(rows_[s.index].facts, m.posed.block, steps);
      };
      switch (s.what) {
        case block_graph_step::action::pass: play(m.pass.steps); break;
        case block_graph_step::action::save: play(m.prices[s.option].forward); break;
        case block_graph_step::action::again: play(m.prices[s.option].again); break;
        case block_graph_step::action::backward:
          play(m.prices[s.option].backward);
          to.run_waiting();
          break;
        case block_graph_step::action::drop:
        case block_graph_step::action::load: break;
      }
      if (s.what == block_graph_step::action::backward) continue;
      for (auto d : problem_.blocks[s.index].makes) {
        if (!leaves[d]) continue;
        for (auto x : storages_[d]) to.store(x);
        leaves[d] = 0;
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
    block_pass pass;
    double once_time;
    std::vector<graph_price> prices;
  };

  /// The phase of an op: -1 before all blocks, two a block, and behind them.
  std::int64_t phase_of(op_id o) const;
  /// Storages that must not be forgotten, and those that are read behind all blocks, or by the backward of an earlier
  /// block than made them: they stay.
  void note_held();
  /// Forward ops that read what an update overwrites before their own block's backward has run do not run again.
  void leave_overwritten();
  bool is_forward(op_id o) const {
    return o != nothing<op_id> && chain_.part[o] == step_part::forward &&
           chain_.block_of[o] < block_chain::prologue_block;
  }
  /// Data between blocks: a storage each, or `joined` all that one block makes and the same phases read, which are then
  /// held and dropped together. How many there are.
  std::size_t group_data(bool joined);

  template <class S>
  void add_block(std::uint32_t k, std::vector<seconds_t> const& seconds, S const& solver) {
    auto [facts, posed] = detail::block_of(g_, chain_, k, seconds, held_, may_run_again_, true);
    row r{0, std::move(facts)};
    while (r.model < models_.size() && models_[r.model].posed != posed) ++r.model;
    if (r.model == models_.size()) {
      block_model m{std::move(posed), {}, 0, {}};
      auto const& block = m.posed.block;
      m.pass = pass_of(block);
      for (std::uint32_t i = 0; i < block.rest; ++i)
        if (!block.problem.ops[i].again) m.once_time += block.problem.ops[i].time;
      m.prices = graph_prices_of(r.facts, m.posed.held, block, options_of(block, solver, options_.levels),
                                 m.posed.movable, options_.link > 0 ? options_.levels.swapped : 0);
      models_.push_back(std::move(m));
    }
    rows_.push_back(std::move(r));
  }

  /// Data between blocks: numbered, and who makes and reads them.
  void connect();

  void choose_options(block_graph& to, link_price const& price) const;

  /// What is there whatever is done: sources, what is made before all blocks, what stays, gradients between blocks.
  void note_ground(bytes_t resident);

  op_graph const& g_;
  schedule const& order_;
  plain_vector<bool> may_run_again_;
  plain_vector<bool> held_;  // by storage
  graph_solver_options options_;
  block_chain chain_;
  std::vector<row> rows_;
  std::vector<block_model> models_;
  std::vector<std::vector<storage_id>> storages_;                   // by datum of the problem
  std::vector<std::uint32_t> group_;                                // of data that are one, by storage
  std::vector<std::vector<graph_block_option>> options_of_blocks_;  // by block: one a price
  block_graph problem_;
  std::size_t least_data_ = SIZE_MAX;  // between blocks, of cuts with too many; SIZE_MAX: there were none
  bool is_step_ = false;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/graph_solver.ipp>
#endif
