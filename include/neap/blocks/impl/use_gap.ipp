// The bodies of <neap/blocks/use_gap.hpp>.
#pragma once

#include <neap/blocks/use_gap.hpp>

#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/blocks/use_intervals.hpp>
#include <neap/core/philox.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/core/work_meter.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

template <std::size_t Words>
class gap_search {
 public:
  using set = value_set<Words>;

  gap_search(use_gap const& how, remat_problem const& p, std::span<remat_limits const> limits)
      : problem_(p),
        limits_(limits),
        f_(p, {}),
        watch_(how.budget),
        draw_(how.seed),
        budget_(how.budget) {
    ground_ = remat_limits::none - f_.room;
    saved_ground_ = remat_limits::none - f_.save_room;
    held_.resize(f_.ops + 1);
    held_[f_.ops] = f_.useful[f_.ops];  // what is kept
    phases_.resize(f_.ops);
    make_gaps();
    best_.resize(limits.size());
    for (auto const& l : limits) {
      remat_facts<Words> const facts(p, l);
      bounds_.push_back(facts.hopeless ? f_.never : facts.rounded(facts.bound(0, held_[0])));
    }
    for (double t : f_.time) time_once_ += t;
    std::int64_t bytes = 1;
    for (auto b : f_.bytes) bytes += b;
    dearness_ = solver_policy::byte_price * time_once_ / static_cast<double>(bytes);
  }

  void run(remat_answer const& known) {
    evaluate_all();
    note();
    if (has_steps(known)) {
      restore(gaps_of(known));
      note();
    }
    if (gaps_.empty()) return;
    // The widest limits first: each search starts from what the last one found.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < limits_.size(); ++i)
      if (bounds_[i] < f_.never) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      auto const &x = limits_[a], &y = limits_[b];
      return x.peak_bytes != y.peak_bytes ? x.peak_bytes > y.peak_bytes : x.saved_bytes > y.saved_bytes;
    });
    if (order.empty()) return;
    // Several rounds: short ones first, so that a budget that ends early leaves an answer everywhere.
    std::int64_t const each = std::max<std::int64_t>(1, budget_.work / static_cast<std::int64_t>(order.size()));
    std::int64_t length = std::clamp(solver_policy::moves_a_gap * static_cast<std::int64_t>(gaps_.size()),
                                     solver_policy::least_moves, solver_policy::max_moves);
    for (std::int64_t used = 0; !watch_.over() && used < each; used += length, length *= 2)
      for (auto i : order) {
        if (solved(i)) continue;
        anneal(i, std::max<std::int64_t>(1, std::min(length, each - used)));
        if (watch_.over()) break;
      }
  }

  remat_answer answer(std::size_t i) {
    remat_answer a;
    if (best_[i].found) {
      restore(best_[i].gaps);
      std::vector<std::uint32_t> sequence;
      for (std::size_t t = 0; t < f_.ops; ++t) phase_cost(t, &sequence);
      a = answer_of(problem_, sequence);
      a.lower_bound = std::min(bounds_[i], a.time);
      if (a.lower_bound >= a.time * (1 - 1e-12)) a.status = remat_status::optimal;
    } else {
      a.lower_bound = bounds_[i];
      if (!(bounds_[i] < f_.never)) a.status = remat_status::infeasible;
    }
    a.work = watch_.work();
    return a;
  }

 private:
  using ends = interval_ends;
  struct cost {
    double time = 0;
    std::int64_t peak = 0;
  };
  struct incumbent {
    bool found = false;
    double time = 0;
    std::vector<ends> gaps;
  };

  /// Gaps with a choice; those of values that cannot be made again are held for good.
  void make_gaps() {
    std::vector<std::int64_t> last(f_.values, -1);
    for (std::size_t v = 0; v < f_.values; ++v)
      if (f_.maker[v] < 0 && f_.useful[0].test(v)) held_[0].set(v);
    auto const add = [&](std::size_t v, std::size_t to, bool end) {
      bool const lasting = !(f_.cost[v] < f_.never);
      // At first everything is held; after the last use, what cannot be made again.
      if (!end || lasting)
        for (auto t = last[v] + 1; t <= static_cast<std::int64_t>(to); ++t) held_[static_cast<std::size_t>(t)].set(v);
      if (lasting && !end) return;
      auto const from = static_cast<std::uint32_t>(last[v]), until = static_cast<std::uint32_t>(to);
      gaps_.push_back({static_cast<std::uint32_t>(v), from, until, end});
      ends_.push_back(lasting ? ends{until, until} : ends{from, from});
    };
    for (std::size_t t = 0; t < f_.ops; ++t) {
      f_.reads[t].for_each([&](std::size_t v) {
        add(v, t, false);
        last[v] = static_cast<std::int64_t>(t);
      });
      f_.outputs[t].for_each([&](std::size_t v) { last[v] = static_cast<std::int64_t>(t); });
    }
    for (std::size_t v = 0; v < f_.values; ++v) {
      std::size_t end = f_.ops;  // the last phase in which it is of any use
      while (end > 0 && !f_.useful[end - 1].test(v)) --end;
      if (last[v] >= 0 && end > static_cast<std::size_t>(last[v]) + 1) add(v, end - 1, true);
    }
  }

  /// The gaps of an answer; what is held in the middle of one only is forgotten.
  std::vector<ends> gaps_of(remat_answer const& known) const {
    auto const held = f_.alive_by_phase(known.steps, held_[0]);
    std::vector<ends> out;
    for (auto const& g : gaps_) {
      ends e{g.from, g.to};
      while (e.until < g.to && held[e.until + 1].test(g.value)) ++e.until;
      while (e.since > e.until && held[e.since].test(g.value)) --e.since;
      out.push_back(g.last ? ends{e.until, e.until} : e);
    }
    return out;
  }

  /// Time and peak of one phase, from what is held into it and out of it; appends its ops.
  cost phase_cost(std::size_t t, std::vector<std::uint32_t>* sequence = nullptr) {
    set const &in = held_[t], &out = held_[t + 1];
    run_.clear();
    run_.push_back(static_cast<std::uint32_t>(t));
    set lacking = (f_.reads[t] | (out - f_.outputs[t])) - in;
    cost c{f_.time[t], 0};
    while (!lacking.empty()) {
      auto const v = lacking.highest();
      if (!(f_.cost[v] < f_.never)) return {f_.never, 0};  // it is gone for good
      auto const k = static_cast<std::size_t>(f_.maker[v]);
      lacking -= f_.outputs[k];
      lacking |= f_.inputs[k] - in;
      run_.push_back(static_cast<std::uint32_t>(k));
      c.time += f_.time[k];
    }
    work_meter::add(30 + 60 * run_.size());
    set alive = out;
    std::int64_t bytes = f_.bytes_of(alive);
    for (auto k : run_) {  // from the last op to the first
      set const& reads = k == t ? f_.reads[k] : f_.inputs[k];
      bytes += f_.bytes_of((f_.outputs[k] | reads) - alive);
      c.peak = std::max(c.peak, bytes + f_.workspace[k]);
      bytes -= f_.bytes_of(f_.outputs[k]);
      alive |= reads;
      alive -= f_.outputs[k];
    }
    c.peak += ground_;
    if (sequence) sequence->insert(sequence->end(), run_.rbegin(), run_.rend());
    return c;
  }

  void evaluate_all() {
    for (std::size_t t = 0; t < f_.ops; ++t) phases_[t] = phase_cost(t);
    sum_up();
  }
  void sum_up() {
    time_ = 0, peak_ = ground_;
    for (auto const& c : phases_) time_ += c.time, peak_ = std::max(peak_, c.peak);
    saved_ = 0;
    if (f_.pause < 0) return;
    saved_ = saved_ground_;
    held_[static_cast<std::size_t>(f_.pause) + 1].for_each([&](std::size_t v) { saved_ += f_.saved[v]; });
  }
  /// Sets a gap and counts the phases that it touches again.
  void set_ends(std::size_t g, ends now) {
    use_interval const& where = gaps_[g];
    auto const old = ends_[g];
    std::int64_t counted = -1;
    ends_[g] = now;
    before_.clear();
    auto const count = [&](std::uint32_t t) {
      before_.push_back({t, phases_[t]});
      phases_[t] = phase_cost(t);
    };
    for (std::uint32_t t = where.from + 1; t <= where.to; ++t) {
      bool const was = holds(where, old, t), is = holds(where, now, t);
      if (was == is) continue;
      if (is) held_[t].set(where.value);
      else held_[t].reset(where.value);
    }
    for (std::uint32_t t = where.from + 1; t <= where.to; ++t) {
      if (holds(where, old, t) == holds(where, now, t)) continue;
      if (counted < t - std::int64_t{1}) count(t - 1);
      count(t);
      counted = t;
    }
    sum_up();
  }
  /// Takes the last set_ends() back.
  void undo(std::size_t g, ends old) {
    use_interval const& where = gaps_[g];
    ends_[g] = old;
    for (std::uint32_t t = where.from + 1; t <= where.to; ++t) {
      if (holds(where, old, t)) held_[t].set(where.value);
      else held_[t].reset(where.value);
    }
    for (auto const& [t, c] : before_) phases_[t] = c;
    sum_up();
  }
  void restore(std::vector<ends> const& all) {
    for (std::size_t g = 0; g < gaps_.size(); ++g)
      if (!(ends_[g] == all[g])) set_ends(g, all[g]);
  }

  bool solved(std::size_t i) const { return best_[i].found && best_[i].time <= bounds_[i] * (1 + 1e-12); }
  /// Holds the state against all limits.
  void note() {
    if (!(time_ < f_.never)) return;
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      if (peak_ > limits_[i].peak_bytes || saved_ > limits_[i].saved_bytes) continue;
      if (best_[i].found && best_[i].time <= time_) continue;
      best_[i] = {true, time_, ends_};
    }
  }
  /// Time, and bytes over the limits at a price.
  double score(std::size_t i) const {
    auto over = static_cast<double>(std::max<std::int64_t>(0, saved_ - limits_[i].saved_bytes));
    for (auto const& c : phases_)
      over += static_cast<double>(std::max<std::int64_t>(0, c.peak - limits_[i].peak_bytes));
    return time_ + dearness_ * over;
  }

  void anneal(std::size_t i, std::int64_t moves) {
    if (best_[i].found) restore(best_[i].gaps);
    double now = score(i);
    cooling heat(time_once_ / static_cast<double>(f_.ops) * solver_policy::hot, solver_policy::coldest, moves);
    std::vector<std::uint32_t> high;  // phases over the limit
    for (std::int64_t m = 0; m < moves && !watch_.spend() && !solved(i); ++m, heat.step()) {
      // Half of the moves while something is over: a gap across a phase that is over.
      std::size_t g = draw_.below(static_cast<std::uint32_t>(gaps_.size()));
      if (draw_.below(2) == 0) {
        high.clear();
        for (std::uint32_t t = 0; t < f_.ops; ++t)
          if (phases_[t].peak > limits_[i].peak_bytes) high.push_back(t);
        if (!high.empty()) {
          auto const t = high[draw_.below(static_cast<std::uint32_t>(high.size()))];
          for (int tries = 0; tries < solver_policy::aims; ++tries) {
            if (gaps_[g].from < t && t <= gaps_[g].to && held_[t].test(gaps_[g].value)) break;
            g = draw_.below(static_cast<std::uint32_t>(gaps_.size()));
          }
        }
      }
      ends const old = ends_[g];
      ends const next = moved(gaps_[g], old, draw_);
      if (next == old) continue;
      set_ends(g, next);
      double const then = score(i);
      if (time_ < best_time_anywhere()) note();
      if (heat.accepts(now, then, draw_)) now = then;
      else undo(g, old);
    }
  }
  /// Times from which on nothing can be better for any limits.
  double best_time_anywhere() const {
    double most = 0;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      if (!(bounds_[i] < f_.never)) continue;
      if (!best_[i].found) return f_.never;
      most = std::max(most, best_[i].time);
    }
    return most;
  }
  remat_problem const& problem_;
  std::span<remat_limits const> limits_;
  remat_facts<Words> f_;
  budget_watch watch_;
  random_stream draw_;
  remat_budget budget_;
  std::int64_t ground_ = 0, saved_ground_ = 0;
  std::vector<use_interval> gaps_;
  std::vector<ends> ends_;
  std::vector<set> held_;  ///< by phase: alive when it begins
  std::vector<cost> phases_;
  std::vector<std::pair<std::uint32_t, cost>> before_;
  std::vector<incumbent> best_;
  std::vector<double> bounds_;
  std::vector<std::uint32_t> run_;
  double time_ = 0, time_once_ = 0, dearness_ = 0;
  std::int64_t peak_ = 0, saved_ = 0;
};

template <std::size_t Words>
std::vector<remat_answer> search_gaps(use_gap const& how, remat_problem const& p, std::span<remat_limits const> limits,
                                      remat_answer const& known) {
  gap_search<Words> search(how, p, limits);
  search.run(known);
  std::vector<remat_answer> out;
  for (std::size_t i = 0; i < limits.size(); ++i) out.push_back(search.answer(i));
  return out;
}

}  // namespace detail

NEAP_FUNC std::vector<remat_answer> use_gap::search(remat_problem const& p, std::span<remat_limits const> limits,
                                                    remat_answer const& known) const {
  if (auto const wrong = detail::refused(p)) return std::vector<remat_answer>(limits.size(), *wrong);
  std::vector<remat_answer> out(limits.size());
  bool const small = detail::with_values(
      p, max_remat_values, [&](auto words) { out = detail::search_gaps<words>(*this, p, limits, known); });
  if (!small)
    for (auto& a : out) a.lower_bound = time_once(p);
  return out;
}

NEAP_FUNC remat_answer use_gap::improve(remat_problem const& p, remat_limits const& limits,
                                        remat_answer const& known) const {
  auto a = search(p, std::span(&limits, 1), known).front();
  if (!has_steps(known) || a.status == remat_status::infeasible) return a;
  double const bound = std::max(a.lower_bound, known.lower_bound);
  auto const work = a.work;
  if (!has_steps(a) || a.time >= known.time) a = known;
  a.work = work;
  a.lower_bound = std::min(bound, a.time);
  a.status = a.lower_bound >= a.time * (1 - 1e-12) ? remat_status::optimal : remat_status::feasible;
  return a;
}

}}  // namespace neap::v0
