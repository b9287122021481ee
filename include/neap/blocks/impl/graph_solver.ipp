// The bodies of <neap/blocks/graph_solver.hpp>.
#pragma once

#include <neap/blocks/graph_solver.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort_once.hpp>

#include <map>

namespace neap { inline namespace v0 {

namespace detail {

/// Data of other blocks that an op of a block's problem reads.
template <class Put>
void for_each_input(block_facts const& f, std::vector<unsigned char> const& held, block_problem const& b,
                    std::uint32_t op, Put&& put) {
  for (auto d : f.ops[b.op_of[op]].reads)
    if (f.data[d].origin == data_origin::input && !held[d]) put(d);
}

}  // namespace detail

NEAP_FUNC graph_price graph_price_of(block_facts const& f, std::vector<unsigned char> const& held,
                                     block_problem const& b, std::vector<block_step> const& steps) {
  using action = block_step::action;
  auto const& p = b.problem;
  graph_price out;
  auto& o = out.option;
  std::vector<unsigned char> hands_on(p.values.size(), 0);
  for (auto v : p.ops[b.rest].inputs) hands_on[v] = 1;
  std::vector<unsigned char> made(p.values.size(), 0);  // behind the pause
  detail::block_walk walk(b, 0);
  for (auto const& s : steps) {
    walk.play(s);
    if (s.what != action::compute || s.index == b.rest) continue;
    auto const& op = p.ops[s.index];
    bool const behind = walk.is_behind();
    (behind ? o.backward_time : o.forward_time) += op.time;
    // What is there and made once more is there twice until the op has ended.
    auto& peak = behind ? o.backward_peak : o.forward_peak;
    peak = std::max(peak, walk.bytes_now() + walk.bytes_twice() + op.workspace_bytes);
    if (!behind) continue;
    detail::for_each_input(f, held, b, s.index, [&](std::uint32_t d) { o.backward_reads.push_back(d); });
    for (auto v : op.inputs)
      if (hands_on[v] && !made[v]) o.backward_reads.push_back(b.datum_of[v]);
    for (auto v : op.outputs) made[v] = 1;
  }
  out.moved = walk.bytes_moved();
  detail::sort_once(o.backward_reads);
  o.saved = walk.bytes_saved();
  o.backward_peak = std::max(o.backward_peak, o.saved);
  // Again, from what is saved.
  auto const there = [&](std::uint32_t v) { return walk.is_saved(v) || held[b.datum_of[v]]; };
  std::vector<std::uint32_t> last(p.values.size(), no_id), runs;
  std::vector<unsigned char> wanted = hands_on;
  for (auto i = b.rest; i-- > 0;) {
    auto const& op = p.ops[i];
    bool needed = false;
    for (auto v : op.outputs) needed = needed || (wanted[v] && !there(v));
    if (!needed) continue;
    runs.push_back(i);
    for (auto v : op.inputs) wanted[v] = 1;
    for (auto const* list : {&op.inputs, &op.outputs})
      for (auto v : *list)
        if (last[v] == no_id) last[v] = i;
    detail::for_each_input(f, held, b, i, [&](std::uint32_t d) { o.again_reads.push_back(d); });
  }
  detail::sort_once(o.again_reads);
  bytes_t now = 0;
  for (auto r = runs.size(); r-- > 0;) {
    auto const& op = p.ops[runs[r]];
    out.again.push_back({action::compute, runs[r]});
    o.again_time += op.time;
    bytes_t twice = 0;
    for (auto v : op.outputs) (walk.is_saved(v) ? twice : now) += p.values[v].bytes;
    o.again_peak = std::max(o.again_peak, now + twice + op.workspace_bytes);
    for (auto const* list : {&op.inputs, &op.outputs})
      for (auto v : *list)
        if (last[v] == runs[r] && !there(v) && !hands_on[v])
          now -= p.values[v].bytes, out.again.push_back({action::drop, v});
  }
  out.forward = std::move(walk.forward), out.backward = std::move(walk.backward);
  return out;
}

NEAP_FUNC std::vector<graph_price> graph_prices_of(block_facts const& f, std::vector<unsigned char> const& held,
                                                   block_problem const& b, std::vector<remat_answer> const& answers,
                                                   std::vector<unsigned char> const& movable, int levels) {
  auto const price = [&](std::vector<block_step> const& steps) { return graph_price_of(f, held, b, steps); };
  auto const beats = [](graph_price const& x, graph_price const& y) {
    auto const &p = x.option, &q = y.option;
    return p.forward_time + p.backward_time <= q.forward_time + q.backward_time && x.moved <= y.moved &&
           p.again_time <= q.again_time && p.saved <= q.saved && p.forward_peak <= q.forward_peak &&
           p.backward_peak <= q.backward_peak && p.again_peak <= q.again_peak && p.again_reads == q.again_reads &&
           p.backward_reads == q.backward_reads;
  };
  return detail::prices_with_swaps(f, b, answers, movable, 0, levels, price, beats);
}

NEAP_FUNC std::string graph_solver::why_empty() const {
  if (least_data_ == SIZE_MAX) return "it has no blocks to choose between";
  return "between its blocks go " + std::to_string(least_data_) + " data, however it is cut; at most " +
         std::to_string(options_.max_data) + " are taken";
}

NEAP_FUNC block_graph graph_solver::problem_at(double part) const {
  auto swapping = problem_;
  choose_options(swapping, {part, options_.link});
  return swapping;
}

NEAP_FUNC std::int64_t graph_solver::phase_of(op_id o) const {
  auto const n = static_cast<std::int64_t>(chain_.blocks.size());
  auto const k = chain_.block_of[o];
  if (k == block_chain::prologue_block) return -1;
  if (k == block_chain::epilogue_block) return 2 * n;
  return chain_.part[o] == step_part::forward ? k : 2 * n - 1 - k;
}

NEAP_FUNC void graph_solver::note_held() {
  leave_overwritten();
  auto const droppable = droppable_storages(g_, may_run_again_);
  held_.assign(g_.storage_count(), false);
  for (auto s : g_.storages()) {
    auto const maker = g_.producer(g_.record(s).first);
    held_[index(s)] = !droppable[index(s)] || chain_.block_of[maker] >= block_chain::prologue_block;
  }
  for (auto v : g_.values()) {
    auto const maker = g_.producer(g_.record(g_.storage(v)).first);
    if (!is_forward(maker)) continue;
    for (auto const& u : g_.uses(v)) {
      auto const k = chain_.block_of[u.op];
      if (k == block_chain::epilogue_block || k < chain_.block_of[maker]) held_[index(g_.storage(v))] = true;
    }
  }
}

NEAP_FUNC void graph_solver::leave_overwritten() {
  if (!g_.has_updates()) return;
  table<storage_id, std::int64_t> written(g_.storage_count(), INT64_MAX);
  for (auto v : g_.values())
    if (g_.record(v).alias == alias_kind::update && !is_forward(g_.producer(v)))
      written[g_.storage(v)] = std::min(written[g_.storage(v)], phase_of(g_.producer(v)));
  auto const n = static_cast<std::int64_t>(chain_.blocks.size());
  for (auto o : g_.ops()) {
    if (!is_forward(o)) continue;
    for (auto v : g_.inputs(o))
      if (written[g_.storage(v)] < 2 * n - 1 - chain_.block_of[o]) may_run_again_[index(o)] = false;
  }
}

NEAP_FUNC std::size_t graph_solver::group_data(bool joined) {
  std::vector<std::vector<std::int64_t>> readers(g_.storage_count());
  for (auto v : g_.values())
    for (auto const& u : g_.uses(v)) readers[index(g_.storage(v))].push_back(phase_of(u.op));
  for (auto& list : readers) detail::sort_once(list);
  group_.assign(g_.storage_count(), no_id);
  std::uint32_t count = 0;
  for (auto const& b : chain_.blocks) {
    std::map<std::vector<std::int64_t>, std::uint32_t> alike;
    for (auto v : b.outputs) {
      auto const s = index(g_.storage(v));
      if (held_[s] || group_[s] != no_id) continue;
      group_[s] = joined ? alike.try_emplace(std::move(readers[s]), count).first->second : count;
      count += group_[s] == count;
    }
  }
  return count;
}

NEAP_FUNC void graph_solver::connect() {
  std::vector<std::uint32_t> number(g_.storage_count(), no_id);  // by group
  auto const number_of = [&](storage_id s) -> std::uint32_t& { return number[group_[index(s)]]; };
  options_of_blocks_.resize(rows_.size());
  for (auto const& r : rows_) {
    auto const& m = models_[r.model];
    graph_block b{
        .pass_time = m.pass.time, .pass_peak = m.pass.temporary + m.posed.block.handed_on, .once_time = m.once_time};
    for (auto v : m.posed.block.problem.ops[m.posed.block.rest].inputs) {
      auto const& d = r.facts.data[m.posed.block.datum_of[v]];
      auto& n = number_of(d.storage);
      if (n == no_id) {
        n = static_cast<std::uint32_t>(storages_.size());
        storages_.emplace_back(), problem_.bytes.push_back(0);
        b.makes.push_back(n);
      }
      storages_[n].push_back(d.storage), problem_.bytes[n] += d.bytes;
    }
    auto const read = [&](std::vector<std::uint32_t> const& data) {
      std::vector<std::uint32_t> out;
      for (auto d : data) out.push_back(number_of(r.facts.data[d].storage));
      detail::sort_once(out);
      return out;
    };
    std::vector<std::uint32_t> inputs;
    for (std::uint32_t i = 0; i < m.posed.block.rest; ++i)
      detail::for_each_input(r.facts, m.posed.held, m.posed.block, i, [&](std::uint32_t d) { inputs.push_back(d); });
    b.reads = read(inputs);
    for (auto const& p : m.prices) {
      auto o = p.option;
      o.again_reads = read(o.again_reads), o.backward_reads = read(o.backward_reads);
      options_of_blocks_[problem_.blocks.size()].push_back(std::move(o));
    }
    problem_.blocks.push_back(std::move(b));
  }
}

NEAP_FUNC void graph_solver::choose_options(block_graph& to, link_price const& price) const {
  to.move_time.clear();
  if (price.lets_move())
    for (auto const& list : storages_) {
      bytes_t bytes = 0;
      bool all = true;
      for (auto s : list) all = all && can_leave(g_, s), bytes += 2 * g_.bytes(s);
      to.move_time.push_back(all ? price.seconds(bytes) : -1);
    }
  for (std::size_t k = 0; k < rows_.size(); ++k)
    to.blocks[k].options =
        detail::options_at(models_[rows_[k].model].prices, price, [&](auto i) { return options_of_blocks_[k][i]; });
}

NEAP_FUNC void graph_solver::note_ground(bytes_t resident) {
  auto const phases = static_cast<std::int64_t>(2 * chain_.blocks.size());
  problem_.before.assign(static_cast<std::size_t>(phases), resident);
  problem_.during = problem_.before;
  std::vector<std::vector<std::int64_t>> touched(g_.storage_count());
  for (auto v : g_.values()) {
    auto& list = touched[index(g_.storage(v))];
    if (g_.producer(v) != nothing<op_id>) list.push_back(phase_of(g_.producer(v)));
    for (auto const& u : g_.uses(v)) {
      list.push_back(phase_of(u.op));
      // Who may run again may read it as late as in front of its own backward.
      if (is_forward(u.op) && may_run_again_[index(u.op)]) list.push_back(phases - 1 - phase_of(u.op));
    }
    if (g_.is_kept(v)) list.push_back(phases);
  }
  for (auto s : g_.storages()) {
    auto const& list = touched[index(s)];
    if (g_.is_resident(s) || list.empty()) continue;
    auto const maker = g_.producer(g_.record(s).first);
    if (is_forward(maker) && !held_[index(s)]) continue;  // of a block, or of the search
    auto const first = maker == nothing<op_id> ? -1 : phase_of(maker);
    auto const last = std::min(*std::max_element(list.begin(), list.end()), phases - 1);
    for (auto t = std::max<std::int64_t>(first, 0); t <= last; ++t) {
      auto const at = static_cast<std::size_t>(t);
      if (t > first) problem_.before[at] += g_.bytes(s);
      // Who makes a gradient counts it, and who reads it last.
      bool const counted = !held_[index(s)] && (t == first || t == last);
      if (!counted) problem_.during[at] += g_.bytes(s);
    }
  }
}

}}  // namespace neap::v0
