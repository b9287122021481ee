// Search over the use-gaps of a graph of blocks and over the blocks' options: one integer says which option a block runs
// with, one in which phase its forward is run to save (the first time or later), and two for each datum and each pair of
// its consecutive uses how long it is held after the one and from when on for the other, and a flag whether it has been
// moved out in between and is loaded there. What must run again follows.
//
//   phases      f0  f1  f2  f3 | b3  b2  b1  b0       block 1 passes in f1, and saves in the phase of b2
//   block 1         pass       |     save back
//
// As in use_gap.hpp a change touches the phases around its ends, and only these are counted again. Simulated annealing,
// deterministic by its seed. Everything that it comes by and that is quicker than all that is as small is kept, and a
// search for a limit starts from there: so one solver answers many limits, each from what the others have found.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/plan/block_graph.hpp>
#include <neap/solve/remat_branch_and_bound.hpp>
#include <neap/solve/remat_facts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace neap::inline v0 {

class option_gaps {
 public:
  static constexpr std::size_t most_data = 256;

  /// Of a graph that check() passes, with most_data data at most; outlives the solver.
  explicit option_gaps(block_graph const& g, std::uint64_t seed = 1)
      : g_(g),
        blocks_(static_cast<std::uint32_t>(g.blocks.size())),
        phases_count_(2 * blocks_),
        draw_(seed) {
    learn();
    begin();
  }

  /// The quickest answer found within a limit of the peak; nothing if none was. Work counts changes that are tried. A byte
  /// over the limit costs `dearer` times what it mostly does: near the smallest peak searches end above a limit otherwise.
  std::optional<block_graph_answer> solve(std::int64_t peak, remat_budget const& budget, double dearer = 1) {
    detail::stop_watch watch(budget);
    dearer_ = dearer;
    // A short round first: a budget that ends early leaves an answer. Then what cools slowest finds most.
    auto const first = std::min(budget.work, 100 * static_cast<std::int64_t>(choices()));
    anneal(peak, first, watch);
    if (first < budget.work && !watch.over()) anneal(peak, budget.work - first, watch);
    dearer_ = 1;
    return best(peak);
  }
  /// Towards a limit that no answer meets: what has the fewest bytes over it, summed over phases, at a price in time. From
  /// what the call before has found. Where the peak is that of one block whatever is done, other phases still fall.
  block_graph_answer approach(std::int64_t peak, remat_budget const& budget) {
    detail::stop_watch watch(budget);
    place nearest = nearest_ ? *nearest_ : known_.front().where;
    anneal(peak, budget.work, watch, &nearest);
    restore(nearest);
    nearest_ = std::move(nearest);
    return answer();
  }
  /// The quickest that is known within a limit.
  std::optional<block_graph_answer> best(std::int64_t peak) {
    auto const at = known_within(peak);
    if (at == nullptr) return std::nullopt;
    restore(at->where);
    return answer();
  }
  /// How many gaps and blocks there are to choose for.
  std::size_t choices() const { return gaps_.size() + blocks_; }
  /// Peak and time of what is known: each quicker and larger than the one before.
  std::vector<std::pair<std::int64_t, double>> front() const {
    std::vector<std::pair<std::int64_t, double>> out;
    for (auto const& k : known_) out.emplace_back(k.peak, k.time);
    return out;
  }

 private:
  using set = detail::value_set<most_data / 64>;
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct ends {
    std::uint32_t until = 0, since = 0;
    bool away = false;  // between them moved out, and loaded in phase `since`
    friend bool operator==(ends const&, ends const&) = default;
  };
  struct gap {
    std::uint32_t datum = 0, from = 0, to = 0;  // phases
    bool last = false;                          // behind the last use: readers of the datum may run again
  };
  struct way {
    std::uint32_t option = 0, since = 0;  // the phase whose forward saves
    friend bool operator==(way const&, way const&) = default;
  };
  struct cost {
    double time = 0;
    std::int64_t peak = 0;
  };
  struct place {
    std::vector<ends> gaps;
    std::vector<way> ways;
  };
  struct incumbent {
    std::int64_t peak;
    double time;
    place where;
  };
  struct change {
    bool of_gap;
    std::uint32_t index;
    ends gap;
    way block;
  };
  struct run {
    std::uint32_t block;
    block_graph_step::action what;
  };

  std::uint32_t back_of(std::uint32_t block) const { return phases_count_ - 1 - block; }
  std::uint32_t main_of(std::uint32_t phase) const { return phase < blocks_ ? phase : phases_count_ - 1 - phase; }

  void learn() {
    auto const as_set = [](std::vector<std::uint32_t> const& list) {
      set s;
      for (auto d : list) s.set(d);
      return s;
    };
    maker_.resize(g_.bytes.size());
    std::vector<std::vector<std::uint32_t>> uses(g_.bytes.size());
    std::int64_t bytes = 1;
    for (std::uint32_t k = 0; k < blocks_; ++k) {
      auto const& b = g_.blocks[k];
      reads_.push_back(as_set(b.reads)), makes_.push_back(as_set(b.makes));
      for (auto d : b.makes) maker_[d] = k, uses[d].push_back(k), bytes += g_.bytes[d];
      for (auto d : b.reads) uses[d].push_back(k);
      again_reads_.emplace_back(), backward_reads_.emplace_back();
      double quickest = never;
      std::int64_t saved = 0;
      for (auto const& o : b.options) {
        again_reads_[k].push_back(as_set(o.again_reads));
        backward_reads_[k].push_back(as_set(o.backward_reads));
        quickest = std::min(quickest, o.forward_time + o.backward_time);
        saved = std::max(saved, o.saved);
      }
      time_once_ += quickest, bytes += saved;
    }
    for (std::uint32_t k = blocks_; k-- > 0;) {
      set all;
      for (auto const& s : backward_reads_[k]) all |= s;
      all.for_each([&](std::size_t d) { uses[d].push_back(back_of(k)); });
    }
    for (std::uint32_t d = 0; d < uses.size(); ++d) {
      auto const& at = uses[d];
      for (std::size_t i = 1; i < at.size(); ++i) gaps_.push_back({d, at[i - 1], at[i]});
      // The first block that reads it runs again last, for its own backward.
      if (at.size() > 1 && at[1] < blocks_ && at.back() < back_of(at[1]))
        gaps_.push_back({d, at.back(), back_of(at[1]), true});
    }
    dearness_ = 4 * time_once_ / static_cast<double>(bytes);
  }
  /// Everything held and saved; and everything held, nothing saved that need not be.
  void begin() {
    held_.assign(phases_count_ + 1, {});
    held_bytes_.assign(phases_count_ + 1, 0);
    loaded_.assign(phases_count_, {});
    saved_at_.assign(phases_count_ + 1, 0);
    forced_.assign(phases_count_, {});
    dirty_.assign(phases_count_, 0);
    phases_.assign(phases_count_, {});
    ends_.assign(gaps_.size(), {});
    ways_.assign(blocks_, {});
    for (std::uint32_t i = 0; i < gaps_.size(); ++i)
      ends_[i] = {gaps_[i].from, gaps_[i].from}, put_gap(i, ends_[i], std::nullopt);
    for (std::uint32_t k = 0; k < blocks_; ++k) ways_[k] = {0, k}, take_block(k, true);
    for (std::uint32_t t = 0; t < phases_count_; ++t) phases_[t] = phase_cost(t);
    sum_up();
    note();
    for (bool late : {false, true}) {
      for (std::uint32_t k = 0; k < blocks_; ++k) {
        auto const last = static_cast<std::uint32_t>(g_.blocks[k].options.size() - 1);
        set_block(k, late ? way{0, back_of(k)} : way{last, k});
      }
      evaluate();
      note();
    }
  }

  static bool loads(gap const& g, ends const& e) { return e.away && !g.last && e.until < e.since; }
  static bool holds(gap const& g, ends const& e, std::uint32_t t) { return t <= e.until || (!g.last && t > e.since); }
  /// Makes `held_` follow; phases in which that changes something are dirty.
  void put_gap(std::uint32_t i, ends const& now, std::optional<ends> const& old) {
    auto const& g = gaps_[i];
    for (auto t = g.from + 1; t <= g.to; ++t) {
      bool const is = holds(g, now, t);
      if (old && holds(g, *old, t) == is) continue;
      if (is) held_[t].set(g.datum);
      else held_[t].reset(g.datum);
      if (is || old) held_bytes_[t] += is ? g_.bytes[g.datum] : -g_.bytes[g.datum];
      mark(t - 1);
      if (t < phases_count_) mark(t);
    }
    if (old && loads(g, *old)) loaded_[old->since].reset(g.datum), mark(old->since);
    if (loads(g, now)) loaded_[now.since].set(g.datum), mark(now.since);
  }
  void take_block(std::uint32_t k, bool in) {
    auto const& w = ways_[k];
    auto const saved = g_.blocks[k].options[w.option].saved;
    for (auto t = w.since + 1; t <= back_of(k); ++t) saved_at_[t] += in ? saved : -saved;
    auto& list = forced_[w.since];
    if (w.since == k) return;
    if (in) list.insert(std::lower_bound(list.begin(), list.end(), k), k);
    else list.erase(std::lower_bound(list.begin(), list.end(), k));
  }
  void put_block(std::uint32_t k, way const& now) {
    auto const old = ways_[k];
    take_block(k, false);
    ways_[k] = now;
    take_block(k, true);
    mark(k);
    for (auto t = std::min(old.since, now.since); t <= back_of(k); ++t) mark(t);
  }
  void mark(std::uint32_t t) {
    if (!dirty_[t]) dirty_[t] = 1, marked_.push_back(t);
  }

  // A move is a few changes, then evaluate(); roll_back() takes it back.
  void set_gap(std::uint32_t i, ends const& now) {
    if (ends_[i] == now) return;
    changes_.push_back({true, i, ends_[i], {}});
    put_gap(i, now, ends_[i]);
    ends_[i] = now;
  }
  void set_block(std::uint32_t k, way const& now) {
    if (ways_[k] == now) return;
    changes_.push_back({false, k, {}, ways_[k]});
    put_block(k, now);
  }
  void evaluate() {
    before_.clear();
    for (auto t : marked_) {
      before_.emplace_back(t, phases_[t]);
      phases_[t] = phase_cost(t);
      dirty_[t] = 0;
    }
    marked_.clear();
    sum_up();
  }
  void roll_back() {
    for (; !changes_.empty(); changes_.pop_back()) {
      auto const& c = changes_.back();
      if (c.of_gap) put_gap(c.index, c.gap, ends_[c.index]), ends_[c.index] = c.gap;
      else put_block(c.index, c.block);
    }
    for (auto t : marked_) dirty_[t] = 0;
    marked_.clear();
    for (auto const& [t, c] : before_) phases_[t] = c;
    sum_up();
  }
  void sum_up() {
    time_ = 0, peak_ = 0;
    for (auto const& c : phases_) time_ += c.time, peak_ = std::max(peak_, c.peak);
  }
  void restore(place const& p) {
    for (std::uint32_t i = 0; i < gaps_.size(); ++i) set_gap(i, p.gaps[i]);
    for (std::uint32_t k = 0; k < blocks_; ++k) set_block(k, p.ways[k]);
    evaluate();
    changes_.clear();
  }

  std::int64_t bytes_of(set const& s) const {
    std::int64_t sum = 0;
    s.for_each([&](std::size_t d) { sum += g_.bytes[d]; });
    return sum;
  }
  set const& reads_of(run const& r) const {
    return r.what == block_graph_step::action::again      ? again_reads_[r.block][ways_[r.block].option]
           : r.what == block_graph_step::action::backward ? backward_reads_[r.block][ways_[r.block].option]
                                                          : reads_[r.block];
  }

  /// Time and peak of a phase, from what is held into it and out of it; appends its steps.
  cost phase_cost(std::uint32_t t, std::vector<block_graph_step>* steps = nullptr) {
    using action = block_graph_step::action;
    auto const b = main_of(t);
    bool const back = t >= blocks_;
    auto const in = held_[t] | loaded_[t];
    auto const& out = held_[t + 1];
    run const main{b, back ? action::backward : ways_[b].since == t ? action::save : action::pass};
    runs_.clear();
    runs_.push_back(main);
    set lacking = (reads_of(main) | (back ? out : out - makes_[b])) - in;
    auto const& forced = forced_[t];
    auto next = forced.size();
    auto saved = saved_at_[t];
    while (next > 0 || !lacking.empty()) {
      auto k = lacking.empty() ? 0 : maker_[lacking.highest()];
      action what = action::pass;
      if (next > 0 && (lacking.empty() || forced[next - 1] >= k)) {
        k = forced[--next];
        what = action::save;
        saved += g_.blocks[k].options[ways_[k].option].saved;
      } else if (ways_[k].since < t && t <= back_of(k)) {
        what = action::again;
      }
      runs_.push_back({k, what});
      lacking -= makes_[k];
      lacking |= reads_of(runs_.back()) - in;
    }
    work_meter::add(40 + 80 * runs_.size());
    cost c;
    set alive = out;
    auto bytes = held_bytes_[t + 1];  // of what is alive
    if (steps) after_.assign(runs_.size(), {});
    for (std::size_t i = 0; i < runs_.size(); ++i) {  // from the last to the first
      auto const& r = runs_[i];
      auto const& x = g_.blocks[r.block];
      auto const& o = x.options[ways_[r.block].option];
      if (steps) after_[i] = alive;
      double seconds = 0;
      std::int64_t own = 0;
      switch (r.what) {
        case action::pass: seconds = x.pass_time, own = x.pass_peak; break;
        case action::again: seconds = o.again_time, own = o.again_peak; break;
        case action::save:
          seconds = o.forward_time, own = o.forward_peak;
          if (i > 0) saved -= o.saved;  // of the main part it is not in the sum
          break;
        case action::backward: seconds = o.backward_time, own = o.backward_peak - o.saved; break;
        case action::drop:
        case action::load: break;
      }
      bool const whole = i == 0 || r.what == action::again;
      c.time += whole ? seconds : std::max(0.0, seconds - x.once_time);
      auto const& reads = reads_of(r);
      bytes += bytes_of(reads - alive);
      alive |= reads;
      // The block counts its data once it has made them; what of them is there before is there besides.
      set const own_data = r.what == action::backward ? makes_[r.block] : makes_[r.block] - in;
      auto const others = bytes - bytes_of(own_data & alive);
      c.peak = std::max(c.peak, (i == 0 ? g_.during[t] : g_.before[t]) + saved + others + own);
      if (r.what != action::backward) alive -= own_data, bytes = others;
    }
    set const loaded = alive & loaded_[t];
    loaded.for_each([&](std::size_t d) { c.time += g_.move_time[d]; });
    if (steps) {
      auto there = held_[t];
      auto const drop = [&](set const& wanted) {
        (there - wanted).for_each([&](std::size_t d) {
          steps->push_back({action::drop, static_cast<std::uint32_t>(d), 0});
        });
        there &= wanted;
      };
      drop(alive);
      loaded.for_each([&](std::size_t d) {
        steps->push_back({action::load, static_cast<std::uint32_t>(d), 0});
        there.set(d);
      });
      for (std::size_t i = runs_.size(); i-- > 0;) {
        auto const& r = runs_[i];
        steps->push_back({r.what, r.block, ways_[r.block].option});
        if (r.what != action::backward) there |= makes_[r.block];
        drop(after_[i]);
      }
    }
    return c;
  }
  block_graph_answer answer() {
    block_graph_answer a{time_, peak_, {}};
    for (std::uint32_t t = 0; t < phases_count_; ++t) (void)phase_cost(t, &a.steps);
    return a;
  }

  incumbent const* known_within(std::int64_t peak) const {
    incumbent const* found = nullptr;
    for (auto const& k : known_)
      if (k.peak <= peak) found = &k;
    return found;
  }
  /// Ascending by peak, descending by time.
  void note() {
    auto const at = std::find_if(known_.begin(), known_.end(), [&](incumbent const& k) { return k.peak > peak_; });
    if (at != known_.begin() && std::prev(at)->time <= time_ * (1 + 1e-9)) return;
    incumbent me{peak_, time_, {ends_, ways_}};
    auto from = at;  // of the same size, and slower
    while (from != known_.begin() && std::prev(from)->peak == peak_) --from;
    auto to = at;
    while (to != known_.end() && to->time >= time_) ++to;
    if (from == to) {
      known_.insert(from, std::move(me));
    } else {
      *from = std::move(me);
      known_.erase(from + 1, to);
    }
  }

  double score(std::int64_t limit) const {
    double over = 0;
    for (auto const& c : phases_) over += static_cast<double>(std::max<std::int64_t>(0, c.peak - limit));
    return time_ + dearer_ * dearness_ * over;
  }
  /// From what is known, or from `nearest`, which becomes what has the best score.
  void anneal(std::int64_t limit, std::int64_t moves, detail::stop_watch& watch, place* nearest = nullptr) {
    if (moves <= 0) return;
    auto const* from = known_within(limit);
    restore(nearest ? *nearest : from ? place(from->where) : place(known_.front().where));
    double now = score(limit), best = now;
    double const hot = time_once_ / static_cast<double>(blocks_) * 0.3, cold = hot * 0.003;
    double const cooling = std::pow(cold / hot, 1.0 / static_cast<double>(moves));
    double heat = hot;
    for (std::int64_t m = 0; m < moves && !watch.spend(); ++m, heat *= cooling) {
      changes_.clear();
      draw_move(limit);
      if (changes_.empty()) continue;
      evaluate();
      double const then = score(limit);
      if (peak_ <= limit || peak_ < known_.front().peak) note();
      if (then <= now || static_cast<double>(draw_.uniform()) < std::exp((now - then) / heat)) now = then;
      else roll_back();
      if (nearest && now < best) best = now, *nearest = {ends_, ways_};
    }
    changes_.clear();
  }
  std::uint32_t below(std::size_t n) { return draw_.below(static_cast<std::uint32_t>(n)); }
  void draw_move(std::int64_t limit) {
    // Half of the moves while something is over: at a phase that is over.
    std::uint32_t at = phases_count_;
    if (below(2) == 0) {
      high_.clear();
      for (std::uint32_t t = 0; t < phases_count_; ++t)
        if (phases_[t].peak > limit) high_.push_back(t);
      if (!high_.empty()) at = high_[below(high_.size())];
    }
    draw_change(at);
    // One for another: there is no way between them where both are too much, or neither is enough.
    if (below(3) == 0) draw_change(at < phases_count_ ? at : below(phases_count_));
  }
  /// At a phase, if there is one to aim at.
  void draw_change(std::uint32_t at) {
    bool const aimed = at < phases_count_;
    if (!gaps_.empty() && below(5) < 3) {
      auto i = below(gaps_.size());
      for (int tries = 0; aimed && tries < 8; ++tries, i = below(gaps_.size()))
        if (gaps_[i].from < at && at <= gaps_[i].to) break;
      move_gap(i);
      return;
    }
    auto k = below(blocks_);
    for (int tries = 0; aimed && tries < 8; ++tries, k = below(blocks_))
      if (k == main_of(at) || (ways_[k].since < at && at <= back_of(k))) break;
    move_block(k);
  }
  void move_gap(std::uint32_t i) {
    auto const& g = gaps_[i];
    auto const e = ends_[i];
    auto const anywhere = [&] { return g.from + below(g.to - g.from + 1); };
    auto const near = [&](std::uint32_t x) {
      auto const by = 1 + below(3);
      if (below(2) == 0) return std::min(x + by, g.to);
      return x >= g.from + by ? x - by : g.from;
    };
    if (g.last) return set_gap(i, {below(3) == 0 ? g.from : below(2) ? anywhere() : near(e.until), g.to});
    bool const whole = e.until >= e.since;
    if (can_leave(g.datum) && below(3) == 0) {
      if (whole) return set_gap(i, {g.from, below(2) ? g.to : anywhere(), true});
      return set_gap(i, {e.until, e.since, !e.away});
    }
    switch (below(whole ? 4 : 6)) {
      case 0:
        set_gap(i, {g.from, whole ? g.to : g.from});
        break;  // made again at its use, or held for it from the last
      case 1: set_gap(i, {g.from, anywhere()}); break;
      case 2: set_gap(i, {g.from, near(whole ? g.to : e.since)}); break;
      case 3: {
        auto const a = anywhere(), b = anywhere();
        set_gap(i, {std::min(a, b), std::max(a, b)});
        break;
      }
      case 4: set_gap(i, {std::min(near(e.until), e.since), e.since, e.away}); break;
      default: set_gap(i, {g.from, g.from});
    }
  }
  bool can_leave(std::uint32_t datum) const { return !g_.move_time.empty() && g_.move_time[datum] >= 0; }
  void move_block(std::uint32_t k) {
    auto w = ways_[k];
    auto const options = g_.blocks[k].options.size();
    auto const draw = below(4);
    if (draw < 2 && options > 1) {
      if (below(2) == 0) w.option = below(options);
      else
        w.option = below(2) == 0 ? std::min<std::uint32_t>(w.option + 1, static_cast<std::uint32_t>(options - 1))
                                 : w.option - (w.option > 0);
    }
    if (draw > 0) {
      if (below(3) == 0) w.since = k + below(back_of(k) - k + 1);
      else w.since = below(2) == 0 ? k : back_of(k);
    }
    set_block(k, w);
  }

  block_graph const& g_;
  std::uint32_t blocks_, phases_count_;
  random_stream draw_;
  std::vector<std::uint32_t> maker_;  // by datum
  std::vector<set> reads_, makes_;    // by block
  std::vector<std::vector<set>> again_reads_, backward_reads_;
  std::vector<gap> gaps_;
  double time_once_ = 0, dearness_ = 0, dearer_ = 1;
  // Where the search stands:
  std::vector<ends> ends_;  // by gap
  std::vector<way> ways_;   // by block
  std::vector<set> held_;   // by phase: there when it begins
  std::vector<std::int64_t> held_bytes_;
  std::vector<set> loaded_;  // by phase: loaded when it begins
  std::vector<std::int64_t> saved_at_;
  std::vector<std::vector<std::uint32_t>> forced_;  // by phase: blocks that save in it, though it is not theirs
  std::vector<cost> phases_;
  double time_ = 0;
  std::int64_t peak_ = 0;
  std::vector<incumbent> known_;
  std::optional<place> nearest_;  // of approach()
  // Of a move:
  std::vector<change> changes_;
  std::vector<unsigned char> dirty_;
  std::vector<std::uint32_t> marked_, high_;
  std::vector<std::pair<std::uint32_t, cost>> before_;
  std::vector<run> runs_;
  std::vector<set> after_;
};

}  // namespace neap::inline v0
