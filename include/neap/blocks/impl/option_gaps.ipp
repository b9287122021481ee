// The bodies of <neap/blocks/option_gaps.hpp>.
#pragma once

#include <neap/blocks/option_gaps.hpp>

#include <neap/blocks/use_intervals.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC option_gaps::option_gaps(block_graph const& g, std::uint64_t seed)
    : g_(g),
      state_(g),
      draw_(seed),
      dearness_(detail::solver_policy::block_byte_price * state_.facts().time_once /
                static_cast<double>(state_.facts().bytes_once + 1)) {
  note();
  // Everything saved; and nothing saved that need not be.
  for (bool late : {false, true}) {
    for (std::uint32_t k = 0; k < state_.facts().blocks; ++k) {
      auto const last = static_cast<std::uint32_t>(g_.blocks[k].options.size() - 1);
      state_.set_block(k, late ? detail::block_choice{0, state_.facts().back_of(k)} : detail::block_choice{last, k});
    }
    state_.evaluate();
    note();
  }
}

NEAP_FUNC std::optional<block_graph_answer> option_gaps::solve(std::int64_t peak, remat_budget const& budget,
                                                               double dearer) {
  detail::budget_watch watch(budget);
  dearer_ = dearer;
  // A short round first: a budget that ends early leaves an answer. Then what cools slowest finds most.
  auto const first =
      std::min(budget.work, detail::solver_policy::first_moves_a_choice * static_cast<std::int64_t>(choices()));
  anneal(peak, first, watch);
  if (first < budget.work && !watch.over()) anneal(peak, budget.work - first, watch);
  dearer_ = 1;
  return best(peak);
}

NEAP_FUNC block_graph_answer option_gaps::approach(std::int64_t peak, remat_budget const& budget) {
  detail::budget_watch watch(budget);
  place nearest = nearest_ ? *nearest_ : known_.front().where;
  anneal(peak, budget.work, watch, &nearest);
  state_.restore(nearest);
  nearest_ = std::move(nearest);
  return state_.answer();
}

NEAP_FUNC std::optional<block_graph_answer> option_gaps::best(std::int64_t peak) {
  auto const at = known_within(peak);
  if (at == nullptr) return std::nullopt;
  state_.restore(at->where);
  return state_.answer();
}

NEAP_FUNC std::vector<std::pair<std::int64_t, double>> option_gaps::front() const {
  std::vector<std::pair<std::int64_t, double>> out;
  for (auto const& k : known_) out.emplace_back(k.peak, k.time);
  return out;
}

NEAP_FUNC option_gaps::incumbent const* option_gaps::known_within(std::int64_t peak) const {
  incumbent const* found = nullptr;
  for (auto const& k : known_)
    if (k.peak <= peak) found = &k;
  return found;
}

NEAP_FUNC void option_gaps::note() {
  auto const at =
      std::find_if(known_.begin(), known_.end(), [&](incumbent const& k) { return k.peak > state_.peak(); });
  if (at != known_.begin() && std::prev(at)->time <= state_.time() * (1 + 1e-9)) return;
  incumbent me{state_.peak(), state_.time(), state_.where()};
  auto from = at;  // of the same size, and slower
  while (from != known_.begin() && std::prev(from)->peak == state_.peak()) --from;
  auto to = at;
  while (to != known_.end() && to->time >= state_.time()) ++to;
  if (from == to) {
    known_.insert(from, std::move(me));
  } else {
    *from = std::move(me);
    known_.erase(from + 1, to);
  }
}

NEAP_FUNC double option_gaps::score(std::int64_t limit) const {
  double over = 0;
  for (auto const& c : state_.phases()) over += static_cast<double>(std::max<std::int64_t>(0, c.peak - limit));
  return state_.time() + dearer_ * dearness_ * over;
}

NEAP_FUNC void option_gaps::anneal(std::int64_t limit, std::int64_t moves, detail::budget_watch& watch,
                                   place* nearest) {
  if (moves <= 0) return;
  auto const* from = known_within(limit);
  state_.restore(nearest ? *nearest : from ? place(from->where) : place(known_.front().where));
  double now = score(limit), best = now;
  detail::cooling heat(
      state_.facts().time_once / static_cast<double>(state_.facts().blocks) * detail::solver_policy::block_hot,
      detail::solver_policy::block_coldest, moves);
  for (std::int64_t m = 0; m < moves && !watch.spend(); ++m, heat.step()) {
    state_.keep();
    draw_move(limit);
    if (!state_.moved()) continue;
    state_.evaluate();
    double const then = score(limit);
    if (state_.peak() <= limit || state_.peak() < known_.front().peak) note();
    if (heat.accepts(now, then, draw_)) now = then;
    else state_.roll_back();
    if (nearest && now < best) best = now, *nearest = state_.where();
  }
  state_.keep();
}

NEAP_FUNC void option_gaps::draw_move(std::int64_t limit) {
  // Half of the moves while something is over: at a phase that is over.
  std::uint32_t at = state_.facts().phases;
  if (below(2) == 0) {
    high_.clear();
    for (std::uint32_t t = 0; t < state_.facts().phases; ++t)
      if (state_.phases()[t].peak > limit) high_.push_back(t);
    if (!high_.empty()) at = high_[below(high_.size())];
  }
  draw_change(at);
  // One for another: there is no way between them where both are too much, or neither is enough.
  if (below(3) == 0) draw_change(at < state_.facts().phases ? at : below(state_.facts().phases));
}

NEAP_FUNC void option_gaps::draw_change(std::uint32_t at) {
  bool const aimed = at < state_.facts().phases;
  auto const& intervals = state_.facts().intervals;
  if (!intervals.empty() && below(5) < 3) {
    auto i = below(intervals.size());
    for (int tries = 0; aimed && tries < detail::solver_policy::aims; ++tries, i = below(intervals.size()))
      if (intervals[i].from < at && at <= intervals[i].to) break;
    move_interval(i);
    return;
  }
  auto k = below(state_.facts().blocks);
  for (int tries = 0; aimed && tries < detail::solver_policy::aims; ++tries, k = below(state_.facts().blocks))
    if (k == state_.facts().main_of(at) || (state_.choice(k).since < at && at <= state_.facts().back_of(k))) break;
  move_block(k);
}

NEAP_FUNC void option_gaps::move_interval(std::uint32_t i) {
  auto const& g = state_.facts().intervals[i];
  auto const e = state_.ends(i);
  if (!g.last && state_.facts().can_leave(g.value) && below(3) == 0) {
    if (e.until < e.since) return state_.set_interval(i, {e.until, e.since, !e.away});
    return state_.set_interval(i, {g.from, below(2) ? g.to : g.from + below(g.to - g.from + 1), true});
  }
  state_.set_interval(i, detail::moved(g, e, draw_));
}

NEAP_FUNC void option_gaps::move_block(std::uint32_t k) {
  auto w = state_.choice(k);
  auto const options = g_.blocks[k].options.size();
  auto const draw = below(4);
  if (draw < 2 && options > 1) {
    if (below(2) == 0) w.option = below(options);
    else
      w.option = below(2) == 0 ? std::min<std::uint32_t>(w.option + 1, static_cast<std::uint32_t>(options - 1))
                               : w.option - (w.option > 0);
  }
  if (draw > 0) {
    if (below(3) == 0) w.since = k + below(state_.facts().back_of(k) - k + 1);
    else w.since = below(2) == 0 ? k : state_.facts().back_of(k);
  }
  state_.set_block(k, w);
}

}}  // namespace neap::v0
