// What an edit comes to, from what its candidate came to: of an outline (plan/graph_edit.hpp) only the storages that it
// touches are looked at, and those whose transfers now end before other ops; the bytes of the order are those of the
// candidate, shifted by ranges.
//
//   outline_delta delta;
//   delta.assign(candidate, facts);                          // once a candidate: O(ops + storages)
//   facts.add_rows(outline);
//   auto const would_be = delta.judge(facts, at, values, outline, target);
//   facts.take_back();
//
// What it says is what the simulator says of the edited graph, to the byte and to the last bit of the latency: from the
// first change on, seconds are added in the order in which it adds them. (An order's bytes in a tree with range-add and
// maximum would be logarithmic; adding up the seconds is not, and a pass over plain arrays takes a nanosecond an op.)
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/plan/candidate.hpp>
#include <neap/plan/graph_edit.hpp>
#include <neap/simulate/outlined_facts.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

class outline_delta {
 public:
  struct answer {
    bytes_t peak_bytes;
    seconds_t latency;
    double excess_bytes;  // above the target, summed over positions
  };

  /// Reads a candidate, which must outlive this object, from its facts.
  void assign(candidate const& c, flow_facts const& facts) {
    c_ = &c;
    auto const n = c.order.size();
    seconds_.resize_for_overwrite(n);
    for (std::size_t p = 0; p < n; ++p) seconds_[p] = facts.seconds(c.order[p]);
    between_.assign(n + 1, 0);
    for (auto s : id_range<storage_id>(facts.storage_count()))
      if (auto const l = c.result.live[s]; !facts.is_resident(s) && !l.empty() && l.first < l.last) {
        between_[l.first + 1] += facts.bytes(s);
        between_[l.last + 1] -= facts.bytes(s);
      }
    bytes_t sum = facts.resident_bytes();
    for (auto& b : between_) b = sum += b;
    seen_.assign(facts.storage_count(), {});
    asked_.assign(facts.op_count(), 0);
    round_ = 0;
    transfers_.clear();
    if (facts.has_transfers()) find_transfers(facts);
  }
  /// Whether it can judge this outline of the candidate, whose facts these are: not where something lives that no op makes,
  /// nor where runs have a sequence of their own or a transfer reads something else.
  bool can_judge(flow_facts const& facts, graph_edit const& outline) const {
    if (!facts.given_storages().empty() || !outline.sequence.empty()) return false;
    auto const n = c_->order.size();
    for (auto const& r : outline.runs)
      if (r.before >= n) return false;
    if (!transfers_.empty())
      for (auto const& r : outline.rereads)
        if (facts.stream(r.reader) != op_stream::compute) return false;
    return true;
  }

  /// `facts` have the rows of the outline. `at`: the positions of the candidate's ops; `values`: those of each storage.
  answer judge(outlined_facts const& facts, table<op_id, std::uint32_t> const& at,
               csr<storage_id, value_id> const& values, graph_edit const& outline, bytes_t target) {
    begin(facts, at, values, outline);
    auto const ends = facts.has_transfers() ? run_all(facts, at) : latency(facts);
    touch_all(facts, at);
    for (std::size_t k = 0; k < noted_.size(); ++k) move_life(facts, at, noted_[k]);
    for (auto const& n : new_) add_life(n.first, n.last + 1, n.bytes);
    if (!facts.takeovers().empty()) move_takeovers(facts, at);
    detail::sort_list(events_, [](event const& a, event const& b) { return a.at < b.at; });
    auto const peak = sum_up(facts, target);
    return {peak, ends, excess_};
  }

 private:
  struct event {  // from this position of the edited order on
    std::uint32_t at;
    bytes_t more;
  };
  struct life {  // of a storage that an edit touches
    std::uint32_t round = 0;
    std::uint32_t last = 0;  // where new rows touch it last, then where anything does; in the edited order
    bool lives = false;
    seconds_t held = 0;  // when the last new transfer of it ends
  };
  struct new_storage {
    std::uint32_t first, last;
    bytes_t bytes;
    seconds_t held;
  };
  struct transfer {
    op_id op;
    std::uint32_t position,
        landing;  // landing: the first compute op that starts after it has ended, or the order's end
    seconds_t end;
  };

  void begin(outlined_facts const& facts, table<op_id, std::uint32_t> const& at,
             csr<storage_id, value_id> const& values, graph_edit const& outline) {
    if (++round_ == 0) {  // stamps of four billion outlines ago would look like new ones
      for (auto& s : seen_) s.round = 0;
      for (auto& a : asked_) a = 0;
      round_ = 1;
    }
    outline_ = &outline, values_ = &values;
    events_.clear(), noted_.clear(), asked_ops_.clear(), gone_.clear(), new_.clear();
    for (auto o : facts.changed())
      if (facts.row_of(o) == nothing<op_id>) gone_.push_back(at[o]);
    detail::sort_list(gone_);
    first_change_ = static_cast<std::uint32_t>(c_->order.size());
    if (!outline.runs.empty()) first_change_ = std::min(first_change_, outline.runs[0].before);
    for (auto o : facts.changed()) first_change_ = std::min(first_change_, at[o]);
    for (auto s = facts.base_storage_count(); s < facts.storage_count(); ++s)
      new_.push_back({0, 0, facts.bytes(id_at<storage_id>(s)), 0});
  }

  // ---- positions

  std::uint32_t gone_below(std::uint32_t p) const {
    return static_cast<std::uint32_t>(std::lower_bound(gone_.begin(), gone_.end(), p) - gone_.begin());
  }
  bool is_gone(std::uint32_t p) const { return std::binary_search(gone_.begin(), gone_.end(), p); }
  /// Where the op at a position stands in the edited order; for one that is left out, where what comes behind it does.
  std::uint32_t moved(std::uint32_t p) const {
    auto const& runs = outline_->runs;
    auto const before =
        std::upper_bound(runs.begin(), runs.end(), p, [](std::uint32_t x, auto const& r) { return x < r.before; });
    return p + static_cast<std::uint32_t>(before - runs.begin()) - gone_below(p);
  }
  std::uint32_t moved_end(std::uint32_t p) const { return moved(p) + !is_gone(p); }
  std::uint32_t position_of_run(std::size_t k) const {
    auto const p = outline_->runs[k].before;
    return p + static_cast<std::uint32_t>(k) - gone_below(p);
  }

  /// Goes through the edited order from a position of the candidate's on: stretch(p, n) for n ops as they stood from p on,
  /// run(k) for a new one.
  template <class Stretch, class Run>
  void walk(std::uint32_t p, Stretch&& stretch, Run&& run) const {
    auto const& runs = outline_->runs;
    auto const n = static_cast<std::uint32_t>(c_->order.size());
    std::size_t k = 0, left = 0;
    for (;;) {
      auto next = n;
      if (k < runs.size()) next = std::min(next, runs[k].before);
      if (left < gone_.size()) next = std::min(next, gone_[left]);
      stretch(p, next - p);
      p = next;
      for (; k < runs.size() && runs[k].before == p; ++k) run(k);
      if (left < gone_.size() && gone_[left] == p) ++left, ++p;
      else if (p == n) return;
    }
  }
  op_id row_of_run(outlined_facts const& facts, std::size_t k) const { return id_at<op_id>(facts.base_op_count() + k); }

  // ---- lives

  /// Ops of the candidate that make, read or write a storage.
  template <class See>
  void for_each_toucher(storage_id s, See&& see) const {
    for (auto v : (*values_)[s]) {
      see(c_->graph.producer(v));
      for (auto const& u : c_->graph.uses(v)) see(u.op);
    }
  }
  bool counts(outlined_facts const& facts, storage_id s) const {
    return !facts.is_resident(s) && !facts.is_kept(s) && facts.bytes(s) != 0;
  }
  life& note(storage_id s) {
    auto& l = seen_[s];
    if (l.round != round_) l = {round_, 0, false, 0}, noted_.push_back(s);
    return l;
  }
  void touch(outlined_facts const& facts, storage_id s, std::uint32_t position, seconds_t held = 0) {
    if (index(s) >= facts.base_storage_count()) {
      auto& n = new_[index(s) - facts.base_storage_count()];
      n.last = std::max(n.last, position), n.held = std::max(n.held, held);
    } else if (counts(facts, s)) {
      auto& l = note(s);
      l.last = std::max(l.last, position), l.lives = true, l.held = std::max(l.held, held);
    }
  }
  /// What the outline touches, and where new rows do so last.
  void touch_all(outlined_facts const& facts, table<op_id, std::uint32_t> const& at) {
    for (std::size_t k = 0; k < outline_->runs.size(); ++k) {
      auto const row = row_of_run(facts, k);
      auto const position = position_of_run(k);
      for (auto s : facts.makes(row)) new_[index(s) - facts.base_storage_count()].first = position;
      bool const moves = facts.stream(row) != op_stream::compute;
      auto const until = moves ? std::max(position, release_[transfers_.size() + k]) : position;
      auto const held = moves ? ends_[transfers_.size() + k] : 0;
      for (auto s : facts.touches(row)) touch(facts, s, until, held);
    }
    for (auto o : facts.changed()) {
      for (auto s : facts.touches(o))
        if (counts(facts, s)) (void)note(s);
      auto const row = facts.row_of(o);
      if (row == nothing<op_id>) continue;
      auto const position = moved(at[o]);
      for (auto s : facts.touches(row)) touch(facts, s, position);
    }
    // Storages whose transfers end before other ops than they did.
    for (std::size_t k = 0; k < transfers_.size(); ++k) {
      auto const& t = transfers_[k];
      if (t.landing < first_change_ || facts.row_of(t.op) == nothing<op_id>) continue;
      if (release_[k] + 1 == moved_end(t.landing - 1)) continue;
      for (auto s : facts.touches(t.op))
        if (counts(facts, s)) (void)note(s);
    }
  }
  /// A storage of the candidate lives otherwise.
  void move_life(outlined_facts const& facts, table<op_id, std::uint32_t> const& at, storage_id s) {
    auto& l = seen_[s];
    auto const was = c_->result.live[s];
    op_id last_as_it_was = nothing<op_id>;  // the last op without a new row that touches it
    auto const see = [&](op_id o) {
      if (facts.row_of(o) != o) return;
      if (last_as_it_was == nothing<op_id> || at[o] > at[last_as_it_was]) last_as_it_was = o;
      if (auto const t = transfer_of(o); t != no_id) l.last = std::max(l.last, release_[t]);
    };
    for_each_toucher(s, see);
    if (last_as_it_was != nothing<op_id>) {
      l.last = std::max(l.last, moved(at[last_as_it_was])), l.lives = true;
      ask(last_as_it_was);
    }
    if (!was.empty()) ask(c_->order[was.last]);
    auto const maker = facts.maker(s);
    l.lives = l.lives && maker != nothing<op_id> && facts.row_of(maker) != nothing<op_id>;
    auto const bytes = facts.bytes(s);
    if (!was.empty()) add_life(moved(was.first), moved_end(was.last), -bytes);
    if (l.lives) add_life(moved(at[maker]), l.last + 1, bytes);
  }
  void add_life(std::uint32_t first, std::uint32_t end, bytes_t bytes) {
    events_.push_back({first, bytes}), events_.push_back({end, -bytes});
  }

  // ---- takeovers

  /// What an op takes over is stale.
  void ask(op_id o) {
    if (asked_[o] == round_) return;
    asked_[o] = round_, asked_ops_.push_back(o);
  }
  void move_takeovers(outlined_facts const& facts, table<op_id, std::uint32_t> const& at) {
    auto const undo = [&](op_id o) {
      for (auto s : facts.makes(o))
        if (c_->result.takes_over[s] != nothing<storage_id>) add_life(moved(at[o]), moved_end(at[o]), facts.bytes(s));
    };
    for (auto o : facts.changed())
      if (facts.row_of(o) != nothing<op_id>) undo(o);
    for (auto o : asked_ops_) {
      if (facts.row_of(o) != o) continue;
      undo(o);
      take_over(facts, at, facts.base_takeovers(o));
    }
    auto const& all = facts.new_takeovers();
    for (std::size_t k = 0; k < all.size();) {  // those of one op stand together
      auto end = k + 1;
      while (end < all.size() && facts.maker(all[end].to) == facts.maker(all[k].to)) ++end;
      take_over(facts, at, span_of(all.data() + k, end - k));
      k = end;
    }
  }
  void take_over(outlined_facts const& facts, table<op_id, std::uint32_t> const& at,
                 std::span<takeover_candidate const> candidates) {
    taken_.clear();
    for (auto const& x : candidates) {
      auto const base = facts.base_storage_count();
      auto const maker = facts.maker(x.to);
      auto const p = index(x.to) >= base ? new_[index(x.to) - base].first : moved(at[maker]);
      if (last_of(facts, x.from) != p) continue;
      if (facts.has_transfers() && held_until(facts, x.from) > start_at(p)) continue;
      bool free = true;
      for (auto const& t : taken_) free = free && t.from != x.from && t.to != x.to;
      if (!free) continue;
      taken_.push_back(x);
      add_life(p, p + 1, -facts.bytes(x.to));
    }
  }
  std::uint32_t last_of(outlined_facts const& facts, storage_id s) const {
    auto const base = facts.base_storage_count();
    if (index(s) >= base) return new_[index(s) - base].last;
    if (auto const& l = seen_[s]; l.round == round_) return l.last;
    return moved(c_->result.live[s].last);
  }

  // ---- sums

  /// The peak; adds up what is above the target.
  bytes_t sum_up(outlined_facts const& facts, bytes_t target) {
    auto const* bytes_at = c_->result.bytes_at.data();
    std::uint32_t position = 0;
    std::size_t e = 0;
    bytes_t more = 0, peak = facts.resident_bytes();
    bool any = false;
    double over[4] = {0, 0, 0, 0};
    auto const take = [&](bytes_t const* base, std::uint32_t count) {
      while (count > 0) {
        for (; e < events_.size() && events_[e].at <= position; ++e) more += events_[e].more;
        auto const length = e < events_.size() ? std::min(count, events_[e].at - position) : count;
        bytes_t top = base[0] + more;
        std::uint32_t k = 0;
        for (; k + 4 <= length; k += 4)
          for (std::uint32_t j = 0; j < 4; ++j) {
            auto const here = base[k + j] + more;
            top = std::max(top, here);
            over[j] += static_cast<double>(std::max<bytes_t>(here - target, 0));
          }
        for (; k < length; ++k) {
          auto const here = base[k] + more;
          top = std::max(top, here);
          over[0] += static_cast<double>(std::max<bytes_t>(here - target, 0));
        }
        peak = any ? std::max(peak, top) : top;
        any = true;
        base += length, position += length, count -= length;
      }
    };
    walk(
        0, [&](std::uint32_t p, std::uint32_t count) { take(bytes_at + p, count); },
        [&](std::size_t k) {
          bytes_t const here = between_[outline_->runs[k].before] + facts.workspace(row_of_run(facts, k));
          take(&here, 1);
        });
    excess_ = (over[0] + over[1]) + (over[2] + over[3]);
    return peak;
  }

  // ---- times

  /// Of one stream: one after the other.
  seconds_t latency(outlined_facts const& facts) const {
    seconds_t t = free_of_compute(first_change_);
    walk(
        first_change_,
        [&](std::uint32_t p, std::uint32_t count) {
          for (auto const end = p + count; p < end; ++p) t += seconds_[p];
        },
        [&](std::size_t k) { t += facts.seconds(row_of_run(facts, k)); });
    return t;
  }
  /// When the only stream is free before a position.
  seconds_t free_of_compute(std::uint32_t p) const {
    return p < c_->order.size() ? c_->result.start[p] : c_->result.latency;
  }

  static constexpr std::size_t at_stream(op_stream s) { return static_cast<std::size_t>(s); }
  static constexpr auto compute = static_cast<std::size_t>(op_stream::compute);

  /// The candidate's transfers, who waits for them, and when each stream is free.
  void find_transfers(flow_facts const& facts) {
    auto const& order = c_->order;
    auto const n = static_cast<std::uint32_t>(order.size());
    transfer_of_.assign(facts.op_count(), no_id);
    for (std::uint32_t p = 0; p < n; ++p)
      if (facts.stream(order[p]) != op_stream::compute) {
        transfer_of_[order[p]] = static_cast<std::uint32_t>(transfers_.size());
        transfers_.push_back({order[p], p, n, c_->result.end[p]});
      }
    special_.assign(n, 0);
    for (auto& f : free_) f.resize_for_overwrite(n + 1), f[0] = 0;
    std::size_t issued = 0;
    plain_vector<std::uint32_t> flying[3];
    std::size_t landed[3] = {0, 0, 0};
    for (std::uint32_t p = 0; p < n; ++p) {
      auto const o = order[p];
      auto const stream = at_stream(facts.stream(o));
      for (std::size_t k = 0; k < 3; ++k) free_[k][p + 1] = k == stream ? c_->result.end[p] : free_[k][p];
      special_[p] = stream != compute;
      for (auto before : facts.after(o)) special_[p] |= facts.stream(before) != op_stream::compute;
      if (stream != compute) flying[stream].push_back(static_cast<std::uint32_t>(issued++));
      else
        for (std::size_t k = 0; k < 3; ++k)
          for (auto& l = landed[k]; l < flying[k].size(); ++l) {
            auto& t = transfers_[flying[k][l]];
            if (t.end > c_->result.start[p]) break;
            t.landing = p;
          }
    }
  }
  std::uint32_t transfer_of(op_id o) const { return transfers_.empty() ? no_id : transfer_of_[o]; }
  seconds_t start_at(std::uint32_t position) const {
    return position < first_change_ ? c_->result.start[position] : starts_[position];
  }
  /// When the last transfer of a storage has ended.
  seconds_t held_until(outlined_facts const& facts, storage_id s) const {
    if (index(s) >= facts.base_storage_count()) return new_[index(s) - facts.base_storage_count()].held;
    seconds_t until = seen_[s].round == round_ ? seen_[s].held : 0;
    if (transfers_.empty()) return until;
    auto const see = [&](op_id o) {
      if (auto const t = transfer_of(o); t != no_id && facts.row_of(o) == o) until = std::max(until, ends_[t]);
    };
    for_each_toucher(s, see);
    return until;
  }

  /// Runs what follows the first change as the simulator does: when ops start, when transfers end, and up to which position
  /// they hold what they move. The latency.
  seconds_t run_all(outlined_facts const& facts, table<op_id, std::uint32_t> const& at) {
    auto const& runs = outline_->runs;
    auto const n = static_cast<std::uint32_t>(c_->order.size());
    bool const had = !transfers_.empty();
    auto const all = static_cast<std::uint32_t>(n + runs.size() - gone_.size());
    if (!had) special_.assign(n, 0);
    for (auto o : facts.changed()) special_[at[o]] |= 2;
    starts_.resize(std::max<std::size_t>(starts_.size(), all));
    ends_.resize(transfers_.size() + runs.size()), release_.resize(ends_.size());
    seconds_t free[3] = {0, 0, 0}, latest = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      free[k] = had ? free_[k][first_change_] : k == compute ? free_of_compute(first_change_) : 0;
      flying_[k].clear(), landed_[k] = 0;
    }
    for (std::size_t k = 0; k < transfers_.size(); ++k) {
      auto const& t = transfers_[k];
      bool const runs_still = facts.row_of(t.op) != nothing<op_id>;
      ends_[k] = runs_still ? t.end : 0;  // who waits for what does not run waits for nothing
      release_[k] = t.landing - 1;
      if (t.position < first_change_) {
        latest = std::max(latest, t.end);
        if (t.landing >= first_change_) flying_[at_stream(facts.stream(t.op))].push_back(static_cast<std::uint32_t>(k));
      }
    }
    next_landing_ = 0;
    auto position = first_change_;
    auto const land = [&](seconds_t now) {
      next_landing_ = never;
      for (std::size_t k = 0; k < 3; ++k) {
        auto const& q = flying_[k];
        auto& l = landed_[k];
        for (; l < q.size() && ends_[q[l]] <= now; ++l) release_[q[l]] = position - 1;
        if (l < q.size()) next_landing_ = std::min(next_landing_, ends_[q[l]]);
      }
    };
    auto const run = [&](op_id row, std::uint32_t number) {  // of a transfer
      auto const stream = at_stream(facts.stream(row));
      auto t = free[stream];
      for (auto before : facts.after(row)) {
        if (facts.stream(before) == op_stream::compute) continue;
        auto const k = index(before) < facts.base_op_count()
                           ? transfer_of_[before]
                           : static_cast<std::uint32_t>(transfers_.size() + index(before) - facts.base_op_count());
        t = std::max(t, ends_[k]);
      }
      if (stream == compute) {
        if (t >= next_landing_) land(t);
      } else {
        t = std::max(t, free[compute]);
      }
      starts_[position++] = t;
      free[stream] = t + facts.seconds(row);
      if (stream == compute) return;
      ends_[number] = free[stream];
      latest = std::max(latest, free[stream]);
      next_landing_ = std::min(next_landing_, free[stream]);
      flying_[stream].push_back(number);
    };
    walk(
        first_change_,
        [&](std::uint32_t p, std::uint32_t count) {
          for (auto const end = p + count; p < end; ++p) {
            if (special_[p]) {
              auto const o = c_->order[p];
              run(facts.row_of(o), transfer_of(o));
              continue;
            }
            auto const t = free[compute];
            if (t >= next_landing_) land(t);
            starts_[position++] = t;
            free[compute] = t + seconds_[p];
          }
        },
        [&](std::size_t k) { run(row_of_run(facts, k), static_cast<std::uint32_t>(transfers_.size() + k)); });
    for (std::size_t s = 0; s < 3; ++s)
      for (auto l = landed_[s]; l < flying_[s].size(); ++l) release_[flying_[s][l]] = all - 1;
    for (auto o : facts.changed()) special_[at[o]] &= 1;
    return std::max(latest, free[compute]);
  }

  candidate const* c_ = nullptr;
  plain_vector<seconds_t> seconds_;  // by position
  plain_vector<bytes_t> between_;    // what lives across the border before a position
  // of an outline:
  graph_edit const* outline_ = nullptr;
  std::uint32_t round_ = 0;
  table<storage_id, life> seen_;       // of the candidate's storages
  table<op_id, std::uint32_t> asked_;  // the round in which what it takes over was last read
  plain_vector<storage_id> noted_;     // those that are touched
  plain_vector<op_id> asked_ops_;
  plain_vector<std::uint32_t> gone_;  // positions that are left out, ascending
  plain_vector<new_storage> new_;     // by number behind the candidate's
  plain_vector<event> events_;
  plain_vector<takeover_candidate> taken_;
  double excess_ = 0;
  csr<storage_id, value_id> const* values_ = nullptr;
  // of the candidate's transfers, in their order:
  plain_vector<transfer> transfers_;
  table<op_id, std::uint32_t> transfer_of_;
  plain_vector<std::uint8_t> special_;  // by position: 1 for transfers and who waits for one, 2 for new rows
  plain_vector<seconds_t> free_[3];     // by position: when each stream is free before it
  // of an outline, behind its first change:
  static constexpr seconds_t never = 1e300;
  std::uint32_t first_change_ = 0;
  plain_vector<seconds_t> starts_;       // by position of the edited order
  plain_vector<seconds_t> ends_;         // of transfers, then by run
  plain_vector<std::uint32_t> release_;  // of these: the last position at which they hold what they move
  plain_vector<std::uint32_t> flying_[3];
  std::size_t landed_[3] = {0, 0, 0};
  seconds_t next_landing_ = 0;
};

}}  // namespace neap::v0
