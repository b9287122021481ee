// A block of a program as a problem of recomputation, and what its answers are worth to a chain of blocks: the options
// among which rk-Rotor chooses.
//
//   ops of the problem   forward ops | the rest of the chain | backward ops, each update behind what it waits for
//
// The rest of the chain is an op that takes no time, reads what the block hands on, and makes the gradients that come
// back; in it the block pauses. What an answer holds there is saved; what the block was given and hands on is paid for by
// the chain. Memory that is never given back (what is kept, what other blocks read, too, what cannot be made again)
// counts nothing: it is there whatever a solver says.
#pragma once

#include <neap/block/block_facts.hpp>
#include <neap/plan/chain_profile.hpp>
#include <neap/plan/remat_problem.hpp>
#include <neap/solve/remat_sequence.hpp>
#include <neap/solve/remat_solver.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// A block as a solver sees it. `rest` is the op that stands for the rest of the chain.
struct block_problem {
  remat_problem problem;
  std::vector<std::uint32_t> op_of;  // by op of the problem: the block's op (block_facts::ops), or no_id for the rest
  std::vector<std::uint32_t> datum_of;  // by value of the problem: the block's datum (block_facts::data)
  std::uint32_t rest = 0;
  bytes_t handed_on = 0;                   // what the block hands on to the next one
  bool reads_handed_on = false;            // some op of the block reads that itself
  std::vector<unsigned char> reads_input;  // by op of the problem: it reads what the block before hands on
  std::vector<unsigned char> passes;  // by op of the problem, up to the rest: it runs in the forward that saves nothing
  friend bool operator==(block_problem const&, block_problem const&) = default;
};

/// What solves blocks: for several limits at once, an answer each, in their order.
template <class S>
concept front_solver = requires(S const& s, remat_problem const& p, std::span<remat_limits const> limits) {
  { s(p, limits) } -> std::same_as<std::vector<remat_answer>>;
};

namespace detail {
inline bool is_handed_on(block_facts const& f, std::vector<unsigned char> const& held,
                         std::vector<unsigned char> const& crosses, std::uint32_t datum) {
  return f.data[datum].leaves && crosses[datum] && !held[datum];
}
}  // namespace detail

/// `held` by datum: it is never given back, once it is there. `updates_last`: no op of the block runs again behind an
/// update, which it could not if it reads what that overwrites. O(ops + data).
inline block_problem problem_of(block_facts const& f, std::vector<unsigned char> const& held,
                                bool updates_last = false) {
  block_problem b;
  auto& p = b.problem;
  auto const forward = static_cast<std::uint32_t>(f.forward_ops);
  std::vector<std::uint32_t> value_of(f.data.size(), no_id);
  for (std::uint32_t d = 0; d < f.data.size(); ++d) {
    auto const& x = f.data[d];
    if (x.origin != data_origin::inside && x.origin != data_origin::gradient) continue;
    if (held[d] && x.origin == data_origin::gradient) continue;
    value_of[d] = static_cast<std::uint32_t>(p.values.size());
    p.values.push_back({.bytes = held[d] ? 0 : x.bytes});
    b.datum_of.push_back(d);
  }
  auto const add = [&](std::uint32_t i) {
    auto const& o = f.ops[i];
    remat_op r{.time = o.seconds, .workspace_bytes = o.workspace, .again = o.recomputable};
    for (auto d : o.makes)
      if (value_of[d] != no_id) r.outputs.push_back(value_of[d]);
    for (auto d : o.reads)
      if (value_of[d] != no_id && !std::binary_search(o.makes.begin(), o.makes.end(), d))
        r.inputs.push_back(value_of[d]);
    b.reads_input.push_back(std::any_of(o.reads.begin(), o.reads.end(),
                                        [&](auto d) { return f.data[d].origin == data_origin::input && !held[d]; }));
    p.ops.push_back(std::move(r));
    b.op_of.push_back(i);
  };
  for (std::uint32_t i = 0; i < forward; ++i) add(i);
  b.rest = static_cast<std::uint32_t>(p.ops.size());
  p.pause_after = b.rest;
  remat_op rest{.time = 0, .again = false};
  std::vector<unsigned char> crosses(f.data.size(), 0);
  for (auto d : f.outputs) crosses[d] = 1;
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    auto const& x = f.data[b.datum_of[v]];
    if (x.origin == data_origin::gradient) rest.outputs.push_back(v), p.values[v].outside = true;
    if (detail::is_handed_on(f, held, crosses, b.datum_of[v])) {
      rest.inputs.push_back(v);
      p.values[v].outside = true;
      b.handed_on += x.bytes;
    } else if (x.leaves) {
      p.values[v].kept = true;
    }
  }
  p.ops.push_back(std::move(rest));
  b.op_of.push_back(no_id), b.reads_input.push_back(0);
  // Backward ops in their order; an update as soon as all is done that it waits for.
  std::vector<unsigned char> done(f.ops.size(), 0), made(f.data.size(), 0);
  std::vector<unsigned char> here(f.data.size(), 0);  // made by an op of the block
  for (auto const& o : f.ops)
    for (auto d : o.makes) here[d] = 1;
  auto const put = [&](std::uint32_t i) {
    done[i] = 1;
    for (auto d : f.ops[i].makes) made[d] = 1;
  };
  for (std::uint32_t i = 0; i < forward; ++i) put(i);
  auto const updates = static_cast<std::uint32_t>(forward + f.backward_ops);
  auto const waits = [&](std::uint32_t i) {
    auto const& o = f.ops[i];
    return std::any_of(o.after.begin(), o.after.end(), [&](auto a) { return !done[a]; }) ||
           std::any_of(o.reads.begin(), o.reads.end(), [&](auto d) { return here[d] && !made[d]; });
  };
  auto const update = [&] {
    for (bool any = true; any;) {
      any = false;
      for (auto u = updates; u < f.ops.size(); ++u)
        if (!done[u] && !waits(u)) add(u), put(u), any = true;
    }
  };
  for (auto i = forward; i < updates; ++i) {
    add(i), put(i);
    if (!updates_last) update();
  }
  if (updates_last) update();
  for (auto u = updates; u < f.ops.size(); ++u)
    if (!done[u]) add(u), put(u);
  for (std::uint32_t i = 0; i < p.ops.size(); ++i)
    for (auto v : p.ops[i].inputs)
      b.reads_handed_on = b.reads_handed_on || (i != b.rest && detail::is_handed_on(f, held, crosses, b.datum_of[v]));
  // The forward that saves nothing: what leads to what leaves the block, and what could not run later.
  std::vector<unsigned char> wanted(p.values.size(), 0);
  b.passes.assign(b.rest, 0);
  for (auto i = b.rest; i-- > 0;) {
    auto const& o = p.ops[i];
    bool needed = !o.again || o.outputs.empty();
    for (auto v : o.outputs) needed = needed || wanted[v] || f.data[b.datum_of[v]].leaves;
    if (!needed) continue;
    b.passes[i] = 1;
    for (auto v : o.inputs) wanted[v] = 1;
  }
  return b;
}

/// Everything once: nothing is computed again.
inline remat_answer save_everything(block_problem const& b) {
  std::vector<std::uint32_t> once(b.problem.ops.size());
  for (std::uint32_t i = 0; i < once.size(); ++i) once[i] = i;
  return answer_of(b.problem, once);
}

/// Nothing is saved that can be made again: all of the forward that is needed runs once more before the backward.
inline remat_answer save_input(block_problem const& b) {
  auto const& p = b.problem;
  std::vector<unsigned char> wanted(p.values.size(), 0), again(b.rest, 0);
  for (auto i = b.rest + 1; i < p.ops.size(); ++i)
    for (auto v : p.ops[i].inputs) wanted[v] = 1;
  for (auto i = b.rest; i-- > 0;) {
    if (!p.ops[i].again) continue;
    for (auto v : p.ops[i].outputs) again[i] = again[i] || wanted[v];
    if (!again[i]) continue;
    for (auto v : p.ops[i].inputs) wanted[v] = 1;
  }
  std::vector<std::uint32_t> runs;
  for (std::uint32_t i = 0; i <= b.rest; ++i) runs.push_back(i);
  for (std::uint32_t i = 0; i < b.rest; ++i)
    if (again[i]) runs.push_back(i);
  for (auto i = b.rest + 1; i < p.ops.size(); ++i) runs.push_back(i);
  return answer_of(p, runs);
}

/// How many limits a block is solved for: between what its plain answers save, and between their peaks and the least peak.
struct option_levels {
  int saved = 6, peak = 6;
};

/// No answer has a lower peak: what one op needs at once.
inline bytes_t least_peak(remat_problem const& p) {
  bytes_t most = 0;
  for (auto const& o : p.ops) {
    bytes_t here = o.workspace_bytes;
    for (auto const* list : {&o.inputs, &o.outputs})
      for (auto v : *list) here += p.values[v].bytes;
    most = std::max(most, here);
  }
  return most;
}

/// The answers worth having, the quickest first: both plain ones, and what the solver finds within limits.
template <front_solver S>
std::vector<remat_answer> options_of(block_problem const& b, S const& solver, option_levels const& levels) {
  auto all = save_everything(b), none = save_input(b);
  std::vector<remat_limits> limits;
  auto const between = [&](bytes_t low, bytes_t high, int count, auto&& put) {
    for (int k = 1; k <= count && low < high; ++k) put(low + (high - low) * (count - k) / count);
  };
  auto const least = std::min(all.saved_bytes, none.saved_bytes);
  between(least, all.saved_bytes, levels.saved, [&](bytes_t s) { limits.push_back({.saved_bytes = s}); });
  std::vector<bytes_t> saved{remat_limits::none};
  if (levels.saved > 0 && least < all.saved_bytes)
    saved = {all.saved_bytes, least + (all.saved_bytes - least) / 2, least};
  for (auto s : saved)
    between(least_peak(b.problem), std::max(all.peak_bytes, none.peak_bytes), levels.peak,
            [&](bytes_t m) { limits.push_back({.peak_bytes = m, .saved_bytes = s}); });
  std::vector<remat_answer> answers;
  if (!limits.empty()) answers = solver(b.problem, limits);
  answers.push_back(std::move(all)), answers.push_back(std::move(none));
  return pareto(std::move(answers));
}

/// What a chain pays for a block, in bytes and seconds.
struct block_price {
  block_option option;
  std::vector<remat_step> forward, backward;  // the answer up to the pause, and behind it
};

/// `input`: what the block before hands on, which that block counts as saved. `gives_back`: that block does not need it
/// itself, so that it is counted as given back where this block's backward does not need it either.
inline block_price price_of(block_problem const& b, remat_answer const& a, bytes_t input, bool gives_back) {
  auto const& p = b.problem;
  block_price out;
  std::vector<unsigned char> alive(p.values.size(), 0);
  bytes_t now = 0, peak[2] = {0, 0};
  bool behind = false, paused = false;
  for (auto const& s : a.steps) {
    if (s.what == remat_step::action::drop) {
      if (alive[s.index]) alive[s.index] = 0, now -= p.values[s.index].bytes;
      // What is dropped in the pause goes before the rest of the chain runs, but for what that reads or brings.
      bool const late = behind && (!paused || p.values[s.index].outside);
      (late ? out.backward : out.forward).push_back(s);
      continue;
    }
    paused = s.index == b.rest;
    if (paused) {
      behind = true;
    } else {
      (behind ? out.backward : out.forward).push_back(s);
      gives_back = gives_back && !(behind && b.reads_input[s.index]);
      (behind ? out.option.backward_time : out.option.forward_time) += p.ops[s.index].time;
    }
    for (auto v : p.ops[s.index].outputs)
      if (!alive[v]) alive[v] = 1, now += p.values[v].bytes;
    peak[behind] = std::max(peak[behind], now + p.ops[s.index].workspace_bytes);
  }
  auto& o = out.option;
  o.saved = a.saved_bytes + b.handed_on;
  o.backward_temporary = std::max<bytes_t>(0, peak[1] - o.saved - b.handed_on - input);
  if (gives_back) o.saved = std::max<bytes_t>(0, o.saved - input);
  o.forward_temporary = std::max<bytes_t>(0, peak[0] - o.saved);
  return out;
}

/// The forward that saves nothing: what it takes beside input and output, its time, and when each value is forgotten.
struct block_pass {
  double time = 0;
  bytes_t temporary = 0;
  std::vector<remat_step> steps;
};
inline block_pass pass_of(block_problem const& b) {
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
    out.steps.push_back({remat_step::action::compute, i});
    for (auto v : p.ops[i].outputs) now += p.values[v].bytes;
    peak = std::max(peak, now + p.ops[i].workspace_bytes);
    for (auto const* list : {&p.ops[i].inputs, &p.ops[i].outputs})
      for (auto v : *list)
        if (last[v] == i) now -= p.values[v].bytes, out.steps.push_back({remat_step::action::drop, v});
  }
  out.temporary = std::max<bytes_t>(0, peak - b.handed_on);
  return out;
}

}  // namespace neap::inline v0
