// The bodies of <neap/blocks/block_phases.hpp>.
#pragma once

#include <neap/blocks/block_phases.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/work_meter.hpp>

#include <limits>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC block_graph_facts::block_graph_facts(block_graph const& g)
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

NEAP_FUNC std::int64_t block_graph_facts::bytes_of(set const& s) const {
  std::int64_t sum = 0;
  s.for_each([&](std::size_t d) { sum += graph.bytes[d]; });
  return sum;
}

NEAP_FUNC void block_phases::set_interval(std::uint32_t i, interval_ends const& now) {
  if (now_.ends[i] == now) return;
  changes_.push_back({true, i, now_.ends[i], {}});
  put_interval(i, now, now_.ends[i]);
  now_.ends[i] = now;
}

NEAP_FUNC void block_phases::set_block(std::uint32_t k, block_choice const& now) {
  if (now_.choices[k] == now) return;
  changes_.push_back({false, k, {}, now_.choices[k]});
  put_block(k, now);
}

NEAP_FUNC void block_phases::evaluate() {
  before_.clear();
  for (auto t : marked_) {
    before_.emplace_back(t, phases_[t]);
    phases_[t] = phase_cost(t);
    dirty_[t] = 0;
  }
  marked_.clear();
  sum_up();
}

NEAP_FUNC void block_phases::roll_back() {
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

NEAP_FUNC void block_phases::restore(place const& p) {
  for (std::uint32_t i = 0; i < f_.intervals.size(); ++i) set_interval(i, p.ends[i]);
  for (std::uint32_t k = 0; k < f_.blocks; ++k) set_block(k, p.choices[k]);
  evaluate();
  changes_.clear();
}

NEAP_FUNC block_graph_answer block_phases::answer() {
  block_graph_answer a{time_, peak_, {}};
  for (std::uint32_t t = 0; t < f_.phases; ++t) (void)phase_cost(t, &a.steps);
  return a;
}

NEAP_FUNC void block_phases::begin() {
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

NEAP_FUNC void block_phases::put_interval(std::uint32_t i, interval_ends const& now,
                                          std::optional<interval_ends> const& old) {
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

NEAP_FUNC void block_phases::take_block(std::uint32_t k, bool in) {
  auto const& w = now_.choices[k];
  auto const saved = g_.blocks[k].options[w.option].saved;
  for (auto t = w.since + 1; t <= f_.back_of(k); ++t) saved_at_[t] += in ? saved : -saved;
  auto& list = forced_[w.since];
  if (w.since == k) return;
  if (in) list.insert(std::lower_bound(list.begin(), list.end(), k), k);
  else list.erase(std::lower_bound(list.begin(), list.end(), k));
}

NEAP_FUNC void block_phases::put_block(std::uint32_t k, block_choice const& now) {
  auto const old = now_.choices[k];
  take_block(k, false);
  now_.choices[k] = now;
  take_block(k, true);
  mark(k);
  for (auto t = std::min(old.since, now.since); t <= f_.back_of(k); ++t) mark(t);
}

NEAP_FUNC block_phases::set const& block_phases::reads_of(run const& r) const {
  return r.what == block_graph_step::action::again      ? f_.again_reads[r.block][now_.choices[r.block].option]
         : r.what == block_graph_step::action::backward ? f_.backward_reads[r.block][now_.choices[r.block].option]
                                                        : f_.reads[r.block];
}

NEAP_FUNC std::int64_t block_phases::find_runs(std::uint32_t t, set const& in) {
  using action = block_graph_step::action;
  auto const b = f_.main_of(t);
  bool const back = t >= f_.blocks;
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
  return saved;
}

NEAP_FUNC block_phases::cost block_phases::cost_alone(run const& r) const {
  using action = block_graph_step::action;
  auto const& x = g_.blocks[r.block];
  auto const& o = x.options[now_.choices[r.block].option];
  switch (r.what) {
    case action::pass: return {x.pass_time, x.pass_peak};
    case action::again: return {o.again_time, o.again_peak};
    case action::save: return {o.forward_time, o.forward_peak};
    case action::backward: return {o.backward_time, o.backward_peak - o.saved};
    case action::drop:
    case action::load: break;
  }
  return {};
}

NEAP_FUNC block_phases::cost block_phases::phase_cost(std::uint32_t t, std::vector<block_graph_step>* steps) {
  using action = block_graph_step::action;
  auto const in = held_[t] | loaded_[t];
  auto saved = find_runs(t, in);
  work_meter::add(40 + 80 * runs_.size());
  cost c;
  set alive = held_[t + 1];
  auto bytes = held_bytes_[t + 1];  // of what is alive
  if (steps) after_.assign(runs_.size(), {});
  for (std::size_t i = 0; i < runs_.size(); ++i) {  // from the last to the first
    auto const& r = runs_[i];
    auto const& x = g_.blocks[r.block];
    if (steps) after_[i] = alive;
    auto const own = cost_alone(r);
    if (r.what == action::save && i > 0)  // of the main part it is not in the sum
      saved -= x.options[now_.choices[r.block].option].saved;
    bool const whole = i == 0 || r.what == action::again;
    c.time += whole ? own.time : std::max(0.0, own.time - x.once_time);
    auto const& reads = reads_of(r);
    bytes += f_.bytes_of(reads - alive);
    alive |= reads;
    // The block counts its data once it has made them; what of them is there before is there besides.
    set const own_data = r.what == action::backward ? f_.makes[r.block] : f_.makes[r.block] - in;
    auto const others = bytes - f_.bytes_of(own_data & alive);
    c.peak = std::max(c.peak, (i == 0 ? g_.during[t] : g_.before[t]) + saved + others + own.peak);
    if (r.what != action::backward) alive -= own_data, bytes = others;
  }
  set const loaded = alive & loaded_[t];
  loaded.for_each([&](std::size_t d) { c.time += g_.move_time[d]; });
  if (steps) add_steps(t, alive, loaded, *steps);
  return c;
}

NEAP_FUNC void block_phases::add_steps(std::uint32_t t, set const& alive, set const& loaded,
                                       std::vector<block_graph_step>& steps) const {
  using action = block_graph_step::action;
  auto there = held_[t];
  auto const drop = [&](set const& wanted) {
    (there - wanted).for_each([&](std::size_t d) {
      steps.push_back({action::drop, static_cast<std::uint32_t>(d), 0});
    });
    there &= wanted;
  };
  drop(alive);
  loaded.for_each([&](std::size_t d) {
    steps.push_back({action::load, static_cast<std::uint32_t>(d), 0});
    there.set(d);
  });
  for (std::size_t i = runs_.size(); i-- > 0;) {
    auto const& r = runs_[i];
    steps.push_back({r.what, r.block, now_.choices[r.block].option});
    if (r.what != action::backward) there |= f_.makes[r.block];
    drop(after_[i]);
  }
}

}}}  // namespace neap::v0::detail
