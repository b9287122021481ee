// Where a search over the use-intervals of a graph of blocks stands (option_gaps.hpp): which option each block runs with and
// in which phase it saves, what is held and loaded when, and what time and peak of each phase follow.
#pragma once

#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/use_intervals.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/plan/block_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// What is chosen for a block: its option, and the phase whose forward saves.
struct block_choice {
  std::uint32_t option = 0, since = 0;
  friend bool operator==(block_choice const&, block_choice const&) = default;
};

/// A graph of blocks as the search reads it, which check() passes, with max_data data at most; outlives this.
struct block_graph_facts {
  static constexpr std::size_t max_data = 256;
  using set = value_set<max_data / 64>;

  explicit block_graph_facts(block_graph const& g)
      : graph(g),
        blocks(static_cast<std::uint32_t>(g.blocks.size())),
        phases(2 * blocks),
        maker(g.bytes.size()) {
    auto const as_set = [](std::vector<std::uint32_t> const& list) {
      set s;
      for (auto d : list) s.set(d);
      return s;
    };
    std::vector<std::vector<std::uint32_t>> uses(graph.bytes.size());
    for (std::uint32_t k = 0; k < blocks; ++k) {
      auto const& b = graph.blocks[k];
      reads.push_back(as_set(b.reads)), makes.push_back(as_set(b.makes));
      for (auto d : b.makes) maker[d] = k, uses[d].push_back(k), bytes_once += graph.bytes[d];
      for (auto d : b.reads) uses[d].push_back(k);
      again_reads.emplace_back(), backward_reads.emplace_back();
      double quickest = std::numeric_limits<double>::infinity();
      std::int64_t saved = 0;
      for (auto const& o : b.options) {
        again_reads[k].push_back(as_set(o.again_reads));
        backward_reads[k].push_back(as_set(o.backward_reads));
        quickest = std::min(quickest, o.forward_time + o.backward_time);
        saved = std::max(saved, o.saved);
      }
      time_once += quickest, bytes_once += saved;
    }
    for (std::uint32_t k = blocks; k-- > 0;) {
      set all;
      for (auto const& s : backward_reads[k]) all |= s;
      all.for_each([&](std::size_t d) { uses[d].push_back(back_of(k)); });
    }
    for (std::uint32_t d = 0; d < uses.size(); ++d) {
      auto const& at = uses[d];
      for (std::size_t i = 1; i < at.size(); ++i) intervals.push_back({d, at[i - 1], at[i]});
      // The first block that reads it runs again last, for its own backward.
      if (at.size() > 1 && at[1] < blocks && at.back() < back_of(at[1]))
        intervals.push_back({d, at.back(), back_of(at[1]), true});
    }
  }

  std::uint32_t back_of(std::uint32_t block) const { return phases - 1 - block; }
  std::uint32_t main_of(std::uint32_t phase) const { return phase < blocks ? phase : phases - 1 - phase; }
  bool can_leave(std::uint32_t datum) const { return !graph.move_time.empty() && graph.move_time[datum] >= 0; }
  std::int64_t bytes_of(set const& s) const {
    std::int64_t sum = 0;
    s.for_each([&](std::size_t d) { sum += graph.bytes[d]; });
    return sum;
  }

  block_graph const& graph;
  std::uint32_t blocks, phases;
  std::vector<std::uint32_t> maker;                           // by datum
  std::vector<set> reads, makes;                              // by block
  std::vector<std::vector<set>> again_reads, backward_reads;  // by block and option
  std::vector<use_interval> intervals;
  double time_once = 0;         // with the quickest option of each block
  std::int64_t bytes_once = 0;  // of all data and of the largest options
};

/// Phases of a graph of blocks, of which a move counts again only those that it touches: a move is a few changes by
/// set_interval() and set_block(), then evaluate(); roll_back() takes it back.
class block_phases {
 public:
  using set = block_graph_facts::set;
  struct cost {
    double time = 0;
    std::int64_t peak = 0;
  };
  struct place {
    std::vector<interval_ends> ends;    // by interval
    std::vector<block_choice> choices;  // by block
  };

  /// At first nothing is held that need not be, and every block saves with its first option.
  explicit block_phases(block_graph const& g) : f_(g), g_(g) { begin(); }

  block_graph_facts const& facts() const { return f_; }
  interval_ends const& ends(std::uint32_t i) const { return now_.ends[i]; }
  block_choice const& choice(std::uint32_t block) const { return now_.choices[block]; }
  place const& where() const { return now_; }
  std::vector<cost> const& phases() const { return phases_; }
  double time() const { return time_; }
  std::int64_t peak() const { return peak_; }

  void set_interval(std::uint32_t i, interval_ends const& now) {
    if (now_.ends[i] == now) return;
    changes_.push_back({true, i, now_.ends[i], {}});
    put_interval(i, now, now_.ends[i]);
    now_.ends[i] = now;
  }
  void set_block(std::uint32_t k, block_choice const& now) {
    if (now_.choices[k] == now) return;
    changes_.push_back({false, k, {}, now_.choices[k]});
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
      if (c.of_interval) put_interval(c.index, c.ends, now_.ends[c.index]), now_.ends[c.index] = c.ends;
      else put_block(c.index, c.block);
    }
    for (auto t : marked_) dirty_[t] = 0;
    marked_.clear();
    for (auto const& [t, c] : before_) phases_[t] = c;
    sum_up();
  }
  /// Forgets how to roll back: the move stands.
  void keep() { changes_.clear(); }
  bool moved() const { return !changes_.empty(); }
  void restore(place const& p) {
    for (std::uint32_t i = 0; i < f_.intervals.size(); ++i) set_interval(i, p.ends[i]);
    for (std::uint32_t k = 0; k < f_.blocks; ++k) set_block(k, p.choices[k]);
    evaluate();
    changes_.clear();
  }

  block_graph_answer answer() {
    block_graph_answer a{time_, peak_, {}};
    for (std::uint32_t t = 0; t < f_.phases; ++t) (void)phase_cost(t, &a.steps);
    return a;
  }

 private:
  struct change {
    bool of_interval;
    std::uint32_t index;
    interval_ends ends;
    block_choice block;
  };
  struct run {
    std::uint32_t block;
    block_graph_step::action what;
  };

  void begin() {
    held_.assign(f_.phases + 1, {});
    held_bytes_.assign(f_.phases + 1, 0);
    loaded_.assign(f_.phases, {});
    saved_at_.assign(f_.phases + 1, 0);
    forced_.assign(f_.phases, {});
    dirty_.assign(f_.phases, 0);
    phases_.assign(f_.phases, {});
    now_.ends.assign(f_.intervals.size(), {});
    now_.choices.assign(f_.blocks, {});
    for (std::uint32_t i = 0; i < f_.intervals.size(); ++i)
      now_.ends[i] = {f_.intervals[i].from, f_.intervals[i].from}, put_interval(i, now_.ends[i], std::nullopt);
    for (std::uint32_t k = 0; k < f_.blocks; ++k) now_.choices[k] = {0, k}, take_block(k, true);
    for (std::uint32_t t = 0; t < f_.phases; ++t) phases_[t] = phase_cost(t);
    sum_up();
  }

  static bool loads(use_interval const& g, interval_ends const& e) { return e.away && !g.last && e.until < e.since; }
  /// Makes `held_` follow; phases in which that changes something are dirty.
  void put_interval(std::uint32_t i, interval_ends const& now, std::optional<interval_ends> const& old) {
    auto const& g = f_.intervals[i];
    for (auto t = g.from + 1; t <= g.to; ++t) {
      bool const is = holds(g, now, t);
      if (old && holds(g, *old, t) == is) continue;
      if (is) held_[t].set(g.value);
      else held_[t].reset(g.value);
      if (is || old) held_bytes_[t] += is ? g_.bytes[g.value] : -g_.bytes[g.value];
      mark(t - 1);
      if (t < f_.phases) mark(t);
    }
    if (old && loads(g, *old)) loaded_[old->since].reset(g.value), mark(old->since);
    if (loads(g, now)) loaded_[now.since].set(g.value), mark(now.since);
  }
  void take_block(std::uint32_t k, bool in) {
    auto const& w = now_.choices[k];
    auto const saved = g_.blocks[k].options[w.option].saved;
    for (auto t = w.since + 1; t <= f_.back_of(k); ++t) saved_at_[t] += in ? saved : -saved;
    auto& list = forced_[w.since];
    if (w.since == k) return;
    if (in) list.insert(std::lower_bound(list.begin(), list.end(), k), k);
    else list.erase(std::lower_bound(list.begin(), list.end(), k));
  }
  void put_block(std::uint32_t k, block_choice const& now) {
    auto const old = now_.choices[k];
    take_block(k, false);
    now_.choices[k] = now;
    take_block(k, true);
    mark(k);
    for (auto t = std::min(old.since, now.since); t <= f_.back_of(k); ++t) mark(t);
  }
  void mark(std::uint32_t t) {
    if (!dirty_[t]) dirty_[t] = 1, marked_.push_back(t);
  }

  set const& reads_of(run const& r) const {
    return r.what == block_graph_step::action::again      ? f_.again_reads[r.block][now_.choices[r.block].option]
           : r.what == block_graph_step::action::backward ? f_.backward_reads[r.block][now_.choices[r.block].option]
                                                          : f_.reads[r.block];
  }

  /// Time and peak of a phase, from what is held into it and out of it; appends its steps.
  cost phase_cost(std::uint32_t t, std::vector<block_graph_step>* steps = nullptr) {
    using action = block_graph_step::action;
    auto const b = f_.main_of(t);
    bool const back = t >= f_.blocks;
    auto const in = held_[t] | loaded_[t];
    auto const& out = held_[t + 1];
    run const main{b, back ? action::backward : now_.choices[b].since == t ? action::save : action::pass};
    runs_.clear();
    runs_.push_back(main);
    set lacking = (reads_of(main) | (back ? out : out - f_.makes[b])) - in;
    auto const& forced = forced_[t];
    auto next = forced.size();
    auto saved = saved_at_[t];
    while (next > 0 || !lacking.empty()) {
      auto k = lacking.empty() ? 0 : f_.maker[lacking.highest()];
      action what = action::pass;
      if (next > 0 && (lacking.empty() || forced[next - 1] >= k)) {
        k = forced[--next];
        what = action::save;
        saved += g_.blocks[k].options[now_.choices[k].option].saved;
      } else if (now_.choices[k].since < t && t <= f_.back_of(k)) {
        what = action::again;
      }
      runs_.push_back({k, what});
      lacking -= f_.makes[k];
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
      auto const& o = x.options[now_.choices[r.block].option];
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
      bytes += f_.bytes_of(reads - alive);
      alive |= reads;
      // The block counts its data once it has made them; what of them is there before is there besides.
      set const own_data = r.what == action::backward ? f_.makes[r.block] : f_.makes[r.block] - in;
      auto const others = bytes - f_.bytes_of(own_data & alive);
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
        steps->push_back({r.what, r.block, now_.choices[r.block].option});
        if (r.what != action::backward) there |= f_.makes[r.block];
        drop(after_[i]);
      }
    }
    return c;
  }
  void sum_up() {
    time_ = 0, peak_ = 0;
    for (auto const& c : phases_) time_ += c.time, peak_ = std::max(peak_, c.peak);
  }
  block_graph_facts f_;
  block_graph const& g_;
  // Where the search stands:
  place now_;
  std::vector<set> held_;  // by phase: there when it begins
  std::vector<std::int64_t> held_bytes_;
  std::vector<set> loaded_;  // by phase: loaded when it begins
  std::vector<std::int64_t> saved_at_;
  std::vector<std::vector<std::uint32_t>> forced_;  // by phase: blocks that save in it, though it is not theirs
  std::vector<cost> phases_;
  double time_ = 0;
  std::int64_t peak_ = 0;
  // Of a move:
  std::vector<change> changes_;
  std::vector<unsigned char> dirty_;
  std::vector<std::uint32_t> marked_;
  std::vector<std::pair<std::uint32_t, cost>> before_;
  std::vector<run> runs_;
  std::vector<set> after_;
};

}}}  // namespace neap::v0::detail
