// A remat_problem as masks and tables for searches over sets of values, and the bound that they share.
//
// Values are numbered anew by the op that makes them, inputs first, so that the highest bit of a set is the latest made.
// Inputs that are kept are always there: they are no members of any set, but bytes of the ground.
//
// The bound. A value is read by ops u1 < u2 < ... in their phases. Between two of these moments it is either held
// throughout or made again, which costs at least its op's time. While op t runs for the first time, what is held across
// t, besides t's own inputs and outputs, must fit into the rest. That is a linear program over one number a gap; its
// Lagrange multipliers (a price a byte and phase) are found once, and give for every phase and every set of living values
// a bound that takes a few additions: MOCCASIN's intervals, relaxed. blocks/remat_prices.hpp finds them again for a state.
#pragma once

#include <neap/blocks/remat_budget.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A set of at most 64 * Words values.
template <std::size_t Words>
struct value_set {
  std::array<std::uint64_t, Words> words{};

  constexpr bool test(std::size_t v) const { return words[v / 64] >> (v % 64) & 1; }
  constexpr void set(std::size_t v) { words[v / 64] |= std::uint64_t{1} << (v % 64); }
  constexpr void reset(std::size_t v) { words[v / 64] &= ~(std::uint64_t{1} << (v % 64)); }
  constexpr bool empty() const {
    for (auto w : words)
      if (w) return false;
    return true;
  }
  constexpr std::size_t count() const {
    std::size_t n = 0;
    for (auto w : words) n += static_cast<std::size_t>(std::popcount(w));
    return n;
  }
  /// The highest member of a set that is not empty.
  constexpr std::size_t highest() const {
    for (std::size_t i = Words; i-- > 0;)
      if (words[i]) return i * 64 + 63 - static_cast<std::size_t>(std::countl_zero(words[i]));
    return 0;
  }
  constexpr bool holds(value_set const& o) const {
    for (std::size_t i = 0; i < Words; ++i)
      if (o.words[i] & ~words[i]) return false;
    return true;
  }
  constexpr bool meets(value_set const& o) const {
    for (std::size_t i = 0; i < Words; ++i)
      if (o.words[i] & words[i]) return true;
    return false;
  }
  template <class F>
  constexpr void for_each(F&& f) const {
    for (std::size_t i = 0; i < Words; ++i)
      for (auto bits = words[i]; bits; bits &= bits - 1) f(i * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  constexpr value_set& operator|=(value_set const& o) {
    for (std::size_t i = 0; i < Words; ++i) words[i] |= o.words[i];
    return *this;
  }
  constexpr value_set& operator&=(value_set const& o) {
    for (std::size_t i = 0; i < Words; ++i) words[i] &= o.words[i];
    return *this;
  }
  constexpr value_set& operator-=(value_set const& o) {
    for (std::size_t i = 0; i < Words; ++i) words[i] &= ~o.words[i];
    return *this;
  }
  friend constexpr value_set operator|(value_set a, value_set const& b) { return a |= b; }
  friend constexpr value_set operator&(value_set a, value_set const& b) { return a &= b; }
  friend constexpr value_set operator-(value_set a, value_set const& b) { return a -= b; }
  friend constexpr bool operator==(value_set const& a, value_set const& b) {
    for (std::size_t i = 0; i < Words; ++i)
      if (a.words[i] != b.words[i]) return false;
    return true;
  }
};

/// A part of a block's answer that a search must keep: by phase, which values are settled, and which of them are alive
/// when it begins. Phases count from 0 to that after the last op; values as remat_facts numbers them.
template <std::size_t Words>
struct remat_settled {
  std::vector<value_set<Words>> values, alive;
};

template <std::size_t Words>
struct remat_facts {
  using set = value_set<Words>;
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// A value between two of its uses: held across the phases from `begins` up to that of op `to`, or made again.
  struct gap {
    std::size_t value, begins, to;
    bool paused;  ///< the pause lies within, and bytes saved in it are limited
  };

  std::size_t ops = 0, values = 0;
  std::int64_t room = 0;       ///< bytes for what is not on the ground
  std::int64_t save_room = 0;  ///< the same in the pause
  std::int64_t pause = -1;
  std::vector<double> time;
  std::vector<std::int64_t> workspace, bytes, saved;  ///< saved: bytes that count in the pause
  std::vector<char> again;
  std::vector<set> inputs, outputs;
  std::vector<set>
      reads;  ///< what must be alive when the op runs first: its inputs; for the last one also what is kept
  std::vector<std::uint32_t> number;  ///< of each value of the problem; no_producer: it is ground
  std::vector<std::int32_t> maker;    ///< of each value; -1: an input
  std::vector<double> cost;           ///< of each value: its part of the time of one more run of its op, or never
  std::vector<set> useful;            ///< by phase: what may be read from then on, be it for a recomputation
  double quantum = 0;                 ///< every sum of times is a multiple of this; 0: not known
  // The bound: to go from phase t, with everything alive, plus a penalty for each value due and missing.
  std::vector<double> to_go;
  std::vector<double> penalty;           ///< [phase * values + value]
  std::vector<double> sum;               ///< of the prices of all phases before
  std::vector<set> due;                  ///< by phase: made before, read later by an op's first run
  std::vector<std::uint32_t> next_read;  ///< [phase * values + value], of what is due: the op that reads it next
  bool hopeless = false;                 ///< some op alone passes the limit
  // What the bound is made of.
  std::vector<gap> gaps;               ///< by the op they lead to
  std::vector<std::size_t> first_gap;  ///< by phase: of those that lead to it or further
  std::vector<double> price;           ///< of a byte held across a phase; the last one: of a byte in the pause
  std::vector<double> spare;           ///< bytes beside those of the phase's own op; the last one: in the pause
  bool pausing = false;                ///< bytes saved in the pause are limited
  std::size_t paused = 0;              ///< the phase before the pause

  /// `settled`: a part of an answer to keep, or null. `first_prices`: of the block without it, to begin with, or null.
  remat_facts(remat_problem const& p, remat_limits const& limits, remat_settled<Words> const* settled = nullptr,
              std::vector<double> const* first_prices = nullptr);

  /// What is missing and must be made again, directly or for something else, and what that adds to the bound.
  struct lack {
    set missing, wanted;  ///< wanted: what is missing if it is not alive
    set coming;           ///< about to be alive
    double time = 0;
  };
  /// What is missing and is read by something missing as well must be there when that is made: it is then held up to its
  /// own next use, or made once more.
  lack lack_of(std::size_t t, set const& alive) const {
    lack l;
    l.wanted = due[t];
    std::array<std::uint32_t, 64 * Words> until;  // the phase by which a missing value must be there
    double const* const of_phase = penalty.data() + t * values;
    std::uint32_t const* const next = next_read.data() + t * values;
    set open = due[t] - alive;
    open.for_each([&](std::size_t v) { until[v] = next[v]; });
    while (!open.empty()) {
      auto const v = open.highest();
      open.reset(v);
      l.missing.set(v);
      auto const by = until[v];
      if (due[t].test(v)) {
        l.time += of_phase[v];
        if (by < next[v]) l.time += std::min(cost[v], static_cast<double>(bytes[v]) * (sum[next[v]] - sum[by]));
      } else {
        l.time += cost[v];
      }
      if (maker[v] < 0) return l;  // gone for good: the time is `never`
      auto const& reads_again = inputs[static_cast<std::size_t>(maker[v])];
      l.wanted |= reads_again;
      (reads_again - alive).for_each([&](std::size_t u) {
        until[u] = open.test(u) ? std::min(until[u], by) : by;
        open.set(u);
      });
    }
    return l;
  }
  /// The same with these values gone, which `alive` does not hold any more and which were wanted.
  void lose(std::size_t t, set const& alive, lack& l, set open) const {
    double const* const of_phase = penalty.data() + t * values;
    while (!open.empty()) {
      auto const v = open.highest();
      open.reset(v);
      l.missing.set(v);
      l.time += due[t].test(v) ? of_phase[v] : cost[v];
      if (maker[v] < 0) return;  // gone for good: the time is `never`
      auto const& reads_again = inputs[static_cast<std::size_t>(maker[v])];
      l.wanted |= reads_again;
      open |= reads_again - alive - l.missing - l.coming;
    }
  }
  /// Proved: from phase t on, with these values alive, no less time than this. `never` where something is lost.
  double bound(std::size_t t, set const& alive) const { return to_go[t] + lack_of(t, alive).time; }
  /// What is there before the first op and may be read.
  set given() const {
    set s;
    for (std::size_t v = 0; v < values && maker[v] < 0; ++v) s.set(v);
    return s & useful[0];
  }
  /// What steps have alive when each phase begins, and after the last one; `alive`: before the first. What is held in the
  /// middle of a phase only is left out.
  std::vector<set> alive_by_phase(std::vector<remat_step> const& steps, set alive) const {
    std::vector<set> out(ops + 1);
    std::size_t next = 0;
    bool begun = true;  // the phase
    for (auto const& step : steps) {
      if (step.what == remat_step::action::drop) {
        if (auto const v = number[step.index]; v != no_producer) alive.reset(v);
        continue;
      }
      if (begun) out[next] = alive;
      alive |= outputs[step.index];
      begun = step.index == next;
      next += begun;
    }
    out[ops] = alive;
    return out;
  }
  std::int64_t bytes_of(set const& s) const {
    std::int64_t all = 0;
    s.for_each([&](std::size_t v) { all += bytes[v]; });
    return all;
  }
  /// What the prices make of phase t: to_go[t], and the penalties of what is due.
  void write_tables(std::size_t t) {
    double all = 0;
    for (std::size_t k = t; k < ops; ++k) all += time[k] - price[k] * spare[k];
    if (pausing && t <= paused) all -= price[ops] * spare[ops];
    for (std::size_t k = first_gap[t]; k < gaps.size(); ++k) {
      auto const& g = gaps[k];
      double h = static_cast<double>(bytes[g.value]) * (sum[g.to] - sum[std::max(g.begins, t)]);
      if (g.paused && t <= paused) h += static_cast<double>(saved[g.value]) * price[ops];
      double const least = std::min(cost[g.value], h);
      all += least;
      if (g.begins > t) continue;
      penalty[t * values + g.value] = cost[g.value] - least;
      next_read[t * values + g.value] = static_cast<std::uint32_t>(g.to);
    }
    to_go[t] = all;
  }
  /// The next larger time that a sequence can take.
  double rounded(double at_least) const {
    if (quantum <= 0 || !(at_least < never)) return at_least;
    return std::ceil(at_least / quantum - 1e-6) * quantum;
  }

 private:
  void find_prices(std::vector<double> const* first_prices);
};

/// How many values a set must have room for.
inline std::size_t movable_values(remat_problem const& p) {
  auto const made_by = producers(p);
  std::size_t n = 0;
  for (std::size_t v = 0; v < p.values.size(); ++v) n += made_by[v] != no_producer || !p.values[v].kept;
  return n;
}

/// Calls search(words) with a constant number of words that has room for the problem's values; false if there are more
/// than `most`, at most max_remat_values.
template <class Search>
bool with_values(remat_problem const& p, std::size_t most, Search&& search) {
  auto const n = movable_values(p);
  if (n > most) return false;
  if (n <= 64) search(std::integral_constant<std::size_t, 1>{});
  else if (n <= 128) search(std::integral_constant<std::size_t, 2>{});
  else search(std::integral_constant<std::size_t, 4>{});
  return true;
}
/// The answer to a problem that check() refuses; nothing for others.
inline std::optional<remat_answer> refused(remat_problem const& p) {
  auto const ok = check(p);
  if (ok) return std::nullopt;
  remat_answer a;
  a.status = remat_status::infeasible;
  a.why = ok.message();
  return a;
}

template <std::size_t Words>
remat_facts<Words>::remat_facts(remat_problem const& p, remat_limits const& limits, remat_settled<Words> const* settled,
                                std::vector<double> const* first_prices)
    : ops(p.ops.size()),
      room(limits.peak_bytes),
      save_room(limits.saved_bytes),
      pause(p.pause_after),
      inputs(ops),
      outputs(ops),
      useful(ops + 1),
      due(ops + 1) {
  auto const made_by = producers(p);
  // Numbers: inputs of the block first, then by op. no_producer is -1 as a signed number.
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    if (made_by[v] != no_producer || !p.values[v].kept) {
      order.push_back(v);
      continue;
    }
    room -= p.values[v].bytes;
    if (!p.values[v].outside) save_room -= p.values[v].bytes;
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return static_cast<std::int32_t>(made_by[a]) < static_cast<std::int32_t>(made_by[b]);
  });
  values = order.size();
  number.assign(p.values.size(), no_producer);
  set kept;
  for (std::size_t i = 0; i < values; ++i) {
    auto const& v = p.values[order[i]];
    number[order[i]] = static_cast<std::uint32_t>(i);
    bytes.push_back(v.bytes);
    saved.push_back(v.outside ? 0 : v.bytes);
    maker.push_back(static_cast<std::int32_t>(made_by[order[i]]));
    if (v.kept) kept.set(i);
  }
  bool whole = true;
  for (std::size_t i = 0; i < ops; ++i) {
    auto const& op = p.ops[i];
    time.push_back(op.time);
    workspace.push_back(op.workspace_bytes);
    again.push_back(op.again);
    for (auto v : op.inputs)
      if (number[v] != no_producer) inputs[i].set(number[v]);
    for (auto v : op.outputs) outputs[i].set(number[v]);
    whole = whole && op.time == std::floor(op.time) && op.time < 1e12;
  }
  if (whole) {
    std::int64_t common = 0;
    for (double t : time) common = std::gcd(common, static_cast<std::int64_t>(t));
    quantum = static_cast<double>(common);
  }
  reads = inputs;
  if (ops > 0) reads[ops - 1] |= kept - outputs[ops - 1];
  // What must be alive after an op, and is not made by it, is alive while it runs.
  if (settled)
    for (std::size_t t = 0; t < ops; ++t) reads[t] |= (settled->values[t + 1] & settled->alive[t + 1]) - outputs[t];

  // What may be read from phase t on: by an op that has not run, or by one that runs again for something useful.
  for (std::size_t t = 0; t < ops; ++t) {
    for (std::size_t j = t; j < ops; ++j) useful[t] |= reads[j], due[t] |= reads[j];
    for (std::size_t j = t; j-- > 0;)
      if (again[j] && outputs[j].meets(useful[t])) useful[t] |= inputs[j];
    for (std::size_t j = t; j < ops; ++j) due[t] -= outputs[j], useful[t] -= outputs[j];
  }

  useful[ops] = due[ops] = kept;
  if (settled)
    for (std::size_t t = 0; t < ops; ++t) useful[t] -= settled->values[t] - settled->alive[t];

  cost.assign(values, never);
  for (std::size_t i = 0; i < ops; ++i) {
    if (!again[i]) continue;
    auto const shares = static_cast<double>(std::max<std::size_t>(1, outputs[i].count()));
    outputs[i].for_each([&](std::size_t v) { cost[v] = time[i] / shares; });
  }

  for (std::size_t i = 0; i < ops; ++i) hopeless = hopeless || bytes_of(reads[i] | outputs[i]) + workspace[i] > room;
  if (hopeless) return;

  for (std::size_t t = 0; t < ops; ++t)
    spare.push_back(
        static_cast<double>(std::min(room, std::int64_t{1} << 60) - bytes_of(reads[t] | outputs[t]) - workspace[t]));
  pausing = pause >= 0 && save_room < (std::int64_t{1} << 60);
  spare.push_back(pausing ? static_cast<double>(save_room) : 0);
  paused = static_cast<std::size_t>(std::max<std::int64_t>(pause, 0));

  // From the start means from phase 0 on, else phases strictly between the two ends count.
  std::vector<std::size_t> last(values, 0);
  std::vector<char> seen(values, 0);
  for (std::size_t i = 0; i < ops; ++i) {
    first_gap.push_back(gaps.size());
    reads[i].for_each([&](std::size_t v) {
      bool const first = !seen[v] && maker[v] < 0;
      gaps.push_back({v, first ? 0 : last[v] + 1, i, pausing && (first || last[v] <= paused) && paused < i});
      last[v] = i, seen[v] = true;
    });
    outputs[i].for_each([&](std::size_t v) { last[v] = i, seen[v] = true; });
  }
  first_gap.push_back(gaps.size());
  find_prices(first_prices);
}

/// Subgradient ascent on the prices, then the tables that the bound reads.
template <std::size_t Words>
void remat_facts<Words>::find_prices(std::vector<double> const* first_prices) {
  price.assign(ops + 1, 0);
  if (first_prices) price = *first_prices;
  std::vector<double> best = price, slack(ops + 1);
  sum.assign(ops + 1, 0);
  auto const holding = [&](gap const& g) {
    double h = static_cast<double>(bytes[g.value]) * (sum[g.to] - sum[g.begins]);
    if (g.paused) h += static_cast<double>(saved[g.value]) * price[ops];
    return h;
  };
  auto const add_up = [&] {
    for (std::size_t t = 0; t < ops; ++t) sum[t + 1] = sum[t] + price[t];
  };
  double total = 0;
  for (double t : time) total += t;
  double most = first_prices ? -never : 0, step = 1;  // prices of nothing prove nothing
  int dull = 0;
  std::vector<double> load(ops + 2);
  int const rounds = first_prices ? solver_policy::price_rounds_settled : solver_policy::price_rounds;
  for (int round = 0; round < rounds; ++round) {
    add_up();
    double value = 0;
    std::fill(load.begin(), load.end(), 0.0);
    double in_pause_bytes = 0;
    for (auto const& g : gaps) {
      if (g.begins >= g.to && !g.paused) continue;
      double const h = holding(g);
      if (h <= cost[g.value]) {
        value += h;
        load[g.begins] += static_cast<double>(bytes[g.value]);
        load[g.to] -= static_cast<double>(bytes[g.value]);
        if (g.paused) in_pause_bytes += static_cast<double>(saved[g.value]);
      } else {
        value += cost[g.value];
      }
    }
    double norm = 0, held = 0;
    for (std::size_t t = 0; t < ops; ++t) {
      held += load[t];
      value -= price[t] * spare[t];
      slack[t] = held - spare[t];
    }
    value -= price[ops] * spare[ops];
    slack[ops] = pausing ? in_pause_bytes - spare[ops] : 0;
    if (value > most + 1e-9 * (1 + std::abs(most))) most = value, best = price, dull = 0;
    else if (++dull > solver_policy::patience_block) step *= solver_policy::shrink, dull = 0, price = best;
    for (std::size_t t = 0; t <= ops; ++t) {
      if (slack[t] < 0 && price[t] <= 0) slack[t] = 0;
      norm += slack[t] * slack[t];
    }
    if (norm <= 0 || step < solver_policy::least_step) break;
    double const size = step * (solver_policy::aim_block * total + 1e-12) / norm;
    for (std::size_t t = 0; t <= ops; ++t) price[t] = std::max(0.0, price[t] + size * slack[t]);
  }
  price = best;
  add_up();
  to_go.assign(ops + 1, 0);
  penalty.assign((ops + 1) * values, 0);
  due[ops].for_each([&](std::size_t v) { penalty[ops * values + v] = never; });
  next_read.assign((ops + 1) * values, static_cast<std::uint32_t>(ops));
  for (std::size_t t = 0; t < ops; ++t) write_tables(t);
}

}}}  // namespace neap::v0::detail
