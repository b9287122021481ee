// The bodies of <neap/blocks/remat_branch_and_bound.hpp>.
#pragma once

#include <neap/blocks/remat_branch_and_bound.hpp>

#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/remat_prices.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/blocks/state_labels.hpp>
#include <neap/blocks/value_partners.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

template <std::size_t Words>
class remat_phases {
 public:
  using set = value_set<Words>;

  /// `settled` and `first_prices` as of remat_facts.
  remat_phases(remat_branch_and_bound const& how, remat_problem const& p, remat_limits const& limits,
               remat_settled<Words> const* settled = nullptr, std::vector<double> const* first_prices = nullptr)
      : how_(how),
        f_(p, limits, settled, first_prices),
        prices_(f_),
        partners_(f_),
        watch_(how.budget),
        places_(f_.ops, how.budget.work) {
    for (std::size_t t = 0; t < f_.ops; ++t) max_workspace_ = std::max(max_workspace_, f_.workspace[t]);
  }

  /// Sequences quicker than `known` (never: any); the best goes to `best_sequence`.
  void run(double known) {
    least_ = known;
    if (f_.hopeless || f_.save_room < 0 || (f_.ops == 0 && f_.room < 0)) {
      bound_ = f_.never;
      return;
    }
    bound_ = f_.rounded(f_.bound(0, f_.given()));
    if (f_.ops == 0) {
      least_ = std::min(least_, 0.0);
      return;
    }
    // First without ops that run ahead: those passes are quick, and seldom miss anything.
    ahead_ = false;
    for (std::size_t width = std::clamp<std::size_t>(how_.narrow, 1, how_.widest); bound_ < cut();) {
      pass(width);
      bound_ = std::max(bound_, std::min(f_.rounded(std::min(left_out_, skipped_)), least_));
      if (watch_.over() || (ahead_ && width >= how_.widest)) break;
      // With ops that run ahead there are more labels: a pass with too few of them would be in vain.
      if (!ahead_ && (left_out_ >= cut() || width >= how_.widest)) ahead_ = true;
      width = std::min(how_.widest, width * solver_policy::widening);
    }
    if (bound_ >= cut()) bound_ = least_;
  }
  bool found() const { return !best_sequence.empty(); }
  double least() const { return least_; }
  double bound() const { return bound_; }
  std::int64_t work() const { return watch_.work(); }

  std::vector<std::uint32_t> best_sequence;

 private:
  using label = state_label<Words>;
  using lack_of_values = typename remat_facts<Words>::lack;
  struct moment {
    set alive, ahead, idle, doomed;
    set dropped, asleep;  ///< in this phase; see choose()
    std::int64_t bytes = 0;
    double time = 0;
  };
  static constexpr std::int64_t hurried = solver_policy::hurried;
  struct trace {
    std::uint32_t parent, ops_at, ops_count;
  };

  /// Bounds from here on are of no use.
  double cut() const {
    if (!(least_ < f_.never)) return f_.never;
    return f_.quantum > 0 ? least_ - f_.quantum * (1 - 1e-6) : least_ * (1 - 1e-9);
  }

  /// One pass. left_out_ is the least bound among the labels that were left out, skipped_ that among ops that could
  /// have run ahead.
  void pass(std::size_t width) {
    width_ = width;
    ++pass_;
    left_out_ = skipped_ = f_.never;
    ops_.clear();
    std::vector<std::vector<trace>> traces(f_.ops + 1);
    std::vector<label> now(1), next;
    now[0].alive = f_.given();
    now[0].bound = bound_;
    for (t_ = 0; t_ < f_.ops; ++t_) {
      now_ = &now, next_ = &next;
      price_all();
      next.clear();
      index_.clear(1024);
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i].bound >= cut()) continue;
        if (watch_.over() && i >= static_cast<std::size_t>(hurried)) {
          left_out_ = std::min(left_out_, now[i].bound);
          continue;
        }
        from_ = static_cast<std::uint32_t>(i);
        from_bound_ = now[i].bound;
        expand(now[i]);
      }
      keep_best(next, width);
      auto& into = traces[t_ + 1];
      into.reserve(next.size());
      for (auto const& l : next) into.push_back({l.parent, l.ops_at, l.ops_count});
      std::swap(now, next);
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].time >= cut()) continue;
      least_ = now[i].time;
      best_sequence.clear();
      std::vector<std::uint32_t> reversed;
      auto at = static_cast<std::uint32_t>(i);
      for (std::size_t t = f_.ops; t > 0; --t) {
        auto const& step = traces[t][at];
        for (std::uint32_t k = step.ops_count; k-- > 0;) reversed.push_back(ops_[step.ops_at + k]);
        at = step.parent;
      }
      best_sequence.assign(reversed.rbegin(), reversed.rend());
    }
  }

  // ---- one label's phase
  // ----------------------------------------------------------------------------------------------
  void expand(label const& l) {
    run_now_.clear();
    nodes_ = 0;
    // In a narrow pass one label may not use up the budget.
    max_nodes_ =
        std::max(solver_policy::least_label_nodes, static_cast<std::int64_t>(width_) * solver_policy::nodes_a_width);
    moment m{l.alive, l.ahead, l.idle, l.doomed, {}, {}, f_.bytes_of(l.alive), l.time};
    // Where everything that could run would fit together, nothing need run ahead.
    set all = l.alive;
    for (std::size_t k = 0; k <= t_; ++k)
      if (k == t_ || (f_.again[k] && all.holds(f_.inputs[k]))) all |= f_.outputs[k];
    roomy_ = f_.bytes_of(all) + max_workspace_ <= f_.room;
    if (static_cast<std::int64_t>(t_) == f_.pause && f_.save_room < remat_limits::none / 2) roomy_ = false;
    walk(0, m);
  }

  /// Counts a node; true where this label may have no more of them. When the budget is spent, a pass hurries to its end
  /// with a few labels and nodes, so that what it has found so far becomes an answer.
  bool spent() {
    if (++nodes_ <= (watch_.spend() ? hurried : max_nodes_)) return false;
    left_out_ = std::min(left_out_, from_bound_);
    return true;
  }

  /// Ops from `i` on are to come in this phase.
  void walk(std::size_t i, moment const& m) {
    if (spent()) return;
    if (i > 0 && places_.seen({m.alive, m.ahead, m.asleep, m.time, pass_, static_cast<std::uint32_t>(t_),
                               static_cast<std::uint32_t>(i)}))
      return;
    auto const lack = f_.lack_of(t_, m.alive);
    if (m.time + f_.to_go[t_] + lack.time >= cut()) return;
    // What op t lacks, and what that lacks. pinned: read by an op that must still run in this phase.
    set lacking = f_.reads[t_] - m.alive, pinned = f_.reads[t_];
    std::size_t first = t_;
    while (!lacking.empty()) {
      auto const v = lacking.highest();
      if (f_.maker[v] < static_cast<std::int32_t>(i) || f_.maker[v] < 0) return;
      auto const k = static_cast<std::size_t>(f_.maker[v]);
      if (!f_.again[k]) return;
      first = k;
      lacking -= f_.outputs[k];
      lacking |= f_.inputs[k] - m.alive;
      pinned |= f_.inputs[k];
    }
    set waiting = how_.run_late ? m.ahead : set{};
    auto const could_wait = [&](std::size_t k) {
      if (!waiting.meets(f_.outputs[k])) return false;
      return m.alive.holds(f_.inputs[k]) && m.bytes + f_.workspace[k] <= f_.room;
    };
    std::size_t end = i;  // ops from here on would pass one that could wait until now
    while (end < first && !could_wait(end)) ++end;
    if (end == first) run_op(first, m, lack, pinned, false);
    if (roomy_) return;
    for (std::size_t k = i; k < end; ++k) {
      if (!f_.again[k] || !m.alive.holds(f_.inputs[k])) continue;
      set const fresh = f_.outputs[k] - m.alive;
      if (!fresh.meets(f_.useful[t_]) || (how_.run_late && partners_.in_vain(k, t_, m.alive, m.idle))) continue;
      // What is made is paid for, whatever is dropped for it.
      auto with = f_.lack_of(t_, m.alive | fresh);
      with.time += f_.time[k];
      with.coming = fresh;
      double const least = m.time + f_.to_go[t_] + with.time;
      if (!ahead_) skipped_ = std::min(skipped_, least);
      else if (least < cut()) run_op(k, m, with, pinned, true);
    }
  }

  void run_op(std::size_t k, moment const& m, lack_of_values const& lack, set const& pinned, bool ahead) {
    set const fresh = f_.outputs[k] - m.alive;
    std::int64_t const over = m.bytes + f_.bytes_of(fresh) + f_.workspace[k] - f_.room;
    if (over > 0) {
      set may = m.alive - f_.inputs[k] - f_.outputs[k];
      set never_again;
      (may & pinned).for_each([&](std::size_t v) {
        if (f_.maker[v] <= static_cast<std::int32_t>(k) || !f_.again[static_cast<std::size_t>(f_.maker[v])])
          never_again.set(v);
      });
      may -= never_again | m.asleep;
      drop(may, over, f_.bytes, t_, m, lack, [&](moment const& less) { after_drops(k, less, fresh, ahead); });
    } else {
      after_drops(k, m, fresh, ahead);
    }
  }
  void after_drops(std::size_t k, moment m, set const& fresh, bool ahead) {
    m.alive |= fresh;
    m.bytes += f_.bytes_of(fresh);
    m.time += f_.time[k];
    partners_.note_run(k, k == t_, fresh, m.idle, m.doomed);
    if (m.dropped.meets(fresh)) m.asleep = {};
    else m.asleep -= k == t_ ? f_.reads[k] : f_.inputs[k];
    if (m.ahead.meets(f_.inputs[k])) m.ahead -= f_.inputs[k];
    if (ahead && f_.time[k] > 0 && fresh.count() == 1 && fresh == f_.outputs[k]) m.ahead |= fresh;
    if (ahead && how_.drop_beaten && begun_better(*now_, m.alive, m.ahead - fresh, m.time)) return;
    run_now_.push_back(static_cast<std::uint32_t>(k));
    if (k == t_) end_phase(m);
    else walk(k + 1, m);
    run_now_.pop_back();
  }
  void end_phase(moment m) {
    set const gone = m.alive - f_.useful[t_ + 1];
    if (how_.run_late && (gone.meets(m.ahead) || (m.ahead & m.doomed).meets(partners_.lone))) return;  // made in vain
    bool vain = false;
    gone.for_each([&](std::size_t v) { vain = vain || !may_drop(v, m); });
    if (vain) return;
    gone.for_each([&](std::size_t v) { partners_.note_drop(v, m.alive, m.idle, m.doomed); });
    m.alive -= gone;
    if (static_cast<std::int64_t>(t_) == f_.pause) {
      std::int64_t over = -f_.save_room;
      m.alive.for_each([&](std::size_t v) { over += f_.saved[v]; });
      if (over > 0) {
        m.bytes = f_.bytes_of(m.alive);
        drop(m.alive, over, f_.saved, t_ + 1, m, f_.lack_of(t_ + 1, m.alive), [&](moment const& less) { emit(less); });
        return;
      }
    }
    emit(m);
  }

  /// Calls `then` with every smallest set of members of `may` dropped that together have `over` units of `weight`;
  /// `phase` is the next to run. Cheap ones first: by penalty a unit, as dear_ has it.
  ///
  /// What is dropped now and what is dropped later in the phase can often change places: a value that is kept now,
  /// while a dearer one goes that is no larger, is asleep: it may not go before it is read, or what went is made again.
  struct candidate {
    std::uint32_t value;
    std::int64_t weight;
    double dear;  ///< penalty a unit
  };
  using candidates = std::array<candidate, 64 * Words>;
  template <class Then>
  void drop(set const& may, std::int64_t over, std::vector<std::int64_t> const& weight, std::size_t phase,
            moment const& m, lack_of_values const& lack, Then&& then) {
    candidates order;
    std::size_t n = 0;
    std::int64_t rest = 0;
    for (auto const& c : dear_) {
      if (!may.test(c.value)) continue;
      order[n++] = c;
      rest += c.weight;
    }
    if (&weight != &f_.bytes) {
      rest = 0;
      for (std::size_t k = 0; k < n; ++k) rest += order[k].weight = weight[order[k].value];
      std::size_t kept = 0;
      for (std::size_t k = 0; k < n; ++k)
        if (order[k].weight > 0) order[kept++] = price(order[k].value, order[k].weight, phase);
      n = kept;
      std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), cheaper);
    }
    choose(order.data(), order.data() + n, over, rest, std::numeric_limits<std::int64_t>::max(), phase, m, {}, lack,
           then);
  }
  bool may_drop(std::size_t v, moment const& m) const { return !how_.run_late || partners_.may_drop(v, m.doomed); }
  candidate price(std::size_t v, std::int64_t weight, std::size_t phase) const {
    double const penalty = f_.due[phase].test(v) ? f_.penalty[phase * f_.values + v] : 0;
    return {static_cast<std::uint32_t>(v), weight, penalty / static_cast<double>(weight)};
  }
  static bool cheaper(candidate const& a, candidate const& b) {
    return a.dear != b.dear ? a.dear < b.dear : a.value < b.value;
  }
  void price_all() {
    dear_.clear();
    for (std::size_t v = 0; v < f_.values; ++v)
      if (f_.bytes[v] > 0) dear_.push_back(price(v, f_.bytes[v], t_));
    std::sort(dear_.begin(), dear_.end(), cheaper);
  }
  template <class Then>
  void choose(candidate const* at, candidate const* end, std::int64_t over, std::int64_t rest, std::int64_t smallest,
              std::size_t phase, moment const& m, set kept, lack_of_values const& lack, Then&& then) {
    if (over <= 0) {
      if (over + smallest > 0) then(m);  // else a smaller set will do
      return;
    }
    if (over > rest) return;
    // At least what the cheapest units cost.
    double least = m.time + f_.to_go[phase] + lack.time;
    std::int64_t left = over;
    for (auto c = at; left > 0 && c->dear < f_.never; left -= c->weight, ++c)
      least += c->dear * static_cast<double>(std::min(left, c->weight));
    if (least >= cut() || spent()) return;
    auto const v = at->value;
    if (!(how_.run_late && m.ahead.test(v)) && may_drop(v, m)) {  // else it was made ahead, and not read
      moment less = m;
      partners_.note_drop(v, less.alive, less.idle, less.doomed);
      less.dropped.set(v);
      less.asleep |= kept & partners_.no_smaller[v];
      less.alive.reset(v);
      less.bytes -= f_.bytes[v];
      auto lacks = lack;
      if (lack.wanted.test(v)) {
        set gone;
        gone.set(v);
        f_.lose(phase, less.alive, lacks, gone);
      }
      choose(at + 1, end, over - at->weight, rest - at->weight, std::min(smallest, at->weight), phase, less, kept,
             lacks, then);
    }
    if (how_.run_late) kept.set(v);
    choose(at + 1, end, over, rest - at->weight, smallest, phase, m, kept, lack, then);
  }

  // ---- labels of the next phase
  // -----------------------------------------------------------------------------------------
  void emit(moment const& m) {
    set const ahead = m.ahead & m.alive;
    auto& slot = index_.find(*next_, m.alive);
    if (slot != 0 && (*next_)[slot - 1].time <= m.time) {
      label& old = (*next_)[slot - 1];
      if (m.time > old.time) return;
      old.ahead &= ahead;
      old.idle |= m.idle,
          old.doomed |= m.doomed;  // what is proved of one way to a state holds of all that are as quick
      return;
    }
    double const bound = m.time + f_.bound(t_ + 1, m.alive);
    if (bound >= cut()) return;
    if (slot == 0) {
      next_->push_back({m.alive, ahead, m.idle, m.doomed, m.time, bound, from_, put_ops(),
                        static_cast<std::uint32_t>(run_now_.size()), false});
      slot = static_cast<std::uint32_t>(next_->size());
      if (next_->size() * 2 > index_.size()) {
        if (next_->size() > 8 * width_ + 4096) keep_best(*next_, 2 * width_);
        index_.clear(std::max<std::size_t>(1024, next_->size() * 4));
        for (std::size_t i = 0; i < next_->size(); ++i)
          index_.find(*next_, (*next_)[i].alive) = static_cast<std::uint32_t>(i + 1);
      }
      return;
    }
    label& old = (*next_)[slot - 1];
    double const to_go = std::max(bound - m.time, old.bound - old.time);  // both hold
    old = {m.alive,   ahead,     m.idle,
           m.doomed,  m.time,    m.time + to_go,
           from_,     put_ops(), static_cast<std::uint32_t>(run_now_.size()),
           old.raised};
  }
  std::uint32_t put_ops() {
    auto const at = static_cast<std::uint32_t>(ops_.size());
    ops_.insert(ops_.end(), run_now_.begin(), run_now_.end());
    return at;
  }
  /// The best `width` labels, in order of their bounds, without those that are beaten.
  void keep_best(std::vector<label>& labels, std::size_t width) {
    std::size_t const phase = t_ + 1;
    std::sort(labels.begin(), labels.end(), label::better);
    std::size_t n = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i].bound >= cut()) break;
      if (how_.drop_beaten && beaten(labels, n, labels[i])) continue;
      if (!labels[i].raised && how_.reprice > 0 && cut() < f_.never) {
        auto& l = labels[i];
        l.bound = std::max(l.bound, l.time + prices_.raise(f_, phase, l.alive, cut() - l.time, how_.reprice));
        l.raised = true;
        if (l.bound >= cut()) continue;
      }
      if (n == width) {
        left_out_ = std::min(left_out_, labels[i].bound);
        break;
      }
      if (n != i) labels[n] = labels[i];
      ++n;
    }
    labels.resize(n);
  }
  remat_branch_and_bound how_;
  remat_facts<Words> f_;
  remat_prices<Words> prices_;
  value_partners<Words> partners_;
  budget_watch watch_;
  std::int64_t max_workspace_ = 0, nodes_ = 0, max_nodes_ = 0;
  double least_ = 0, bound_ = 0, left_out_ = 0, skipped_ = 0, from_bound_ = 0;
  std::size_t t_ = 0, width_ = 0;
  std::uint32_t from_ = 0, pass_ = 0;
  reached_places<Words> places_;
  bool roomy_ = false, ahead_ = false;
  std::vector<std::uint32_t> run_now_;  ///< ops of the phase so far
  std::vector<std::uint32_t> ops_;      ///< of all labels of this pass
  label_index index_;
  std::vector<candidate> dear_;  ///< what takes bytes, by penalty a byte in this phase
  std::vector<label>*now_ = nullptr, *next_ = nullptr;
};

template <std::size_t Words>
remat_answer branch_and_bound(remat_branch_and_bound const& how, remat_problem const& p, remat_limits const& limits,
                              remat_answer const& known) {
  remat_phases<Words> search(how, p, limits);
  search.run(has_steps(known) ? known.time : std::numeric_limits<double>::infinity());
  remat_answer a;
  if (search.found() || (p.ops.empty() && search.bound() <= 0)) a = answer_of(p, search.best_sequence);
  else if (has_steps(known)) a = known;
  a.work = search.work();
  if (has_steps(a)) {
    a.lower_bound = std::min(a.time, std::max(search.bound(), has_steps(known) ? known.lower_bound : 0));
    a.status = a.lower_bound >= a.time * (1 - 1e-12) ? remat_status::optimal : remat_status::feasible;
  } else {
    a.lower_bound = search.bound();
    a.status = search.bound() < std::numeric_limits<double>::infinity() ? remat_status::budget_spent
                                                                        : remat_status::infeasible;
  }
  return a;
}

}  // namespace detail

NEAP_FUNC remat_answer remat_branch_and_bound::improve(remat_problem const& p, remat_limits const& limits,
                                                       remat_answer const& known) const {
  if (auto const wrong = detail::refused(p)) return *wrong;
  remat_answer found = known;
  bool const small = detail::with_values(
      p, max_values, [&](auto words) { found = detail::branch_and_bound<words>(*this, p, limits, known); });
  if (!small && !has_steps(found)) found.lower_bound = time_once(p);
  return found;
}

}}  // namespace neap::v0
