// Small programs, exactly: the quickest way to run a program within a limit of memory, or the smallest, in any order and with
// any recomputation. A state is what is in memory and what has run; running an op or forgetting a storage leads from one to
// the next, and the best way to each is found by Dijkstra's algorithm (1959). There are up to 2^storages states: a game of
// pebbles with weights, whose exact solution is for small programs only (Sethi 1975).
//
//   live_sets all(graph, facts, may_run_again);
//   if (auto const found = all.quickest(limit)) replay(found->steps);
//
// Counts as the simulator does: workspaces, takeovers, results that are there twice while an op runs again for another one.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/mutate/replay.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A step of a replay: run the op, if one is named, then forget the storages.
struct live_set_step {
  op_id run = nothing<op_id>;
  std::uint64_t forget = 0;  // bits of live_sets
};
struct live_set_answer {
  plain_vector<live_set_step> steps;
  bytes_t peak = 0;
  seconds_t seconds = 0;
};

class live_sets {
 public:
  /// `facts` are the graph's; both outlive this. `max_states` are looked at in all searches together.
  live_sets(op_graph const& g, flow_facts const& facts, plain_vector<bool> const& may_run_again,
            std::size_t max_states = 20'000)
      : g_(g),
        facts_(facts),
        left_(max_states) {
    small_ = !facts.has_transfers() && learn(may_run_again);
  }
  static constexpr std::size_t max_bits = 20, max_ops = 8 * max_bits;
  /// Whether programs like this one are searched: without transfers, at most so many storages and ops that run once, views of
  /// one storage that take no time, may be made again, and are all that their ops make.
  bool is_small() const { return small_; }

  /// The quickest way that takes at most so many bytes; nothing if there is none, or too many states lie on the way.
  std::optional<live_set_answer> quickest(bytes_t most) { return search(most, false); }
  /// The smallest way that takes no longer, of these the quickest.
  std::optional<live_set_answer> smallest(seconds_t longest) {
    auto best = search(std::numeric_limits<bytes_t>::max(), true);
    if (!best) return best;
    if (auto quick = search(best->peak, false)) best = std::move(quick);
    if (best->seconds <= longest) return best;
    // Less time takes more memory: halved between the most that is too slow and the least that is known not to be.
    auto low = best->peak;
    best = search(std::numeric_limits<bytes_t>::max(), false);
    if (!best || best->seconds > longest) return std::nullopt;
    while (low + 1 < best->peak && left_ > 0) {
      auto const middle = low + (best->peak - low) / 2;
      auto now = search(middle, false);
      if (now && now->seconds <= longest) best = std::move(now);
      else if (passed_over_ < best->peak) low = passed_over_ - 1;  // anything less makes no difference
      else break;
    }
    return best;
  }
  /// Replays an answer. False if that is refused.
  bool tell(live_set_answer const& answer, replay_builder& replay) const {
    for (auto const& s : answer.steps) {
      if (s.run != nothing<op_id> && !replay.run_with_views(s.run)) return false;
      for (std::size_t b = 0; b < storages_.size(); ++b)
        if ((s.forget >> b & 1) && storages_[b].may_return) replay.forget(storages_[b].id);
    }
    return true;
  }

 private:
  using set = std::uint64_t;
  struct storage {
    storage_id id;
    bytes_t bytes;
    bool may_go, may_return;
  };
  struct place {  // that a result may take over
    set from;
    storage_id to;
  };
  struct unit {
    op_id op;
    seconds_t seconds;
    bytes_t makes;    // bytes of all that it makes, and its workspace
    set needs = 0;    // in memory, and what must have run
    set refuses = 0;  // what must not have run: it overwrites what is read here
    set gives = 0;    // what is in memory afterwards, and that it has run, if that matters
    bool once = false;
    std::uint32_t places_begin = 0, places_end = 0;
  };
  struct label {
    set now;
    bytes_t peak, living;
    seconds_t seconds;
    std::uint32_t from;
    live_set_step step;
  };

  static set bit_at(std::size_t b) { return set{1} << (b % 64); }

  bool learn(plain_vector<bool> const& may_run_again) {
    if (g_.op_count() > max_ops) return false;
    for (auto s : g_.storages())
      if (g_.is_overwritten(s)) return false;  // there until it is overwritten, which is no choice
    table<storage_id, std::uint32_t> bit(facts_.storage_count(), no_id);
    table<op_id, std::uint32_t> ran(g_.op_count(), no_id);
    auto const droppable = droppable_storages(g_, may_run_again);
    std::size_t bits = 0;
    auto const add = [&](storage_id s) {
      auto const b = facts_.bytes(s);
      bit[s] = static_cast<std::uint32_t>(bits++);
      storages_.push_back({s, b, b > 0 && !facts_.is_kept(s), droppable[index(s)]});
    };
    if (facts_.given_storages().size() > max_bits) return false;
    for (auto s : facts_.given_storages()) add(s), living_ += facts_.bytes(s);
    for (std::uint32_t b = 0; b < bits; ++b) start_ |= bit_at(b);
    std::vector<op_id> ops;
    for (auto o : g_.ops()) {
      for (auto s : facts_.makes(o)) add(s);
      if (bits > max_bits) return false;
      if (!flow::is_view(g_, o)) {
        for (auto v : g_.outputs(o))
          if (g_.record(v).alias == alias_kind::view) return false;
        ops.push_back(o);
      } else if (facts_.seconds(o) > 0 || facts_.touches(o).size() > 1 || !may_run_again[index(o)]) return false;
    }
    auto const runs_once = [&](op_id o) {
      if (!may_run_again[index(o)] || facts_.makes(o).empty()) return true;
      for (auto v : g_.outputs(o))
        if (g_.record(v).alias == alias_kind::update) return true;
      for (auto s : facts_.makes(o))
        if (facts_.bytes(s) > 0 && !facts_.is_kept(s) && !droppable[index(s)]) return true;
      return false;
    };
    // Where it matters that an op has run: what overwrites, of its readers; the end, of dead ops.
    auto const ask = [&](op_id o) {
      if (ran[o] == no_id) ran[o] = static_cast<std::uint32_t>(bits++);
    };
    std::vector<std::uint32_t> readers(facts_.storage_count(), 0);
    for (auto o : ops)
      for (auto s : facts_.touches(o)) ++readers[index(s)];
    for (auto o : ops) {
      bool read = false;
      for (auto s : facts_.makes(o)) read = read || readers[index(s)] > 1 || facts_.is_kept(s);
      if (runs_once(o) || !read) ask(o), wanted_ |= bit_at(ran[o]);
      for (auto before : g_.order_after(o))
        if (!flow::is_view(g_, before)) ask(before);
    }
    if (bits > max_bits) return false;
    for (auto s : facts_.kept_storages())
      if (bit[s] != no_id) wanted_ |= bit_at(bit[s]);
    for (auto o : ops) {
      unit u{o, facts_.seconds(o), facts_.workspace(o)};
      u.once = runs_once(o);
      for (auto s : facts_.makes(o)) u.makes += facts_.bytes(s), u.gives |= bit_at(bit[s]);
      for (auto s : facts_.touches(o)) u.needs |= bit_at(bit[s]);
      u.needs &= ~u.gives;
      if (ran[o] != no_id) u.gives |= bit_at(ran[o]);
      for (auto before : g_.order_after(o))
        if (ran[before] != no_id) u.needs |= bit_at(ran[before]);
      for (auto v : g_.inputs(o))  // as it was before some updates, and after others
        for (auto w : ops)
          for (auto written : g_.outputs(w))
            if (w != o && g_.storage(written) == g_.storage(v) && g_.record(written).alias == alias_kind::update)
              (g_.record(written).version > g_.record(v).version ? u.refuses : u.needs) |= bit_at(ran[w]);
      u.places_begin = static_cast<std::uint32_t>(places_.size());
      if (!facts_.takeovers().empty())
        for (auto const& c : facts_.takeovers(o))
          if (bit[c.from] != no_id && storages_[bit[c.from]].may_go) places_.push_back({bit_at(bit[c.from]), c.to});
      u.places_end = static_cast<std::uint32_t>(places_.size());
      units_.push_back(u);
    }
    return true;
  }

  static bool is_less(label const& a, label const& b) {
    return a.peak != b.peak ? a.peak < b.peak : a.seconds < b.seconds;
  }

  /// The best way that takes at most so many bytes: by its time, or by its peak and then its time.
  std::optional<live_set_answer> search(bytes_t most, bool by_peak) {
    passed_over_ = std::numeric_limits<bytes_t>::max();
    labels_.clear(), heap_.clear(), best_.clear();
    labels_.push_back({start_, 0, facts_.resident_bytes() + living_, 0, no_id, {}});
    best_.set(start_, 0);
    heap_.push_back(0);
    auto const is_after = [&](std::uint32_t a, std::uint32_t b) { return is_less(labels_[b], labels_[a]); };
    auto const reach = [&](std::uint32_t from, live_set_step step, set now, bytes_t living, bytes_t peak, seconds_t t) {
      auto const have = best_.find(now);
      label const l{now, by_peak ? peak : 0, living, t, from, step};
      if (have != number_map::none && !is_less(l, labels_[have])) return;
      best_.set(now, static_cast<std::uint32_t>(labels_.size()));
      heap_.push_back(static_cast<std::uint32_t>(labels_.size()));
      labels_.push_back(l);
      std::push_heap(heap_.begin(), heap_.end(), is_after);
    };
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), is_after);
      auto const at = heap_.back();
      heap_.pop_back();
      auto const l = labels_[at];
      if (best_.find(l.now) != at) continue;
      if ((l.now & wanted_) == wanted_) return told(at);
      if (left_ == 0) return std::nullopt;
      --left_;
      for (std::size_t b = 0; b < storages_.size(); ++b)
        if ((l.now >> b & 1) && storages_[b].may_go)
          reach(at, {nothing<op_id>, set{1} << b}, l.now & ~(set{1} << b), l.living - storages_[b].bytes, l.peak,
                l.seconds);
      for (auto const& u : units_) {
        if ((l.now & u.needs) != u.needs || (l.now & u.refuses) || (l.now & u.gives) == u.gives) continue;
        if (u.once && (l.now & u.gives)) continue;
        auto const now = l.now | u.gives;
        auto const added = bytes_of(now & ~l.now);
        for_each_takeover(u, l.now, [&](set gone) {
          auto const taken = bytes_of(gone), during = l.living + u.makes - taken;
          if (during > most) passed_over_ = std::min(passed_over_, during);
          else
            reach(at, {u.op, gone}, now & ~gone, l.living + added - taken, std::max(l.peak, during),
                  l.seconds + u.seconds);
        });
      }
    }
    return std::nullopt;
  }
  bytes_t bytes_of(set all) const {
    bytes_t sum = 0;
    for (; all; all &= all - 1)
      if (auto const b = static_cast<std::size_t>(std::countr_zero(all)); b < storages_.size())
        sum += storages_[b].bytes;
    return sum;
  }
  /// Which storages may die at an op and give their places, of equally many bytes, to what it makes: none, and all choices of
  /// some. What it makes once more while it is there already has no place of its own.
  template <class Take>
  void for_each_takeover(unit const& u, set now, Take&& take) {
    set choice = 0;
    for (auto i = u.places_begin; i < u.places_end && (now & u.gives) == 0; ++i) choice |= places_[i].from & now;
    for (set gone = choice;; gone = (gone - 1) & choice) {
      set gave = 0;
      took_.clear();
      for (auto i = u.places_begin; i < u.places_end; ++i) {
        auto const& p = places_[i];
        if (!(p.from & gone & ~gave) || std::find(took_.begin(), took_.end(), p.to) != took_.end()) continue;
        gave |= p.from, took_.push_back(p.to);
      }
      if (gave == gone) take(gone);
      if (gone == 0) break;
    }
  }
  live_set_answer told(std::uint32_t at) const {
    live_set_answer out;
    out.seconds = labels_[at].seconds;
    for (; labels_[at].from != no_id; at = labels_[at].from) {
      auto const& before = labels_[labels_[at].from];
      out.steps.push_back(labels_[at].step);
      if (auto const o = labels_[at].step.run; o != nothing<op_id>) out.peak = std::max(out.peak, during(before, at));
    }
    std::reverse(out.steps.begin(), out.steps.end());
    return out;
  }
  bytes_t during(label const& before, std::uint32_t at) const {
    auto const& step = labels_[at].step;
    auto const u = std::find_if(units_.begin(), units_.end(), [&](unit const& x) { return x.op == step.run; });
    return before.living + u->makes - bytes_of(step.forget);
  }

  op_graph const& g_;
  flow_facts const& facts_;
  std::size_t left_;
  bool small_ = false;
  plain_vector<storage> storages_;  // bit by bit; the bits behind them say what has run
  plain_vector<unit> units_;
  plain_vector<place> places_;
  plain_vector<storage_id> took_;
  set start_ = 0, wanted_ = 0;
  bytes_t living_ = 0;
  bytes_t passed_over_ = 0;  // the fewest bytes that were too many in the last search
  plain_vector<label> labels_;
  std::vector<std::uint32_t> heap_;
  number_map best_;
};

}}}  // namespace neap::v0::detail
