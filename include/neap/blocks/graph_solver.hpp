// A candidate as a graph of blocks that may hand data to any later one, solved by search over use-gaps and the blocks'
// options, and what an answer comes to as a graph and an order. For programs that are no chains (skips of a U-Net, what a
// decoder reads of its encoder), where chain_solver.hpp must hold what reaches further than the next block.
//
//   neap::graph_solver const blocks(graph, order, result, may_run_again, neap::use_gaps_for_blocks{});
//   neap::option_gaps search(blocks.problem());
//   if (auto const a = search.solve(peak, {.work = 50'000})) auto const e = blocks.expand<neap::graph>(*a);
//
// Two levels, as in HiRemate (ICML 2025): inside a block a solver of recomputation finds options, once for equal
// blocks; above, whole blocks run, save and run again. The model counts a block's memory while it runs at its highest, and
// no takeovers, so a simulator mostly finds less.
#pragma once

#include <neap/blocks/block_basis.hpp>
#include <neap/blocks/block_options.hpp>
#include <neap/blocks/block_replay.hpp>
#include <neap/blocks/option_gaps.hpp>
#include <neap/core/sort_once.hpp>
#include <neap/plan/block_graph.hpp>
#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
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

namespace detail {

/// Data of other blocks that an op of a block's problem reads.
template <class Put>
void for_each_input(block_facts const& f, std::vector<unsigned char> const& held, block_problem const& b,
                    std::uint32_t op, Put&& put) {
  for (auto d : f.ops[b.op_of[op]].reads)
    if (f.data[d].origin == data_origin::input && !held[d]) put(d);
}

}  // namespace detail

inline graph_price graph_price_of(block_facts const& f, std::vector<unsigned char> const& held, block_problem const& b,
                                  std::vector<block_step> const& steps) {
  using action = block_step::action;
  auto const& p = b.problem;
  graph_price out;
  auto& o = out.option;
  std::vector<unsigned char> hands_on(p.values.size(), 0);
  for (auto v : p.ops[b.rest].inputs) hands_on[v] = 1;
  std::vector<unsigned char> made(p.values.size(), 0);  // behind the pause
  detail::block_walk walk(b, 0);
  for (auto const& s : steps) {
    walk.play(s);
    if (s.what != action::compute || s.index == b.rest) continue;
    auto const& op = p.ops[s.index];
    bool const behind = walk.is_behind();
    (behind ? o.backward_time : o.forward_time) += op.time;
    // What is there and made once more is there twice until the op has ended.
    auto& peak = behind ? o.backward_peak : o.forward_peak;
    peak = std::max(peak, walk.bytes_now() + walk.bytes_twice() + op.workspace_bytes);
    if (!behind) continue;
    detail::for_each_input(f, held, b, s.index, [&](std::uint32_t d) { o.backward_reads.push_back(d); });
    for (auto v : op.inputs)
      if (hands_on[v] && !made[v]) o.backward_reads.push_back(b.datum_of[v]);
    for (auto v : op.outputs) made[v] = 1;
  }
  out.moved = walk.bytes_moved();
  detail::sort_once(o.backward_reads);
  o.saved = walk.bytes_saved();
  o.backward_peak = std::max(o.backward_peak, o.saved);
  // Again, from what is saved.
  auto const there = [&](std::uint32_t v) { return walk.is_saved(v) || held[b.datum_of[v]]; };
  std::vector<std::uint32_t> last(p.values.size(), no_id), runs;
  std::vector<unsigned char> wanted = hands_on;
  for (auto i = b.rest; i-- > 0;) {
    auto const& op = p.ops[i];
    bool needed = false;
    for (auto v : op.outputs) needed = needed || (wanted[v] && !there(v));
    if (!needed) continue;
    runs.push_back(i);
    for (auto v : op.inputs) wanted[v] = 1;
    for (auto const* list : {&op.inputs, &op.outputs})
      for (auto v : *list)
        if (last[v] == no_id) last[v] = i;
    detail::for_each_input(f, held, b, i, [&](std::uint32_t d) { o.again_reads.push_back(d); });
  }
  detail::sort_once(o.again_reads);
  bytes_t now = 0;
  for (auto r = runs.size(); r-- > 0;) {
    auto const& op = p.ops[runs[r]];
    out.again.push_back({action::compute, runs[r]});
    o.again_time += op.time;
    bytes_t twice = 0;
    for (auto v : op.outputs) (walk.is_saved(v) ? twice : now) += p.values[v].bytes;
    o.again_peak = std::max(o.again_peak, now + twice + op.workspace_bytes);
    for (auto const* list : {&op.inputs, &op.outputs})
      for (auto v : *list)
        if (last[v] == runs[r] && !there(v) && !hands_on[v])
          now -= p.values[v].bytes, out.again.push_back({action::drop, v});
  }
  out.forward = std::move(walk.forward), out.backward = std::move(walk.backward);
  return out;
}

/// What a graph of blocks chooses among: the answers, and behind them some with values away.
inline std::vector<graph_price> graph_prices_of(block_facts const& f, std::vector<unsigned char> const& held,
                                                block_problem const& b, std::vector<remat_answer> const& answers,
                                                std::vector<unsigned char> const& movable, int levels) {
  auto const price = [&](std::vector<block_step> const& steps) { return graph_price_of(f, held, b, steps); };
  auto const beats = [](graph_price const& x, graph_price const& y) {
    auto const &p = x.option, &q = y.option;
    return p.forward_time + p.backward_time <= q.forward_time + q.backward_time && x.moved <= y.moved &&
           p.again_time <= q.again_time && p.saved <= q.saved && p.forward_peak <= q.forward_peak &&
           p.backward_peak <= q.backward_peak && p.again_peak <= q.again_peak && p.again_reads == q.again_reads &&
           p.backward_reads == q.backward_reads;
  };
  return detail::prices_with_swaps(f, b, answers, movable, 0, levels, price, beats);
}

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
  std::string why_empty() const {
    if (least_data_ == SIZE_MAX) return "it has no blocks to choose between";
    return "between its blocks go " + std::to_string(least_data_) + " data, however it is cut; at most " +
           std::to_string(options_.max_data) + " are taken";
  }
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
  block_graph problem_at(double part) const {
    auto swapping = problem_;
    choose_options(swapping, {part, options_.link});
    return swapping;
  }

  /// What an answer comes to. Nothing where it needs what cannot run again.
  template <class G>
  std::optional<edited<G>> expand(block_graph_answer const& a) const {
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
    return std::move(to).template finish<G>();
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
  std::int64_t phase_of(op_id o) const {
    auto const n = static_cast<std::int64_t>(chain_.blocks.size());
    auto const k = chain_.block_of[o];
    if (k == block_chain::prologue_block) return -1;
    if (k == block_chain::epilogue_block) return 2 * n;
    return chain_.part[o] == step_part::forward ? k : 2 * n - 1 - k;
  }
  /// Storages that must not be forgotten, and those that are read behind all blocks, or by the backward of an earlier
  /// block than made them: they stay.
  void note_held() {
    leave_overwritten();
    auto const droppable = droppable_storages(g_, may_run_again_);
    held_.assign(g_.storage_count(), false);
    for (auto s : g_.storages()) {
      auto const maker = g_.producer(g_.record(s).first);
      held_[index(s)] = !droppable[index(s)] || chain_.block_of[maker] >= block_chain::prologue_block;
    }
    for (auto v : g_.values()) {
      auto const maker = g_.producer(g_.record(g_.storage(v)).first);
      if (!is_forward(maker)) continue;
      for (auto const& u : g_.uses(v)) {
        auto const k = chain_.block_of[u.op];
        if (k == block_chain::epilogue_block || k < chain_.block_of[maker]) held_[index(g_.storage(v))] = true;
      }
    }
  }
  /// Forward ops that read what an update overwrites before their own block's backward has run do not run again.
  void leave_overwritten() {
    if (!g_.has_updates()) return;
    table<storage_id, std::int64_t> written(g_.storage_count(), INT64_MAX);
    for (auto v : g_.values())
      if (g_.record(v).alias == alias_kind::update && !is_forward(g_.producer(v)))
        written[g_.storage(v)] = std::min(written[g_.storage(v)], phase_of(g_.producer(v)));
    auto const n = static_cast<std::int64_t>(chain_.blocks.size());
    for (auto o : g_.ops()) {
      if (!is_forward(o)) continue;
      for (auto v : g_.inputs(o))
        if (written[g_.storage(v)] < 2 * n - 1 - chain_.block_of[o]) may_run_again_[index(o)] = false;
    }
  }
  bool is_forward(op_id o) const {
    return o != nothing<op_id> && chain_.part[o] == step_part::forward &&
           chain_.block_of[o] < block_chain::prologue_block;
  }
  /// Data between blocks: a storage each, or `joined` all that one block makes and the same phases read, which are then
  /// held and dropped together. How many there are.
  std::size_t group_data(bool joined) {
    std::vector<std::vector<std::int64_t>> readers(g_.storage_count());
    for (auto v : g_.values())
      for (auto const& u : g_.uses(v)) readers[index(g_.storage(v))].push_back(phase_of(u.op));
    for (auto& list : readers) detail::sort_once(list);
    group_.assign(g_.storage_count(), no_id);
    std::uint32_t count = 0;
    for (auto const& b : chain_.blocks) {
      std::map<std::vector<std::int64_t>, std::uint32_t> alike;
      for (auto v : b.outputs) {
        auto const s = index(g_.storage(v));
        if (held_[s] || group_[s] != no_id) continue;
        group_[s] = joined ? alike.try_emplace(std::move(readers[s]), count).first->second : count;
        count += group_[s] == count;
      }
    }
    return count;
  }

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
  void connect() {
    std::vector<std::uint32_t> number(g_.storage_count(), no_id);  // by group
    auto const number_of = [&](storage_id s) -> std::uint32_t& { return number[group_[index(s)]]; };
    options_of_blocks_.resize(rows_.size());
    for (auto const& r : rows_) {
      auto const& m = models_[r.model];
      graph_block b{
          .pass_time = m.pass.time, .pass_peak = m.pass.temporary + m.posed.block.handed_on, .once_time = m.once_time};
      for (auto v : m.posed.block.problem.ops[m.posed.block.rest].inputs) {
        auto const& d = r.facts.data[m.posed.block.datum_of[v]];
        auto& n = number_of(d.storage);
        if (n == no_id) {
          n = static_cast<std::uint32_t>(storages_.size());
          storages_.emplace_back(), problem_.bytes.push_back(0);
          b.makes.push_back(n);
        }
        storages_[n].push_back(d.storage), problem_.bytes[n] += d.bytes;
      }
      auto const read = [&](std::vector<std::uint32_t> const& data) {
        std::vector<std::uint32_t> out;
        for (auto d : data) out.push_back(number_of(r.facts.data[d].storage));
        detail::sort_once(out);
        return out;
      };
      std::vector<std::uint32_t> inputs;
      for (std::uint32_t i = 0; i < m.posed.block.rest; ++i)
        detail::for_each_input(r.facts, m.posed.held, m.posed.block, i, [&](std::uint32_t d) { inputs.push_back(d); });
      b.reads = read(inputs);
      for (auto const& p : m.prices) {
        auto o = p.option;
        o.again_reads = read(o.again_reads), o.backward_reads = read(o.backward_reads);
        options_of_blocks_[problem_.blocks.size()].push_back(std::move(o));
      }
      problem_.blocks.push_back(std::move(b));
    }
  }

  void choose_options(block_graph& to, link_price const& price) const {
    to.move_time.clear();
    if (price.lets_move())
      for (auto const& list : storages_) {
        bytes_t bytes = 0;
        bool all = true;
        for (auto s : list) all = all && can_leave(g_, s), bytes += 2 * g_.bytes(s);
        to.move_time.push_back(all ? price.seconds(bytes) : -1);
      }
    for (std::size_t k = 0; k < rows_.size(); ++k)
      to.blocks[k].options =
          detail::options_at(models_[rows_[k].model].prices, price, [&](auto i) { return options_of_blocks_[k][i]; });
  }

  /// What is there whatever is done: sources, what is made before all blocks, what stays, gradients between blocks.
  void note_ground(bytes_t resident) {
    auto const phases = static_cast<std::int64_t>(2 * chain_.blocks.size());
    problem_.before.assign(static_cast<std::size_t>(phases), resident);
    problem_.during = problem_.before;
    std::vector<std::vector<std::int64_t>> touched(g_.storage_count());
    for (auto v : g_.values()) {
      auto& list = touched[index(g_.storage(v))];
      if (g_.producer(v) != nothing<op_id>) list.push_back(phase_of(g_.producer(v)));
      for (auto const& u : g_.uses(v)) {
        list.push_back(phase_of(u.op));
        // Who may run again may read it as late as in front of its own backward.
        if (is_forward(u.op) && may_run_again_[index(u.op)]) list.push_back(phases - 1 - phase_of(u.op));
      }
      if (g_.is_kept(v)) list.push_back(phases);
    }
    for (auto s : g_.storages()) {
      auto const& list = touched[index(s)];
      if (g_.is_resident(s) || list.empty()) continue;
      auto const maker = g_.producer(g_.record(s).first);
      if (is_forward(maker) && !held_[index(s)]) continue;  // of a block, or of the search
      auto const first = maker == nothing<op_id> ? -1 : phase_of(maker);
      auto const last = std::min(*std::max_element(list.begin(), list.end()), phases - 1);
      for (auto t = std::max<std::int64_t>(first, 0); t <= last; ++t) {
        auto const at = static_cast<std::size_t>(t);
        if (t > first) problem_.before[at] += g_.bytes(s);
        // Who makes a gradient counts it, and who reads it last.
        bool const counted = !held_[index(s)] && (t == first || t == last);
        if (!counted) problem_.during[at] += g_.bytes(s);
      }
    }
  }

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
