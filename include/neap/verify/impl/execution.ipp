// The bodies of <neap/verify/execution.hpp>.
#pragma once

#include <neap/verify/execution.hpp>

#include <neap/core/csr.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/verify/bound.hpp>
#include <neap/verify/equivalence.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

class execution_check {
 public:
  execution_check(plan_parts const& p, verification& out)
      : p_(p),
        g_(p.g),
        out_(out),
        n_(static_cast<std::uint32_t>(p.steps.size())) {}

  void operator()() {
    if (!well_formed()) return;
    walk_values();
    walk_time();
    check_buffers();
    check_layouts();
    sweep();
    check_figures();
  }

 private:
  using kind = violation_kind;
  static constexpr bytes_t most = bytes_t{1} << 60;
  void report(kind k, std::uint32_t step, storage_id s, std::string what) {
    out_.add({k, step, step < n_ ? p_.steps[step].op : nothing<op_id>, s, std::move(what)});
  }
  std::string at(std::uint32_t step) const {
    return "step " + std::to_string(step) + ", " + describe(g_, p_.steps[step].op);
  }
  static std::string name(storage_id s) { return "storage " + std::to_string(index(s)); }
  static bool is_size(bytes_t b) { return b >= 0 && b <= most; }

  bool well_formed() {
    auto const bad = [&](std::string what) { report(kind::malformed, no_id, nothing<storage_id>, std::move(what)); };
    auto const before_count = out_.violations().size();
    step_of_.assign(g_.op_count(), no_id);
    bool each_once = n_ == g_.op_count();
    for (std::uint32_t i = 0; i < n_; ++i) {
      auto const& s = p_.steps[i];
      if (index(s.op) >= g_.op_count() || step_of_[s.op] != no_id) {
        each_once = false;
        continue;
      }
      step_of_[s.op] = i;
      if (!is_size(s.workspace_bytes) || !is_size(s.workspace_offset)) bad("step " + std::to_string(i) + ": workspace");
      if (!std::isfinite(s.start) || !std::isfinite(s.end)) bad("step " + std::to_string(i) + ": times");
    }
    if (!each_once)
      report(kind::not_each_op_once, no_id, nothing<storage_id>, "the steps are not the graph's ops, each once");
    for (auto const& b : p_.buffers) {
      bool const ids = index(b.storage) < g_.storage_count() &&
                       (b.takes_over == nothing<storage_id> || index(b.takes_over) < g_.storage_count());
      bool const steps = b.first <= b.last && (b.last < n_ || n_ == 0);
      if (!ids || !steps || !is_size(b.offset) || !is_size(b.bytes))
        bad("a buffer is not of this graph, these steps, or any memory");
    }
    for (auto const& w : p_.waits)
      if (w.step > n_ || w.transfer >= n_ || w.transfer >= w.step) bad("a wait is not for an earlier step");
    if (p_.options.alignment < 1 || p_.options.alignment > most) bad("the alignment is not a number of bytes");
    for (auto b : {p_.peak, p_.resident, p_.arena, p_.bound})
      if (!is_size(b)) bad("a figure is not a number of bytes");
    return out_.violations().size() == before_count;
  }

  bool on_device(storage_id s) const { return rounded(g_.bytes(s), p_.options.alignment) > 0; }

  /// Data order and versions; learns when each storage is made and last touched.
  void walk_values() {
    made_.assign(g_.storage_count(), no_id);
    touched_.assign(g_.storage_count(), no_id);
    kept_.assign(g_.storage_count(), 0);
    std::vector<std::uint32_t> writes(g_.storage_count()), born(g_.value_count());
    std::vector<bool> exists(g_.value_count());
    for (auto v : g_.sources()) exists[index(v)] = true;
    for (std::uint32_t i = 0; i < n_; ++i) {
      auto const o = p_.steps[i].op;
      for (auto v : g_.inputs(o)) {
        auto const s = g_.storage(v);
        if (!exists[index(v)])
          report(kind::read_before_made, i, s, at(i) + " reads value " + std::to_string(index(v)) + ", not made yet");
        else if (born[index(v)] != writes[index(s)])
          report(kind::overwritten_before_read, i, s,
                 at(i) + " reads value " + std::to_string(index(v)) + ", overwritten since");
        touched_[s] = i;
      }
      for (auto v : g_.outputs(o)) {  // views of inputs show the storage as it was before the op's own updates
        auto const s = g_.storage(v);
        exists[index(v)] = true;
        born[index(v)] = writes[index(s)];
        touched_[s] = i;
        if (made_[s] == no_id && !g_.is_source(s)) made_[s] = i;
      }
      for (auto v : g_.outputs(o))
        if (g_.record(v).alias == alias_kind::update) born[index(v)] = ++writes[index(g_.storage(v))];
      for (auto v : g_.outputs(o))  // a view of another output of the op shows what that one is
        if (auto const& r = g_.record(v); r.alias == alias_kind::view && r.of <= -2)
          if (auto const j = static_cast<std::size_t>(-2 - r.of); j < g_.outputs(o).size())
            born[index(v)] = born[index(g_.outputs(o)[j])];
    }
    for (auto v : g_.kept()) {
      auto const s = g_.storage(v);
      kept_[s] = 1;
      if (!exists[index(v)] || born[index(v)] != writes[index(s)])
        report(kind::overwritten_before_read, n_, s,
               "kept value " + std::to_string(index(v)) + " is overwritten before the end");
    }
  }

  using ordinals = std::array<std::uint32_t, 2>;  // of each copy stream: how many of its transfers have surely ended
  op_stream stream_of(op_id o) const {
    return is_store(g_, o) ? op_stream::to_host : is_load(g_, o) ? op_stream::to_device : op_stream::compute;
  }
  /// Where the walk of walk_time() is.
  struct clock {
    std::vector<transfer_wait> waits;  // by step
    std::size_t next_wait = 0;
    ordinals compute{0, 0}, copy[2] = {{0, 0}, {0, 0}};
    std::vector<ordinals> knew;                          // what a transfer had waited for itself
    std::vector<seconds_t> touch_end, value_end, ended;  // of storages, values, steps
    seconds_t free_at[3] = {0, 0, 0}, last = 0;
  };

  /// Streams, times, and what each step knows of the transfers before it. Times are worked out from durations, streams and
  /// waits alone; those that the plan claims are compared with them.
  void walk_time() {
    auto const issued = number_transfers();
    clock c;
    c.waits = p_.waits;
    std::sort(c.waits.begin(), c.waits.end());
    c.knew.resize(n_), c.ended.assign(n_, 0);
    c.touch_end.assign(g_.storage_count(), 0), c.value_end.assign(g_.value_count(), 0);
    known_at_.assign(n_ + 1, {0, 0});
    in_flight_.assign(g_.storage_count(), {0, 0});
    for (std::uint32_t i = 0; i < n_; ++i) {
      auto earliest = learn_before(i, c);
      earliest = std::max({earliest, check_reads(i, c), check_writes(i, c)});
      run_step(i, earliest, c);
    }
    for (; c.next_wait < c.waits.size(); ++c.next_wait) learn(c, c.compute, c.waits[c.next_wait].transfer);
    for (std::size_t j = 0; j < 2; ++j)
      if (c.compute[j] < issued[j])
        report(kind::missing_wait, n_, nothing<storage_id>, "the step ends without waiting for its last transfer");
    if (differ(p_.latency, c.last))
      report(kind::wrong_latency, no_id, nothing<storage_id>,
             "the last step ends at " + std::to_string(c.last) + " s, the plan says " + std::to_string(p_.latency));
  }
  /// Gives transfers their numbers in their streams, and how many there are.
  ordinals number_transfers() {
    ordinal_.assign(n_, 0);
    ordinals issued{0, 0};
    for (std::uint32_t i = 0; i < n_; ++i) {
      auto const s = stream_of(p_.steps[i].op);
      if (p_.steps[i].stream != s)
        report(kind::wrong_stream, i, nothing<storage_id>, at(i) + " is on another stream than its op");
      if (s != op_stream::compute) ordinal_[i] = ++issued[static_cast<std::size_t>(s) - 1];
    }
    for (auto const& w : p_.waits)
      if (ordinal_[w.transfer] == 0)
        report(kind::malformed, w.step, nothing<storage_id>, "a wait for a step that is no transfer");
    return issued;
  }
  void learn(clock const& c, ordinals& k, std::uint32_t transfer) const {
    if (ordinal_[transfer] == 0) return;
    for (std::size_t j = 0; j < 2; ++j) k[j] = std::max(k[j], c.knew[transfer][j]);
    auto& x = k[static_cast<std::size_t>(stream_of(p_.steps[transfer].op)) - 1];
    x = std::max(x, ordinal_[transfer]);
  }
  /// What a step knows by its stream and its waits, and when it can begin by them.
  seconds_t learn_before(std::uint32_t i, clock& c) {
    auto const s = stream_of(p_.steps[i].op);
    auto const k = static_cast<std::size_t>(s);
    ordinals known = c.compute;
    if (s != op_stream::compute) {
      for (std::size_t j = 0; j < 2; ++j) known[j] = std::max(known[j], c.copy[k - 1][j]);
      known[k - 1] = std::max(known[k - 1], ordinal_[i] - 1);
    }
    seconds_t earliest = c.free_at[k];
    if (s != op_stream::compute) earliest = std::max(earliest, c.free_at[0]);
    for (; c.next_wait < c.waits.size() && c.waits[c.next_wait].step == i; ++c.next_wait) {
      learn(c, known, c.waits[c.next_wait].transfer);
      earliest = std::max(earliest, c.ended[c.waits[c.next_wait].transfer]);
    }
    (s == op_stream::compute ? c.compute : c.copy[k - 1]) = known;
    c.knew[i] = known;
    known_at_[i] = c.compute;
    return earliest;
  }
  /// When all that a step reads is there.
  seconds_t check_reads(std::uint32_t i, clock const& c) {
    seconds_t earliest = 0;
    for (auto v : g_.inputs(p_.steps[i].op)) {
      earliest = std::max(earliest, c.value_end[index(v)]);
      auto const p = g_.producer(v);
      if (p == nothing<op_id> || step_of_[p] >= i || ordinal_[step_of_[p]] == 0) continue;
      auto const t = step_of_[p];
      if (c.knew[i][static_cast<std::size_t>(stream_of(p)) - 1] < ordinal_[t])
        report(kind::missing_wait, i, g_.storage(v), at(i) + " does not wait for " + at(t));
    }
    return earliest;
  }
  /// When what it writes over is used no more.
  seconds_t check_writes(std::uint32_t i, clock const& c) {
    seconds_t earliest = 0;
    for (auto v : g_.outputs(p_.steps[i].op)) {
      auto const base = g_.overwrites(v);
      if (g_.record(v).alias != alias_kind::update && base == nothing<value_id>) continue;
      auto const t = g_.storage(base == nothing<value_id> ? v : base);
      earliest = std::max(earliest, c.touch_end[index(t)]);
      for (std::size_t j = 0; j < 2; ++j)
        if (in_flight_[t][j] > c.knew[i][j])
          report(kind::missing_wait, i, t, at(i) + " overwrites " + name(t) + " without waiting for its transfer");
    }
    return earliest;
  }
  void run_step(std::uint32_t i, seconds_t earliest, clock& c) {
    auto const& step = p_.steps[i];
    auto const o = step.op;
    auto const s = stream_of(o);
    auto const k = static_cast<std::size_t>(s);
    seconds_t const claimed = step.end - step.start;
    seconds_t const takes = p_.seconds.empty() ? std::max(claimed, 0.0) : p_.seconds[index(o)];
    seconds_t const end = earliest + takes;
    if (step.start < 0 || step.end < step.start || differ(step.start, earliest))
      report(kind::bad_time, i, nothing<storage_id>,
             at(i) + " can begin at " + std::to_string(earliest * 1e6) +
                 " us, when its stream and what it waits for are done; the plan says " +
                 std::to_string(step.start * 1e6));
    if (std::abs(claimed - takes) > 1e-9 * std::max(takes, std::abs(step.end)) + 1e-15)
      report(kind::wrong_duration, i, nothing<storage_id>,
             at(i) + " takes " + std::to_string(takes * 1e6) + " us, the plan says " + std::to_string(claimed * 1e6));
    c.free_at[k] = std::max(c.free_at[k], end);
    c.ended[i] = end;
    c.last = std::max(c.last, end);
    auto const touched = [&](value_id v) {
      auto const t = g_.storage(v);
      c.touch_end[index(t)] = std::max(c.touch_end[index(t)], end);
      if (s != op_stream::compute) in_flight_[t][k - 1] = ordinal_[i];
    };
    for (auto v : g_.inputs(o)) touched(v);
    for (auto v : g_.outputs(o)) touched(v), c.value_end[index(v)] = end;
  }

  /// Each storage has its buffer, large enough, aligned, inside the arena, for as long as it is live.
  void check_buffers() {
    buffer_.assign(g_.storage_count(), no_id);
    auto const align = p_.options.alignment;
    for (std::uint32_t i = 0; i < p_.buffers.size(); ++i) {
      auto const& b = p_.buffers[i];
      auto const s = b.storage;
      if (buffer_[s] != no_id) {
        report(kind::missing_buffer, b.first, s, name(s) + " has two buffers");
        continue;
      }
      buffer_[s] = i;
      if (b.bytes != rounded(g_.bytes(s), align))
        report(kind::wrong_size, b.first, s,
               name(s) + " needs " + std::to_string(rounded(g_.bytes(s), align)) + " bytes, its buffer has " +
                   std::to_string(b.bytes));
      if (b.offset % align)
        report(kind::misaligned, b.first, s,
               name(s) + " lies at " + std::to_string(b.offset) + ", which is not aligned");
      if (b.offset + b.bytes > p_.arena) report(kind::outside_arena, b.first, s, name(s) + " reaches beyond the arena");
      bool const to_end = b.resident || kept_[s];
      if (b.resident != g_.is_resident(s))
        report(kind::freed_early, b.first, s, name(s) + " is resident, or is not, and the plan says otherwise");
      if (g_.is_source(s) && b.first != 0 && (b.resident || touched_[s] != no_id))
        report(kind::taken_late, b.first, s,
               name(s) + (b.resident ? " is resident" : " is donated") + " and must be there from the beginning");
      if (to_end && n_ && b.last != n_ - 1) report(kind::freed_early, b.last, s, name(s) + " must live to the end");
      if (!b.resident && made_[s] != no_id && b.first > made_[s])
        report(kind::taken_late, made_[s], s, name(s) + " is made before its buffer is there");
      if (touched_[s] != no_id && b.last < touched_[s])
        report(kind::freed_early, touched_[s], s,
               at(touched_[s]) + " touches " + name(s) + ", freed after step " + std::to_string(b.last));
      if (!to_end && b.last + 1 < n_)
        for (std::size_t j = 0; j < 2; ++j)
          if (in_flight_[s][j] > known_at_[b.last + 1][j]) {
            report(kind::freed_in_flight, b.last, s, name(s) + " is freed while its transfer may be under way");
            break;
          }
    }
    for (auto s : g_.storages())
      if (on_device(s) && buffer_[s] == no_id && (g_.is_resident(s) || touched_[s] != no_id))
        report(kind::missing_buffer, no_id, s, name(s) + " has no buffer");
    for (std::uint32_t i = 0; i < n_; ++i) {
      auto const& step = p_.steps[i];
      auto const need = rounded(flow::workspace(g_, step.op), align);
      if (step.workspace_bytes != need)
        report(step.workspace_bytes < need && step.workspace_bytes == 0 ? kind::missing_workspace : kind::wrong_size, i,
               nothing<storage_id>,
               at(i) + " needs a workspace of " + std::to_string(need) + " bytes, has " +
                   std::to_string(step.workspace_bytes));
      if (step.workspace_bytes == 0) continue;
      if (step.workspace_offset % align)
        report(kind::misaligned, i, nothing<storage_id>, at(i) + ": its workspace is not aligned");
      if (step.workspace_offset + step.workspace_bytes > p_.arena)
        report(kind::outside_arena, i, nothing<storage_id>, at(i) + ": its workspace reaches beyond the arena");
    }
  }

  /// Every value on the device lies inside its storage, views in that of their base.
  void check_layouts() {
    for (auto v : g_.values()) {
      auto const& r = g_.record(v);
      auto const& l = g_.layout(v);
      if (r.producer != nothing<op_id> && r.alias != alias_kind::fresh) {
        auto const in = g_.inputs(r.producer);
        auto const outs = g_.outputs(r.producer);
        auto const of = r.of >= 0 ? static_cast<std::size_t>(r.of) : static_cast<std::size_t>(-2 - r.of);
        if (r.of == -1 || of >= (r.of >= 0 ? in.size() : outs.size()) ||
            g_.storage(r.of >= 0 ? in[of] : outs[of]) != r.storage)
          report(kind::outside_storage, no_id, r.storage,
                 "value " + std::to_string(index(v)) + " does not lie in the storage of its base");
      }
      if (!on_device(r.storage)) continue;
      std::int64_t low = l.offset, high = l.offset;
      bool empty = false;
      for (int i = 0; i < l.type.rank(); ++i) {
        empty |= l.type.dims[i] == 0;
        (l.strides[i] < 0 ? low : high) += (l.type.dims[i] - 1) * l.strides[i];
      }
      if (!empty && (low < 0 || bytes_of(l.type.element, high + 1) > g_.bytes(r.storage)))
        report(kind::outside_storage, no_id, r.storage,
               "value " + std::to_string(index(v)) + " reaches beyond its storage");
    }
  }

  enum class step_id : std::uint32_t {};
  /// For each step the buffers of some bytes that f gives it, ascending.
  template <class F>
  csr<step_id, std::uint32_t> buffers_by_step(F f) const {
    csr<step_id, std::uint32_t> rows;
    rows.build(n_ + 1, [&](auto&& pair) {
      for (std::uint32_t i = 0; i < p_.buffers.size(); ++i)
        if (p_.buffers[i].bytes > 0) pair(step_id{f(p_.buffers[i])}, i);
    });
    return rows;
  }
  /// The living buffers by address, from step to step.
  void sweep() {
    auto const begin = buffers_by_step([](plan_buffer const& b) { return b.first; });
    auto const end = buffers_by_step([](plan_buffer const& b) { return b.last; });
    std::map<bytes_t, std::pair<bytes_t, std::uint32_t>> living;  // begin -> end, buffer
    auto const collides = [&](bytes_t from, bytes_t to) -> std::uint32_t {
      auto const next = living.lower_bound(from);
      if (next != living.end() && next->first < to) return next->second.second;
      if (next != living.begin() && std::prev(next)->second.first > from) return std::prev(next)->second.second;
      return no_id;
    };
    auto const leave = [&](std::uint32_t i) {
      auto const it = living.find(p_.buffers[i].offset);
      if (it != living.end() && it->second.second == i) living.erase(it);
    };
    std::vector<bool> given(p_.buffers.size());
    auto const place = [&](std::uint32_t i, std::uint32_t step) {
      auto const& b = p_.buffers[i];
      if (auto const other = collides(b.offset, b.offset + b.bytes); other != no_id)
        report(kind::overlap, step, b.storage,
               name(b.storage) + " and " + name(p_.buffers[other].storage) + " share bytes");
      else living.emplace(b.offset, std::pair{b.offset + b.bytes, i});
    };
    for (std::uint32_t step = 0; step < std::max(n_, 1u); ++step) {
      for (auto i : begin[step_id{step}])
        if (g_.is_source(p_.buffers[i].storage)) place(i, step);  // the first op may take over a donated input
      for (auto i : begin[step_id{step}]) {
        auto const& b = p_.buffers[i];
        if (auto const base = overwritten_by(b.storage); base != nothing<storage_id> && base != b.takes_over)
          report(kind::bad_takeover, step, b.storage,
                 name(b.storage) + " is written over " + name(base) + " and does not take its place");
        if (b.takes_over == nothing<storage_id>) continue;
        auto const from = buffer_[b.takes_over];
        if (auto const why = refuses_takeover(b, from, step); !why.empty()) {
          report(kind::bad_takeover, step, b.storage,
                 name(b.storage) + " takes the place of " + name(b.takes_over) + ": " + why);
          continue;
        }
        if (given[from]) report(kind::bad_takeover, step, b.storage, name(b.takes_over) + " is taken over twice");
        given[from] = true;
        leave(from);
      }
      for (auto i : begin[step_id{step}])
        if (!g_.is_source(p_.buffers[i].storage)) place(i, step);
      if (n_ && p_.steps[step].workspace_bytes > 0) {
        auto const from = p_.steps[step].workspace_offset, to = from + p_.steps[step].workspace_bytes;
        if (auto const other = collides(from, to); other != no_id)
          report(kind::workspace_overlap, step, p_.buffers[other].storage,
                 at(step) + ": its workspace and " + name(p_.buffers[other].storage) + " share bytes");
      }
      for (auto i : end[step_id{step}]) leave(i);
    }
  }

  /// The storage in whose place an op writes another one; nothing if it does not.
  storage_id overwritten_by(storage_id s) const {
    auto const base = g_.overwrites(g_.record(s).first);
    return base == nothing<value_id> ? nothing<storage_id> : g_.storage(base);
  }
  std::string refuses_takeover(plan_buffer const& b, std::uint32_t from, std::uint32_t step) const {
    if (from == no_id) return "it has no buffer";
    auto const& f = p_.buffers[from];
    auto const o = p_.steps[step].op;
    bool const overwrites = overwritten_by(b.storage) == b.takes_over;
    if (!p_.options.takeover && !overwrites) return "the plan's options forbid it";
    if (f.offset != b.offset || f.bytes != b.bytes) return "their places differ";
    if (f.resident || kept_[f.storage]) return "that one lives to the end";
    if (f.last != step || touched_[f.storage] != step) return "that one does not die there";
    if (made_[b.storage] != step || is_transfer(g_, o)) return "it is not made there by a computation";
    for (auto v : g_.outputs(o))
      if (g_.storage(v) == f.storage) return "the op writes that one too";
    for (std::size_t j = 0; j < 2; ++j)
      if (in_flight_[f.storage][j] > known_at_[step][j]) return "its transfer may be under way";
    auto const in = g_.inputs(o);
    auto const outs = g_.outputs(o);
    for (std::size_t j = 0; j < outs.size(); ++j) {
      if (g_.storage(outs[j]) != b.storage || g_.record(outs[j]).alias != alias_kind::fresh) continue;
      bool reads = false;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (g_.storage(in[i]) != f.storage) continue;
        reads = true;
        if (!overwrites && !flow::may_take_over(g_, o, i, j)) return "the operator does not allow it";
      }
      if (!reads) return "the op does not read it";
    }
    return {};
  }

  void check_figures() {
    std::vector<bytes_t> at_step(n_ + 2, 0);
    bytes_t top = 0, resident = 0;
    for (auto const& b : p_.buffers) {
      top = std::max(top, b.offset + b.bytes);
      if (b.resident) resident += b.bytes;
      auto const first =
          b.takes_over == nothing<storage_id> ? b.first : b.first + 1;  // that step is counted with what it takes over
      if (first > b.last) continue;
      at_step[first] += b.bytes;
      at_step[b.last + 1] -= b.bytes;
    }
    bytes_t sum = 0, peak = n_ ? 0 : resident;
    for (std::uint32_t i = 0; i < n_; ++i) {
      sum += at_step[i];
      peak = std::max(peak, sum + p_.steps[i].workspace_bytes);
      if (p_.steps[i].workspace_bytes > 0)
        top = std::max(top, p_.steps[i].workspace_offset + p_.steps[i].workspace_bytes);
    }
    auto const wrong = [&](kind k, char const* what, bytes_t is, bytes_t said) {
      if (is != said)
        report(k, no_id, nothing<storage_id>,
               std::string(what) + std::to_string(is) + " bytes, the plan says " + std::to_string(said));
    };
    wrong(kind::wrong_peak, "the peak is ", peak, p_.peak);
    wrong(kind::wrong_resident, "what is resident takes ", resident, p_.resident);
    wrong(kind::wrong_arena, "the highest buffer ends at ", top, p_.arena);
    peak_bound_check const least(p_.original, p_.options);
    auto bound = least(g_.runs_in_parts());
    if (bound > peak && (p_.rewritten || computes_twice(p_.original)))
      bound = least.at_end(true);  // what holds of the original's ops holds no more
    wrong(kind::wrong_bound, "the lower bound is ", bound, p_.bound);
    if (p_.bound > peak) report(kind::wrong_bound, no_id, nothing<storage_id>, "the lower bound is above the peak");
  }

  plan_parts const& p_;
  op_graph const& g_;
  verification& out_;
  std::uint32_t n_;
  table<op_id, std::uint32_t> step_of_;
  table<storage_id, std::uint32_t> made_, touched_, buffer_;
  table<storage_id, std::uint8_t> kept_;
  std::vector<std::uint32_t> ordinal_;  // by step: 1, 2, ... on its copy stream; 0: not a transfer
  std::vector<std::array<std::uint32_t, 2>>
      known_at_;  // by step: transfers that a compute op there knows to have ended
  table<storage_id, std::array<std::uint32_t, 2>> in_flight_;  // the last transfers that touch it
};

NEAP_FUNC void check_execution(plan_parts const& p, verification& out) {
  execution_check check(p, out);
  check();
}

}}}}  // namespace neap::v0::detail::plan_check
