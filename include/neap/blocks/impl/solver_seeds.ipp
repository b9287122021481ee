// The bodies of <neap/blocks/solver_seeds.hpp>.
#pragma once

#include <neap/blocks/solver_seeds.hpp>

#include <neap/blocks/graph_solver.hpp>
#include <neap/blocks/grouped_remat.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/schedule/memory_greedy.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// How many pieces of so many seconds fit into some work; at least one.
NEAP_FUNC std::int64_t pieces_within(double work, double seconds) {
  return static_cast<std::int64_t>(std::clamp(work / seconds, 1.0, 1e15));
}

/// Of a chain's front, by the number of its point, what meets a goal.
class front_search {
 public:
  /// `alone`: what is found is the answer; more is tried.
  front_search(chain_solver const& chain, char const* name, objective const& goal, start_judge& judge, bool alone,
               search_policy::solver_numbers const& numbers)
      : numbers_(numbers),
        chain_(chain),
        name_(name),
        goal_(goal),
        judge_(judge),
        alone_(alone) {}

  /// What meets the goal best; nothing if nothing meets it. `keep`: that, and some that nearly meet it, are worth
  /// dives.
  std::optional<plan_cost> run(bool keep) {
    // Along the front the peak rises and time falls, nearly: the last point that meets a limit of memory, the first
    // that meets one of time, by halves; then once more what is around it.
    auto at = halve(0, chain_.front().size());
    if (!goal_.limits_memory || !best_) {
      at = find_lowest();
      if (goal_.limits_memory && best_) at = halve(at + 1, next_seen(at));
    }
    auto const from = at > 0 ? at - 1 : 0;
    for (std::size_t k = from; keep && k < from + numbers_.around && k < chain_.front().size() && !judge_.stop(); ++k) {
      auto const v = judge_point(k);
      if (v && v->latency <= goal_.latency && v->peak_bytes <= max_peak()) judge_.keep();
    }
    if (alone_ && goal_.limits_memory && best_) look_around();
    return best_;
  }

 private:
  struct point {
    std::size_t k;
    bytes_t peak;
  };

  /// The first point from `low` on that misses the limit of memory, or meets that of time, as far as that is monotone.
  /// Without limits the first point.
  std::size_t halve(std::size_t low, std::size_t high) {
    while (low < high && !judge_.stop()) {
      auto const middle = low + (high - low) / 2;
      auto const v = judge_point(middle);
      bool const up = goal_.limits_memory    ? v && v->peak_bytes <= goal_.memory
                      : goal_.limits_latency ? !v || v->latency > goal_.latency
                                             : false;
      if (up) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  /// The peak does not rise with each point, nor does time fall: what halving has passed over may meet the limit, too,
  /// and be quicker.
  void look_around() {
    auto const& front = chain_.front();
    std::size_t const most = chain_.moves_values() ? numbers_.more_with_swaps : numbers_.more;
    // Points are looked at up to where the budget is a tenth larger, so many of them, and so from each that is better.
    for (auto from = front.size(); from != best_k_ && !judge_.stop();) {
      from = best_k_;
      auto end = from + 1;
      while (end < front.size() &&
             front[end].budget <= front[from].budget + ratio_of(numbers_.larger, front[from].budget))
        ++end;
      auto const step = std::max<std::size_t>((end - from) / most, 1);
      for (auto k = from + step; k < front.size() && k <= from + most * step && !judge_.stop(); k += step)
        judge_point(k);
    }
    for (auto k = best_k_, last = k - std::min(k, most / 2); k-- > last && !judge_.stop();) judge_point(k);
  }
  /// Towards the least budgets the peak may rise again: what they recompute holds more than the model knows of. The
  /// point with the lowest peak in time, between its neighbours of those that were seen; ends with what meets a limit
  /// of memory.
  std::size_t find_lowest() {
    if (seen_.empty()) return 0;
    auto const lowest = [&] {
      return std::min_element(seen_.begin(), seen_.end(), [](point a, point b) { return a.peak < b.peak; });
    };
    for (int tries = 0; tries < numbers_.lowest_tries && !judge_.stop() && !(goal_.limits_memory && best_); ++tries) {
      auto const m = lowest();
      auto const before = m == seen_.begin() ? m->k : std::prev(m)->k, behind = next_seen(m->k);
      if (m->k - before <= 1 && behind - m->k <= 1) break;
      bool const down = m->k - before > behind - m->k;
      auto const known = seen_.size();
      judge_point(down ? before + (m->k - before) / 2 : m->k + (behind - m->k) / 2);
      if (seen_.size() == known) break;  // not in time: the next would be the same
    }
    return lowest()->k;
  }
  /// The next point behind one that was seen, too, and is in time; the front's end if there is none.
  std::size_t next_seen(std::size_t k) const {
    for (auto const& p : seen_)
      if (p.k > k) return p.k;
    return chain_.front().size();
  }

  /// Of candidates that are worth a dive.
  bytes_t max_peak() const {
    return goal_.limits_memory ? goal_.memory + ratio_of(numbers_.near_ratio, goal_.memory) : goal_.memory;
  }
  std::optional<plan_cost> judge_point(std::size_t k) {
    for (auto const& [at, v] : judged_)
      if (alone_ && at == k) return v;
    auto const& on_front = chain_.front()[k];
    auto e = chain_.expand(on_front.budget);
    if (!e) return std::nullopt;
    bytes_t const budget = on_front.budget * chain_.slot_bytes();
    auto how = name_ + (" for " + std::to_string(budget) + " bytes of its own");
    auto const v = judge_.judge(std::move(e->graph), std::move(e->order), std::move(how));
    judged_.emplace_back(k, v);
    if (goal_.fits(v) && (!best_ || goal_.better(v, *best_))) best_ = v, best_k_ = k;
    if (v.latency <= goal_.latency)
      seen_.insert(std::find_if(seen_.begin(), seen_.end(), [&](point p) { return p.k >= k; }), {k, v.peak_bytes});
    return v;
  }

  search_policy::solver_numbers const& numbers_;
  chain_solver const& chain_;
  char const* name_;
  objective const& goal_;
  start_judge& judge_;
  bool alone_;
  std::optional<plan_cost> best_;
  std::size_t best_k_ = 0;
  std::vector<point> seen_;  // of those in time, by number
  std::vector<std::pair<std::size_t, plan_cost>> judged_;
};

/// Of a graph of blocks, by the peak that the solver is to keep, what meets a goal. The solver's peak is not the
/// simulator's: its limit moves by what the last answer was off.
class graph_search {
 public:
  /// `changes` are left to `search`, of all its runs; without any it gives what it has. Answers slower than `best` are
  /// not looked for.
  graph_search(graph_solver const& blocks, option_gaps& search, std::int64_t& changes, objective const& goal,
               seconds_t best, start_judge& judge, search_policy::solver_numbers const& numbers)
      : numbers_(numbers),
        blocks_(blocks),
        search_(search),
        changes_(changes),
        goal_(goal),
        best_(best),
        judge_(judge) {}

  void run() {
    if (goal_.limits_memory) meet_memory();
    else meet_latency();
  }
  /// The same of a solver that stands alone. With half of the work, limits are searched for that are the same whatever
  /// is asked for, and of what is known then the quickest answer that meets the limit of memory is taken: a larger
  /// limit has no slower one. The rest is for the limit itself. `below`: what was nearest to limits out of reach, where
  /// these have been searched for already.
  void run_alone(std::optional<std::vector<block_graph_answer>>& below) {
    if (!goal_.limits_memory) return meet_latency();
    if (!below) search_all_limits(below.emplace());
    bool const fits = take_quickest(*below);
    meet_memory(!fits);
  }

 private:
  struct told {
    bytes_t peak;  // by the solver's model
    plan_cost is;
  };
  /// Of a try.
  std::int64_t max_changes() const { return numbers_.changes_a_choice * static_cast<std::int64_t>(search_.choices()); }
  /// What is found within a limit, or else the smallest that is known.
  std::optional<told> try_limit(bytes_t limit, double price_factor = 1) {
    auto const work = std::min({ratio_of(numbers_.change_share, changes_), max_changes(),
                                pieces_within(judge_.work_left(), numbers_.seconds_a_change)});
    changes_ -= work;
    auto a = search_.solve(limit, {.work = work, .seconds = judge_.seconds_left()}, price_factor);
    return told_of(a ? a : search_.best(search_.front().front().first));
  }
  std::optional<told> told_of(std::optional<block_graph_answer> const& a) {
    if (!a) return std::nullopt;
    auto e = blocks_.expand(*a);
    if (!e) return std::nullopt;
    return told{a->peak, judge_.judge(std::move(e->graph), std::move(e->order),
                                      "graph of blocks for " + std::to_string(a->peak) + " bytes of its own")};
  }
  /// `all`: tries are not given up while nothing fits; bytes over the limit grow dearer.
  void meet_memory(bool all = false) {
    bytes_t limit = goal_.memory, low = 0, high = remat_limits::none;  // limits that led within it, and above
    seconds_t best = best_;
    double price_factor = 1;
    int failures = 0;
    for (int tries = 0; tries < numbers_.graph_tries && (all || failures < 2) && !judge_.stop(); ++tries) {
      auto const t = try_limit(limit, price_factor);
      if (!t) return;
      bool const within = t->is.peak_bytes <= goal_.memory;
      if (goal_.fits(t->is)) all = false;
      if (within || t->peak > limit) failures += t->is.latency > numbers_.slower * best ? 2 : 1;
      if (t->is.latency <= best && t->is.peak_bytes <= goal_.memory + ratio_of(numbers_.near_ratio, goal_.memory)) {
        judge_.keep();
        if (within && t->is.latency < best * numbers_.quicker) failures = 0;
        if (within) best = t->is.latency;
      }
      price_factor =
          all && t->peak > limit ? std::min(numbers_.price_growth * price_factor, numbers_.max_price_factor) : 1;
      if (t->peak > limit) continue;
      (within ? low : high) = within ? std::max(low, limit) : std::min(high, limit);
      if (high < remat_limits::none && high - low < ratio_of(numbers_.tolerance, goal_.memory)) return;
      auto const next = (within ? limit : t->peak) + goal_.memory - t->is.peak_bytes;
      limit = next > low && next < high ? next : high < remat_limits::none ? low + (high - low) / 2 : low + low / 32;
    }
  }
  /// From what is largest downwards, as far as there are answers; then for the smallest, and once more down to it, the
  /// nearer to it the more of them; and below: a limit starts from what the ones before have found. What is nearest to
  /// a limit that is out of reach has the same peak as others, but a simulator finds less.
  void search_all_limits(std::vector<block_graph_answer>& below) {
    auto const coarse = numbers_.coarse, deep = numbers_.deep, fine = numbers_.fine, beyond = numbers_.beyond;
    auto const price_factor = numbers_.price_growth;
    auto left = coarse + deep + fine + beyond, rest = changes_ / 2;
    changes_ -= rest;
    auto const each = max_changes();
    auto const budget = [&] {
      auto const work =
          std::min({changes_ / left, each,
                    pieces_within(judge_.work_left() / static_cast<double>(left), numbers_.seconds_a_change)});
      changes_ -= work, --left;
      return remat_budget{.work = work, .seconds = judge_.seconds_left()};
    };
    auto const largest = search_.front().back().first;
    for (auto k = coarse; k > 0 && !judge_.stop(); --k)
      if (!search_.solve(largest / (coarse + 1) * k, budget())) break;
    left = deep + fine + beyond;
    auto const smallest = [&] { return search_.front().front().first; };
    for (auto k = deep; k > 0 && !judge_.stop(); --k) search_.solve(smallest() / 32 * 31, budget(), price_factor);
    for (auto k = fine; k > 0 && !judge_.stop(); --k)
      search_.solve(smallest() + (largest - smallest()) / (fine * fine) * ((k - 1) * (k - 1)), budget(),
                    k <= numbers_.near_smallest ? price_factor : 1);
    for (auto k = beyond; k > 0 && !judge_.stop(); --k)
      below.push_back(search_.approach(smallest() / (beyond + 1) * k, budget()));
    changes_ += rest;  // for the given limit
  }
  /// From the quickest on until one meets the limit, of those that differ in their peak; then those that it has
  /// passed over. Whether one does.
  bool take_quickest(std::vector<block_graph_answer> const& below) {
    auto const step = numbers_.equal_ratio;
    auto const known = search_.front();
    bool found = false;
    auto const judge = [&](std::optional<block_graph_answer> const& a) {
      auto const t = told_of(a);
      bool const fits = t && goal_.fits(t->is);
      found = found || fits;
      return fits;
    };
    auto const meets = [&](std::size_t k) { return judge(search_.best(known[k].first)); };
    auto k = known.size();
    for (bytes_t last = INT64_MAX; k-- > 0 && !judge_.stop();) {
      if (k > 0 && last - ratio_of(step, last) < known[k].first) continue;
      if (meets(k)) break;
      last = known[k].first;
    }
    for (auto at = k + 1; k != SIZE_MAX && at < known.size(); ++at)
      if (!judge_.stop() && known[at].first - ratio_of(step, known[at].first) < known[k].first) (void)meets(at);
    for (auto const& a : below)
      if (!judge_.stop()) judge(a);
    return found;
  }
  void meet_latency() {
    // Without a limit the smallest peak is wanted: below what is known, while that falls.
    auto const smallest = [&] { return search_.front().front().first; };
    bytes_t low = 0, high = goal_.limits_latency ? search_.front().back().first : smallest();
    int failures = 0;
    for (int tries = 0; tries < numbers_.graph_tries && failures < 2 &&
                        high - low > ratio_of(numbers_.latency_tolerance, high) && !judge_.stop();
         ++tries) {
      auto const before = smallest();
      auto const limit = low + (high - low) / 3 * 2;  // downwards: a try starts from what the one before has found
      auto const t = try_limit(limit);
      if (!t) return;
      bool const quick = t->is.latency <= goal_.latency;
      if (quick) judge_.keep();
      failures = goal_.limits_latency || smallest() < before ? 0 : failures + 1;
      (quick && t->peak <= limit ? high : low) = limit;
    }
  }

  search_policy::solver_numbers const& numbers_;
  graph_solver const& blocks_;
  option_gaps& search_;
  std::int64_t& changes_;
  objective const& goal_;
  seconds_t best_;
  start_judge& judge_;
};

/// Solves blocks of up to so many values, while there is time.
struct timed_gaps {
  start_judge const& judge;
  std::int64_t work;  // evaluations a block
  std::size_t max_values;
  std::int64_t of_value;  // and for each value of a block at most so many
  search_policy::block_numbers const& numbers;
  std::vector<remat_answer> operator()(remat_problem const& p, std::span<remat_limits const> limits) const {
    if (p.values.size() > max_values || judge.stop()) return {};
    auto const enough = of_value * static_cast<std::int64_t>(p.values.size());
    auto const share = numbers.share_of_block * judge.work_left();
    auto const most = std::min({work, enough, pieces_within(share, numbers.seconds_an_evaluation)});
    return in_groups{use_gap{{.work = most, .seconds = judge.seconds_left()}}}.front(p, limits);
  }
};

/// The same by a program, one limit after the other, each with its share of the seconds and of the work that is left.
struct timed_program {
  start_judge const& judge;
  block_program const& program;
  std::size_t max_values;
  std::vector<remat_answer> operator()(remat_problem const& p, std::span<remat_limits const> limits) const {
    std::vector<remat_answer> answers;
    if (p.values.size() > max_values) return answers;
    for (std::size_t k = 0; k < limits.size() && !judge.stop(); ++k)
      answers.push_back(program(
          p, limits[k], std::min(judge.seconds_left(), judge.work_left()) / static_cast<double>(limits.size() - k)));
    return answers;
  }
};

class solver_starts final : public starting_points {
 public:
  solver_starts(solver_choice const& which, block_program const& program, start_from const& from)
      : which_(which),
        program_(program),
        from_(from) {
    auto const most = std::min(from.candidates, blocks_.max_candidates);
    which_.work = std::min(which_.work, blocks_.work_a_candidate * static_cast<std::int64_t>(most + 1));
  }

  void run(objective const& goal, start_judge& judge) override {
    auto best = search_chains(layers_, of_layers, goal, judge);
    auto const search_smaller = [&] {
      if (!judge.stop() && cuts_smaller()) keep_better(best, search_chains(smaller_, {}, goal, judge), goal);
    };
    bool const last = from_.alone && best && goal.limits_memory;
    if (!best || !goal.limits_memory) search_smaller();
    if (which_.hierarchy && (layers_.is_no_chain() || smaller_.is_no_chain()) && !judge.stop()) {
      if (!graph_) make_graph(judge);
      if (!graph_->empty()) {
        if (!gaps_) gaps_ = std::make_unique<option_gaps>(graph_->problem()), changes_ = blocks_.changes * which_.work;
        graph_search of_graph(*graph_, *gaps_, changes_, goal, best ? best->latency : goal.latency, judge, numbers_);
        if (from_.alone) of_graph.run_alone(below_);
        else of_graph.run();
        search_graph_swaps(goal, judge);
      }
      judge.pause();
    }
    if (last) search_smaller();
    if (which_.checkmate && program_)
      search(
          whole_, "checkmate by program", goal, judge, true,
          [&] {
            return make(timed_program{judge, program_, which_.max_values},
                        {.slots = blocks_.slots_of_whole, .levels = {0, blocks_.levels_of_program}, .one_block = true});
          },
          which_.max_values);
    else if (which_.checkmate)
      search(
          whole_, "checkmate", goal, judge, true,
          [&] {
            return make(gaps(judge, which_.work, which_.max_values),
                        {.slots = blocks_.slots_of_whole, .levels = {0, blocks_.levels_of_whole}, .one_block = true});
          },
          which_.max_values);
    judge.pause();
  }

 private:
  using chain = std::unique_ptr<chain_solver>;
  struct chains {  // of the same blocks
    chain rotor, blocks;
    bool is_no_chain() const { return blocks && !blocks->is_chain(); }
  };

  /// Keeps the better of what meets a goal; whether that is the one found.
  static bool keep_better(std::optional<plan_cost>& best, std::optional<plan_cost> const& found,
                          objective const& goal) {
    bool const better = found && (!best || goal.better(*found, *best));
    if (better) best = found;
    return better;
  }
  /// What meets the goal best; the quickest to make first, so that there is an answer soon.
  std::optional<plan_cost> search_chains(chains& of, cut_options const& cut, objective const& goal,
                                         start_judge& judge) {
    std::optional<plan_cost> best;
    if (which_.rotor) {
      best = search(of.rotor, "rotor", goal, judge, !which_.hierarchy, [&] {
        return make(
            plain_blocks{},
            {.slots = which_.hierarchy ? blocks_.slots_beside_options : blocks_.slots, .levels = {0, 0}, .cut = cut});
      });
      judge.pause();
    }
    if (which_.hierarchy) {
      auto const found = search(of.blocks, "options of blocks", goal, judge, true, [&] {
        return make(gaps(judge, share_of_block(of.rotor)), {.slots = blocks_.slots, .link = link(), .cut = cut});
      });
      keep_better(best, found, goal);
      search_swaps(of.blocks, best, goal, judge);
      judge.pause();
    }
    return best;
  }
  /// Whether blocks that are cut smaller are others.
  bool cuts_smaller() {
    if (!(which_.rotor || which_.hierarchy) || basis().empty()) return false;
    auto const& nodes = basis().simplified;
    return cut_blocks(from_.graph, nodes) != cut_blocks(from_.graph, nodes, of_layers);
  }
  template <class Make>
  std::optional<plan_cost> search(chain& c, char const* name, objective const& goal, start_judge& judge, bool keep,
                                  Make const& made, std::size_t max_values = SIZE_MAX) {
    if (judge.stop()) return std::nullopt;
    if (!c) c = made();
    else c->swap_nothing();
    if (c->max_values() > max_values) return std::nullopt;  // that was not solved
    return front_search(*c, name, goal, judge, from_.alone, numbers_).run(keep);
  }
  /// The same blocks with values that leave, at some prices of the link, as long as that finds better ones than `best`.
  void search_swaps(chain& blocks, std::optional<plan_cost> best, objective const& goal, start_judge& judge) {
    if (!blocks || blocks->empty() || !blocks->can_swap()) return;
    bool found = false;
    for (double const part : blocks_.prices_of_link) {
      if (judge.stop()) break;
      blocks->swap_at(part);
      auto const v =
          front_search(*blocks, "options of blocks, with swaps,", goal, judge, from_.alone, numbers_).run(true);
      bool const better = keep_better(best, v, goal);
      if (!better && found && !from_.alone) break;
      found = found || better;
    }
  }
  /// The same of a graph of blocks, at one price.
  void search_graph_swaps(objective const& goal, start_judge& judge) {
    if (!graph_->can_swap() || judge.stop()) return;
    if (!swapping_gaps_) {
      swapping_ = graph_->problem_at(blocks_.prices_of_link[0]);
      swapping_gaps_ = std::make_unique<option_gaps>(swapping_);
    }
    graph_search with_swaps(*graph_, *swapping_gaps_, changes_, goal, goal.latency, judge, numbers_);
    if (from_.alone) with_swaps.run_alone(swapping_below_);
    else with_swaps.run();
  }
  double link() const { return from_.no_swaps ? 0 : which_.link > 0 ? which_.link : from_.swap; }
  template <class S>
  chain make(S const& solver, chain_solver_options const& options) {
    return std::make_unique<chain_solver>(from_.graph, from_.order, basis(), from_.may_run_again, solver, options);
  }
  block_basis const& basis() {
    if (!basis_) basis_ = basis_of(from_.graph, from_.order, from_.result);
    return *basis_;
  }
  void make_graph(start_judge& judge) {
    auto const made = [&](schedule const& order, block_basis const& as) {
      return std::make_unique<graph_solver>(
          from_.graph, order, as, from_.result.resident_bytes, from_.may_run_again,
          gaps(judge, share_of_block(layers_.rotor), SIZE_MAX, blocks_.evaluations_a_value_of_graphs),
          graph_solver_options{.link = link(), .join_data = from_.alone});
    };
    order_ = from_.order;
    if (has_backward_end(from_.graph)) {
      graph_ = made(order_, basis());
      if (graph_->is_step()) return;
    }
    // Without a forward and a backward part blocks follow the order: a good one is worth much.
    simulation in_order;
    auto const at = positions(order_);
    order_ = memory_greedy{}(from_.graph);
    for (auto o : order_) {
      in_order.start.push_back(from_.result.start[at[o]]);
      in_order.end.push_back(from_.result.end[at[o]]);
    }
    graph_ = made(order_, basis_of(from_.graph, order_, in_order));
  }
  timed_gaps gaps(start_judge const& judge, std::int64_t work, std::size_t max_values = SIZE_MAX) const {
    return gaps(judge, work, max_values, blocks_.evaluations_a_value);
  }
  timed_gaps gaps(start_judge const& judge, std::int64_t work, std::size_t max_values, std::int64_t of_value) const {
    return {judge, work, max_values, of_value, blocks_};
  }
  /// Of the work; there are so many blocks at least, or, where that is not known yet, likely.
  std::int64_t share_of_block(chain const& rotor) const {
    return which_.work / (rotor ? std::max(static_cast<std::int64_t>(rotor->solved_blocks()), blocks_.least_blocks)
                                : blocks_.likely_blocks);
  }
  solver_choice which_;
  block_program program_;
  start_from from_;
  search_policy::solver_numbers const& numbers_ = from_.policy.solvers;
  search_policy::block_numbers const& blocks_ = from_.policy.blocks;
  std::optional<block_basis> basis_;  // of the order that is started from
  static constexpr cut_options of_layers = chain_solver_options{}.cut;
  chains layers_, smaller_;  // a layer is a block, where it is not too large; blocks of fewer nodes
  chain whole_;
  schedule order_;  // of graph_
  std::unique_ptr<graph_solver> graph_;
  block_graph swapping_;                               // its problem with swaps
  std::unique_ptr<option_gaps> gaps_, swapping_gaps_;  // of its problem, and of that
  std::optional<std::vector<block_graph_answer>> below_, swapping_below_;
  std::int64_t changes_ = 0;  // that are left to it; they cost less than evaluations of gaps
};

}  // namespace detail

NEAP_FUNC status can_solve(op_graph const& g, schedule const& order, solver_choice const& which) {
  plain_vector<bool> const any(g.op_count(), true);
  simulation no_time;
  no_time.start.resize(order.size()), no_time.end.resize(order.size());
  auto const basis = basis_of(g, order, no_time);
  auto const blocks = [&](bool one) {
    return chain_solver(g, order, basis, any, plain_blocks{},
                        {.slots = 1, .levels = {0, 0}, .one_block = one, .cut = {}});
  };
  if (which.checkmate) {
    auto const one = blocks(true);
    if (one.empty()) return failure{"its forward and backward parts cannot be distinguished"};
    if (one.max_values() > which.max_values)
      return failure{"as one block it has " + std::to_string(one.max_values()) + " values, at most " +
                     std::to_string(which.max_values) + " are taken"};
  }
  if (which.rotor && blocks(false).empty())
    return failure{"it has no chain of blocks with a forward and a backward part"};
  if (which.hierarchy && blocks(false).empty())
    if (graph_solver const of_graph(g, order, basis, 0, any, plain_blocks{}, {.join_data = true}); of_graph.empty())
      return failure{of_graph.why_empty()};
  return {};
}

NEAP_FUNC std::shared_ptr<search_starts const> solver_seeds(solver_choice const& which, block_program const& program) {
  struct starts final : search_starts {
    solver_choice which;
    block_program program;
    starts(solver_choice const& w, block_program const& p) : which(w), program(p) {}
    std::unique_ptr<starting_points> begin(start_from const& from) const override {
      return std::make_unique<detail::solver_starts>(which, program, from);
    }
  };
  return std::make_shared<starts const>(which, program);
}

}}  // namespace neap::v0
