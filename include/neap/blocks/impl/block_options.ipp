// The bodies of <neap/blocks/block_options.hpp>.
#pragma once

#include <neap/blocks/block_options.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cstdint>
#include <string>

namespace neap { inline namespace v0 {

NEAP_FUNC bytes_t least_peak(remat_problem const& p) {
  bytes_t most = 0;
  for (auto const& o : p.ops) {
    bytes_t here = o.workspace_bytes;
    for (auto const* list : {&o.inputs, &o.outputs})
      for (auto v : *list) here += p.values[v].bytes;
    most = std::max(most, here);
  }
  return most;
}

NEAP_FUNC block_price price_of(block_problem const& b, std::vector<block_step> const& steps, bytes_t input,
                               bool gives_back) {
  using action = block_step::action;
  block_price out;
  auto& o = out.option;
  detail::block_walk walk(b, input);
  bytes_t peak[2] = {0, 0};  // of the forward, and from the pause on
  bool stored_input = false;
  for (auto const& s : steps) {
    walk.play(s);
    stored_input = stored_input || (s.what == action::store && s.index == block_step::input);
    if (s.what != action::compute) continue;
    auto const& op = b.problem.ops[s.index];
    auto& most = peak[walk.is_behind()];
    most = std::max(most, walk.bytes_now() + op.workspace_bytes);
    (walk.is_behind() ? o.backward_time : o.forward_time) += op.time;
    if (walk.is_behind() && b.reads_input[s.index]) gives_back = gives_back && stored_input;
  }
  out.moved = walk.bytes_moved();
  o.saved = walk.bytes_saved() + b.handed_on;
  o.backward_temporary = std::max<bytes_t>(0, peak[1] - o.saved - b.handed_on - input);
  if (gives_back) o.saved = std::max<bytes_t>(0, o.saved - input);
  o.forward_temporary = std::max<bytes_t>(0, peak[0] - o.saved);
  out.forward = std::move(walk.forward), out.backward = std::move(walk.backward);
  return out;
}

NEAP_FUNC std::vector<block_price> prices_of(block_facts const& f, block_problem const& b,
                                             std::vector<remat_answer> const& answers,
                                             std::vector<unsigned char> const& movable, bytes_t input, bool gives_back,
                                             int levels) {
  auto const price = [&](std::vector<block_step> const& steps) { return price_of(b, steps, input, gives_back); };
  auto const beats = [](block_price const& x, block_price const& y) {
    auto const &p = x.option, &q = y.option;
    return p.forward_time + p.backward_time <= q.forward_time + q.backward_time && x.moved <= y.moved &&
           p.saved <= q.saved && p.forward_temporary <= q.forward_temporary &&
           p.backward_temporary <= q.backward_temporary;
  };
  return detail::prices_with_swaps(f, b, answers, movable, gives_back ? input : 0, levels, price, beats);
}

NEAP_FUNC block_pass pass_of(block_problem const& b) {
  auto const& p = b.problem;
  std::vector<std::uint32_t> last(p.values.size(), no_id);
  for (std::uint32_t i = 0; i < b.rest; ++i) {
    if (!b.passes[i]) continue;
    for (auto v : p.ops[i].inputs) last[v] = i;
    for (auto v : p.ops[i].outputs) last[v] = i;
  }
  for (auto v : p.ops[b.rest].inputs) last[v] = no_id;
  block_pass out;
  bytes_t now = 0, peak = 0;
  for (std::uint32_t i = 0; i < b.rest; ++i) {
    if (!b.passes[i]) continue;
    out.time += p.ops[i].time;
    out.steps.push_back({block_step::action::compute, i});
    for (auto v : p.ops[i].outputs) now += p.values[v].bytes;
    peak = std::max(peak, now + p.ops[i].workspace_bytes);
    for (auto const* list : {&p.ops[i].inputs, &p.ops[i].outputs})
      for (auto v : *list)
        if (last[v] == i) now -= p.values[v].bytes, out.steps.push_back({block_step::action::drop, v});
  }
  out.temporary = std::max<bytes_t>(0, peak - b.handed_on);
  return out;
}

}}  // namespace neap::v0
