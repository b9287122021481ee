// The bodies of <neap/blocks/block_problem.hpp>.
#pragma once

#include <neap/blocks/block_problem.hpp>

#include <neap/blocks/remat_sequence.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// Forward ops, then backward ops in their order; an update as soon as all is done that it waits for, or at the end.
NEAP_FUNC std::vector<std::uint32_t> order_of_block(block_facts const& f, bool updates_last) {
  std::vector<std::uint32_t> order;
  std::vector<unsigned char> done(f.ops.size(), 0), made(f.data.size(), 0);
  std::vector<unsigned char> here(f.data.size(), 0);  // made by an op of the block
  for (auto const& o : f.ops)
    for (auto d : o.makes) here[d] = 1;
  auto const put = [&](std::uint32_t i) {
    order.push_back(i), done[i] = 1;
    for (auto d : f.ops[i].makes) made[d] = 1;
  };
  auto const forward = static_cast<std::uint32_t>(f.forward_ops);
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
        if (!done[u] && !waits(u)) put(u), any = true;
    }
  };
  for (std::uint32_t i = 0; i < updates; ++i) {
    put(i);
    if (i >= forward && !updates_last) update();
  }
  if (updates_last) update();
  for (auto u = updates; u < f.ops.size(); ++u)
    if (!done[u]) put(u);
  return order;
}

/// The op that stands for the rest of the chain, and what it says of the values. `handed_on` by datum.
NEAP_FUNC void add_rest(block_facts const& f, std::vector<unsigned char> const& handed_on, block_problem& b) {
  auto& p = b.problem;
  b.rest = static_cast<std::uint32_t>(p.ops.size());
  p.pause_after = b.rest;
  remat_op rest{.time = 0, .again = false};
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    auto const& x = f.data[b.datum_of[v]];
    if (x.origin == data_origin::gradient) rest.outputs.push_back(v), p.values[v].outside = true;
    if (handed_on[b.datum_of[v]]) {
      rest.inputs.push_back(v);
      p.values[v].outside = true;
      b.handed_on += x.bytes;
    } else if (x.leaves) {
      p.values[v].kept = true;
    }
  }
  p.ops.push_back(std::move(rest));
  b.op_of.push_back(no_id), b.reads_input.push_back(0);
}

/// The forward that saves nothing: what leads to what leaves the block, and what could not run later.
NEAP_FUNC void find_passes(block_facts const& f, block_problem& b) {
  std::vector<unsigned char> wanted(b.problem.values.size(), 0);
  b.passes.assign(b.rest, 0);
  for (auto i = b.rest; i-- > 0;) {
    auto const& o = b.problem.ops[i];
    bool needed = !o.again || o.outputs.empty();
    for (auto v : o.outputs) needed = needed || wanted[v] || f.data[b.datum_of[v]].leaves;
    if (!needed) continue;
    b.passes[i] = 1;
    for (auto v : o.inputs) wanted[v] = 1;
  }
}

}  // namespace detail

NEAP_FUNC block_problem problem_of(block_facts const& f, std::vector<unsigned char> const& held, bool updates_last) {
  block_problem b;
  auto& p = b.problem;
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
  std::vector<unsigned char> handed_on(f.data.size(), 0);
  for (auto d : f.outputs) handed_on[d] = f.data[d].leaves && !held[d];
  auto const order = detail::order_of_block(f, updates_last);
  for (std::size_t k = 0; k < f.forward_ops; ++k) add(order[k]);
  detail::add_rest(f, handed_on, b);
  for (auto k = f.forward_ops; k < order.size(); ++k) add(order[k]);
  for (std::uint32_t i = 0; i < p.ops.size(); ++i)
    for (auto v : p.ops[i].inputs) b.reads_handed_on = b.reads_handed_on || (i != b.rest && handed_on[b.datum_of[v]]);
  detail::find_passes(f, b);
  return b;
}

NEAP_FUNC remat_answer save_everything(block_problem const& b) {
  std::vector<std::uint32_t> once(b.problem.ops.size());
  for (std::uint32_t i = 0; i < once.size(); ++i) once[i] = i;
  return answer_of(b.problem, once);
}

NEAP_FUNC remat_answer save_input(block_problem const& b) {
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

}}  // namespace neap::v0
