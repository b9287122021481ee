// What must hold of every cut of every program, said again in the plainest way.
#pragma once

#include <neap/blocks/all_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace neap::testing {

/// Prologue, blocks forward, blocks backward with their updates, epilogue: a schedule that the blocks promise.
inline std::vector<op_id> blocks_in_turn(block_chain const& c) {
  std::vector<op_id> all = c.prologue;
  auto const add = [&](std::vector<op_id> const& list) { all.insert(all.end(), list.begin(), list.end()); };
  for (auto const& b : c.blocks) add(b.forward);
  for (std::size_t k = c.blocks.size(); k-- > 0;) add(c.blocks[k].backward), add(c.blocks[k].updates);
  add(c.epilogue);
  return all;
}

inline void check_chain(op_graph const& g, block_chain const& c) {
  // Each op is in one place, and the places can run in turn.
  auto const turn = blocks_in_turn(c);
  CHECK(turn.size() == g.op_count());
  CHECK(std::set<op_id>(turn.begin(), turn.end()).size() == g.op_count());
  CHECK(is_topological(g, turn));
  // The border of each block.
  using values = std::set<value_id>;
  std::size_t const n = c.blocks.size();
  for (std::uint32_t k = 0; k < n; ++k) {
    auto const& b = c.blocks[k];
    values inputs, globals, sources, outputs, gradient_inputs, gradient_outputs, saved;
    auto const here = [&](op_id o) { return c.block_of[o] == k; };
    for (auto o : g.ops()) {
      bool const late = c.part[o] != step_part::forward;
      for (auto v : g.inputs(o)) {
        auto const p = g.producer(v);
        if (here(o) && p == nothing<op_id>) sources.insert(v);
        if (p == nothing<op_id>) continue;
        bool const made_late = c.part[p] != step_part::forward;
        bool const global = c.block_of[p] == block_chain::prologue_block;
        if (here(o) && !here(p)) (global ? globals : made_late ? gradient_inputs : inputs).insert(v);
        if (here(p) && !here(o)) (made_late ? gradient_outputs : outputs).insert(v);
        if (here(o) && late && !made_late) saved.insert(v);
      }
    }
    for (auto v : g.kept())
      if (auto const p = g.producer(v); p != nothing<op_id> && here(p))
        (c.part[p] != step_part::forward ? gradient_outputs : outputs).insert(v);
    auto const same = [](std::vector<value_id> const& list, values const& set) {
      return list.size() == set.size() && values(list.begin(), list.end()) == set;
    };
    CHECK(same(b.inputs, inputs));
    CHECK(same(b.globals, globals));
    CHECK(same(b.sources, sources));
    CHECK(same(b.outputs, outputs));
    CHECK(same(b.gradient_inputs, gradient_inputs));
    CHECK(same(b.gradient_outputs, gradient_outputs));
    CHECK(same(b.saved, saved));
  }
}

/// One block is the other under another name: op by op, without the words that classes are found by.
inline bool is_renamed(op_graph const& g, block_chain const& c, std::uint32_t from, std::uint32_t to) {
  auto const r = renaming(g, c, from, to);
  auto const &a = c.blocks[from], &b = c.blocks[to];
  auto const lists_match = [&](std::vector<op_id> const& x, std::vector<op_id> const& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (r.op[x[i]] != y[i]) return false;
    return true;
  };
  auto const values_match = [&](std::vector<value_id> const& x, std::vector<value_id> const& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (r.value[x[i]] != y[i]) return false;
    return true;
  };
  if (!lists_match(a.forward, b.forward) || !lists_match(a.backward, b.backward) || !lists_match(a.updates, b.updates))
    return false;
  if (!values_match(a.inputs, b.inputs) || !values_match(a.outputs, b.outputs) || !values_match(a.saved, b.saved) ||
      !values_match(a.globals, b.globals) || !values_match(a.sources, b.sources) ||
      !values_match(a.gradient_inputs, b.gradient_inputs) || !values_match(a.gradient_outputs, b.gradient_outputs))
    return false;
  for (auto const* list : {&a.forward, &a.backward, &a.updates})
    for (auto o : *list) {
      auto const p = r.op[o];
      if (&g.facets(o) != &g.facets(p) || g.target(o) != g.target(p) || g.details(o) != g.details(p)) return false;
      for (auto const& f : g.facets(o).attributes) {
        if (neap::detail::is_random(g, o) && f.name == "key") continue;
        if (!neap::detail::same_attribute(f.get(g.attributes(o)), f.get(g.attributes(p)))) return false;
      }
      if (g.inputs(o).size() != g.inputs(p).size() || g.outputs(o).size() != g.outputs(p).size()) return false;
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i)
        if (r.value[g.inputs(o)[i]] != g.inputs(p)[i]) return false;
      for (std::size_t i = 0; i < g.outputs(o).size(); ++i) {
        auto const v = g.outputs(o)[i], w = g.outputs(p)[i];
        if (r.value[v] != w || !(g.layout(v) == g.layout(w)) || g.bytes(g.storage(v)) != g.bytes(g.storage(w)) ||
            g.record(v).alias != g.record(w).alias || g.record(v).of != g.record(w).of ||
            g.is_kept(v) != g.is_kept(w) || g.role(v) != g.role(w))
          return false;
      }
    }
  // Two values share a memory there if they do here.
  auto const x = names_of(g, c, from).values, y = names_of(g, c, to).values;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((g.storage(x[i]) == g.storage(x[j])) != (g.storage(y[i]) == g.storage(y[j]))) return false;
  return true;
}

inline void check_classes(op_graph const& g, block_chain const& c, std::vector<block_class> const& classes) {
  std::size_t count = 0;
  for (std::uint32_t k = 0; k < classes.size(); ++k) {
    CHECK(classes[k].representative == classes[k].blocks.front());
    count += classes[k].blocks.size();
    for (auto b : classes[k].blocks) {
      CHECK(c.blocks[b].block_class == k);
      CHECK(is_renamed(g, c, classes[k].representative, b));
    }
  }
  CHECK(count == c.blocks.size());
}

inline void check_simplified(op_graph const& g, dataflow_program const& d, simplified_program const& p) {
  // Every forward op once, in a node or in the prologue; data edges go forward.
  std::set<op_id> seen(p.prologue.begin(), p.prologue.end());
  std::size_t count = p.prologue.size();
  for (std::uint32_t n = 0; n < p.nodes.size(); ++n) {
    CHECK(std::count(p.nodes[n].ops.begin(), p.nodes[n].ops.end(), p.nodes[n].main) == 1);
    for (auto o : p.nodes[n].ops) {
      CHECK(p.node_of[o] == n);
      seen.insert(o), ++count;
      for (auto const* list : {&d[o].data, &d[o].order})
        for (auto before : *list)
          if (auto const m = p.node_of[before]; m != simplified_program::prologue_node) {
            CHECK(m <= n);
            CHECK((m == n || std::any_of(p.edges.begin(), p.edges.end(),
                                         [&](simplified_edge const& e) { return e.from == m && e.to == n; })));
          }
    }
  }
  for (auto o : p.prologue)
    for (auto const* list : {&d[o].data, &d[o].order})
      for (auto before : *list) CHECK(p.node_of[before] == simplified_program::prologue_node);
  CHECK(count == d.nodes.size());
  CHECK(seen.size() == d.nodes.size());
  for (auto const& e : p.edges) {
    CHECK(e.from < e.to);
    for (auto v : e.values) CHECK(p.node_of[g.producer(v)] == e.from);
  }
}

inline void check_all(op_graph const& g, all_graphs const& a) {
  check_simplified(g, a.dataflow, a.simplified);
  check_chain(g, a.blocks);
  check_classes(g, a.blocks, a.classes);
}

}  // namespace neap::testing
