// A block as a solver of recomputation sees it: ops with times, memories with bytes, who reads and makes what, as plain
// numbers from 0 on. Equal blocks have equal facts. Views are folded away: who reads a view reads the memory that it
// looks at, and a view in front of an op runs again with the op, for nothing.
//
//   auto const f = neap::facts_of(program, chain, 3, neap::span_of(seconds));   // seconds by op id
//   for (auto const& o : f.ops) for (auto d : o.reads) ... f.data[d].bytes ...
#pragma once

#include <neap/blocks/block_chain.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/sort_once.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

/// Where the memory of a block's data comes from.
enum class data_origin : std::uint8_t {
  inside,    // an op of the block makes it
  input,     // a forward value of another block
  global,    // of the prologue
  source,    // a weight, state or input of the program: always there
  gradient,  // made behind the forward part of another block
};

struct block_op {
  op_id op;  // of the program
  step_part part;
  seconds_t seconds = 0;
  bytes_t workspace = 0;
  bool recomputable = true;                 // may run more than once
  std::vector<std::uint32_t> reads, makes;  // data, ascending; what is updated in place is read, and not made
  std::vector<std::uint32_t> after;  // ops of the block that must have run before, beyond those that make what it
                                     // reads: readers of what it overwrites, and writers of what it reads
};

struct block_data {
  storage_id storage;  // of the program
  bytes_t bytes = 0;
  data_origin origin = data_origin::inside;
  bool leaves = false;   // read outside the block, or kept to the end of the step
  bool updated = false;  // some op of the block overwrites it
};

struct block_facts {
  std::vector<block_op> ops;  // what computes: forward, backward, updates, in an order in which they can run
  std::vector<block_data> data;
  std::size_t forward_ops = 0, backward_ops = 0;  // the first ones, and those behind them
  std::vector<std::uint32_t> inputs, outputs;     // data that cross forward
  std::vector<std::uint32_t> gradient_inputs, gradient_outputs;
  std::vector<std::uint32_t> saved;  // forward data, no sources, that the backward ops read
};

/// `seconds`: of each op of the program, by its id. O(ops + values) of the block.
inline block_facts facts_of(op_graph const& g, block_chain const& c, std::uint32_t block,
                            std::span<seconds_t const> seconds) {
  if (seconds.size() != g.op_count()) throw error("blocks: one time an op is needed");
  auto const& b = c.blocks[block];
  block_facts f;
  number_map data, ops;
  auto const datum = [&](value_id v) {
    auto const s = g.storage(v);
    if (data.add(index(s), static_cast<std::uint32_t>(f.data.size()))) {
      block_data d{s, g.bytes(s)};
      auto const maker = g.producer(g.record(s).first);
      if (maker == nothing<op_id>) d.origin = data_origin::source;
      else if (c.block_of[maker] == block_chain::prologue_block) d.origin = data_origin::global;
      else if (c.block_of[maker] != block)
        d.origin = c.part[maker] == step_part::forward ? data_origin::input : data_origin::gradient;
      f.data.push_back(d);
    }
    return data.find(index(s));
  };
  for (auto const* list : {&b.forward, &b.backward, &b.updates}) {
    for (auto o : *list) {
      if (flow::is_view(g, o)) continue;
      block_op x{o, c.part[o], seconds[index(o)], flow::workspace(g, o), flow::is_recomputable(g, o), {}, {}, {}};
      for (auto v : g.inputs(o)) {
        x.reads.push_back(datum(v));
        // A version that an op of the block has written: data alone do not tell that it must have run.
        auto const& r = g.record(v);
        if (r.version == 0) continue;
        value_id at = v;
        while (g.record(at).alias == alias_kind::view) at = g.base(at);
        if (auto const writer = g.producer(at); writer != nothing<op_id>)
          if (auto const n = ops.find(index(writer)); n != number_map::none) x.after.push_back(n);
      }
      for (auto v : g.outputs(o)) {
        auto const d = datum(v);
        if (g.record(v).alias == alias_kind::fresh) x.makes.push_back(d);
        if (g.record(v).alias == alias_kind::update) f.data[d].updated = true;
      }
      for (auto from : g.order_after(o))
        if (auto const n = ops.find(index(from)); n != number_map::none) x.after.push_back(n);
      detail::sort_once(x.reads), detail::sort_once(x.makes), detail::sort_once(x.after);
      ops.add(index(o), static_cast<std::uint32_t>(f.ops.size()));
      f.ops.push_back(std::move(x));
    }
    if (list == &b.forward) f.forward_ops = f.ops.size();
    if (list == &b.backward) f.backward_ops = f.ops.size() - f.forward_ops;
  }
  auto const all = [&](std::vector<value_id> const& values, std::vector<std::uint32_t>& to) {
    for (auto v : values)
      if (data.contains(index(g.storage(v)))) to.push_back(datum(v));  // else only views name it
    detail::sort_once(to);
  };
  all(b.inputs, f.inputs), all(b.outputs, f.outputs), all(b.saved, f.saved);
  all(b.gradient_inputs, f.gradient_inputs), all(b.gradient_outputs, f.gradient_outputs);
  std::erase_if(f.saved, [&](std::uint32_t d) { return f.data[d].origin == data_origin::source; });  // views of weights
  for (auto const* list : {&f.outputs, &f.gradient_outputs})
    for (auto d : *list) f.data[d].leaves = f.data[d].origin == data_origin::inside;
  return f;
}

}}  // namespace neap::v0
