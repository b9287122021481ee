// The bodies of <neap/blocks/block_chain.hpp>.
#pragma once

#include <neap/blocks/block_chain.hpp>

#include <neap/core/separate_compilation.hpp>

#include <string>

namespace neap { inline namespace v0 {

namespace detail {

class chain_builder {
 public:
  chain_builder(op_graph const& g, basic_program const& b, simplified_program const& p, backward_nodes const& back,
                block_ends const& ends)
      : g_(g),
        b_(b),
        p_(p),
        back_(back) {
    c_.blocks.resize(ends.size());
    c_.part = b.part;
    c_.block_of.assign(g.op_count(), block_chain::epilogue_block);
    place_nodes(ends);
    place_backward();
    for (auto o : b.order) {
      auto const k = c_.block_of[o];
      if (k == block_chain::prologue_block) c_.prologue.push_back(o);
      else if (k == block_chain::epilogue_block) c_.epilogue.push_back(o);
      else list_of(c_.blocks[k], o).push_back(o);
    }
    for (std::uint32_t k = 0; k < c_.blocks.size(); ++k) describe(k);
  }
  block_chain take() { return std::move(c_); }

 private:
  std::vector<op_id>& list_of(program_block& b, op_id o) const {
    return b_.part[o] == step_part::forward ? b.forward : b_.part[o] == step_part::backward ? b.backward : b.updates;
  }
  static bool is_block(std::uint32_t k) { return k < block_chain::prologue_block; }

  void place_nodes(block_ends const& ends) {
    std::vector<std::uint32_t> block(p_.nodes.size());
    std::uint32_t from = 0, k = 0;
    for (auto end : ends) {
      for (auto n = from; n < end; ++n) block[n] = k;
      from = end, ++k;
    }
    if (from != p_.nodes.size()) throw error("blocks: the last end of a cut must be the number of nodes");
    of_node_ = block;
    // What depends on no weight goes to its readers, or, if they are in several blocks, before them all.
    std::vector<unsigned char> stays(p_.nodes.size());
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) stays[n] = p_.nodes[n].weighted || has_order(n);
    for (auto const& e : p_.edges) stays[e.to] |= stays[e.from];
    std::vector<std::uint32_t> readers(p_.nodes.size(), block_chain::epilogue_block);  // none yet
    auto const settle = [&](std::uint32_t n) {
      if (!stays[n] && readers[n] != block_chain::epilogue_block) block[n] = readers[n];
    };
    for (std::size_t e = p_.edges.size(); e-- > 0;) {
      auto const& edge = p_.edges[e];  // by `to`: all edges from a node come after all edges to it
      settle(edge.to);
      auto& r = readers[edge.from];
      r = r == block_chain::epilogue_block || r == block[edge.to] ? block[edge.to] : block_chain::prologue_block;
    }
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) settle(n);
    for (auto o : p_.prologue) c_.block_of[o] = block_chain::prologue_block;
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) {
      for (auto o : p_.nodes[n].ops) c_.block_of[o] = block[n];
      if (is_block(block[n])) c_.blocks[block[n]].nodes.push_back(n);
    }
  }
  /// It overwrites something, or what it reads is overwritten: it stays where it is.
  bool has_order(std::uint32_t n) const {
    for (auto o : p_.nodes[n].ops) {
      if (!g_.order_after(o).empty()) return true;
      for (auto v : g_.inputs(o))
        if (g_.record(g_.storage(v)).updates > 0) return true;
      for (auto v : g_.outputs(o))
        if (g_.record(g_.storage(v)).updates > 0) return true;
    }
    return false;
  }

  bool is_late(op_id o) const { return o != nothing<op_id> && b_.part[o] != step_part::forward; }

  void place_backward() {
    // An op joins blocks if it reads, in another one, what no further gradient depends on: gradients of weights.
    table<op_id, unsigned char> constant(g_.op_count(), 0);
    for (auto o : b_.order) {
      if (!is_late(o)) continue;
      auto const n = back_.node[o];
      constant[o] = n == no_id && is_constant(o, constant);
      if (n != no_id) c_.block_of[o] = of_node_[n];
      else if (constant[o]) c_.block_of[o] = block_chain::prologue_block;
      if (!is_block(c_.block_of[o])) continue;
      auto const joins = [&](op_id from) {
        if (!is_late(from) || c_.block_of[from] == block_chain::prologue_block) return false;
        return c_.block_of[from] == block_chain::epilogue_block ||
               (c_.block_of[from] != c_.block_of[o] && !back_.leads[from]);
      };
      bool any = false;
      for (auto v : g_.inputs(o)) any |= joins(g_.producer(v));
      for (auto from : g_.order_after(o))  // what it overwrites is read still, where it would run
        any |= is_late(from) && c_.block_of[from] != block_chain::prologue_block &&
               (c_.block_of[from] == block_chain::epilogue_block || c_.block_of[from] < c_.block_of[o]);
      if (any) c_.block_of[o] = block_chain::epilogue_block;
    }
  }
  /// It can run before all blocks.
  bool is_constant(op_id o, table<op_id, unsigned char> const& constant) const {
    auto const early = [&](op_id from) { return constant[from] || c_.block_of[from] == block_chain::prologue_block; };
    for (auto from : g_.order_after(o))
      if (!early(from)) return false;
    for (auto v : g_.inputs(o))
      if (auto const from = g_.producer(v); from != nothing<op_id> && !early(from)) return false;
    return true;
  }
  void describe(std::uint32_t k) {
    auto& b = c_.blocks[k];
    ++round_;
    if (seen_.empty()) seen_.assign(g_.value_count(), 0), saved_.assign(g_.value_count(), 0);
    for (auto const* list : {&b.forward, &b.backward, &b.updates})
      for (auto o : *list) {
        for (auto v : g_.inputs(o)) read(b, k, o, v);
        for (auto v : g_.outputs(o)) made(b, k, o, v);
      }
    storage_id memory = nothing<storage_id>, gradient = nothing<storage_id>;
    auto const one = [&](value_id v, storage_id& s) {
      c_.is_chain &= s == nothing<storage_id> || s == g_.storage(v);
      s = g_.storage(v);
    };
    for (auto v : b.inputs) {
      one(v, memory);
      c_.is_chain &= c_.block_of[g_.producer(v)] + 1 == k;
    }
    for (auto v : b.gradient_inputs) one(v, gradient);  // it may pass through blocks that only add
  }
  void read(program_block& b, std::uint32_t k, op_id o, value_id v) {
    auto const from = g_.producer(v);
    auto const of = from == nothing<op_id> ? block_chain::epilogue_block : c_.block_of[from];
    if (is_late(o) && from != nothing<op_id> && !is_late(from) && saved_[v] != round_)
      saved_[v] = round_, b.saved.push_back(v);
    if (seen_[v] == round_) return;
    seen_[v] = round_;
    if (from == nothing<op_id>) b.sources.push_back(v);
    else if (of == block_chain::prologue_block) b.globals.push_back(v);
    else if (of != k) (is_late(from) ? b.gradient_inputs : b.inputs).push_back(v);
  }
  void made(program_block& b, std::uint32_t k, op_id o, value_id v) {
    seen_[v] = round_;
    bool outside = g_.is_kept(v);
    for (auto const& u : g_.uses(v)) outside |= c_.block_of[u.op] != k;
    if (outside) (is_late(o) ? b.gradient_outputs : b.outputs).push_back(v);
  }

  op_graph const& g_;
  basic_program const& b_;
  simplified_program const& p_;
  backward_nodes const& back_;
  block_chain c_;
  std::vector<std::uint32_t> of_node_;  // by its place
  std::uint32_t round_ = 0;
  table<value_id, std::uint32_t> seen_, saved_;
};

}  // namespace detail

NEAP_FUNC block_chain make_chain(op_graph const& g, basic_program const& b, simplified_program const& p,
                                 backward_nodes const& back, block_ends const& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i] > p.nodes.size() || (i > 0 && ends[i] <= ends[i - 1]))
      throw error("blocks: the ends of a cut must ascend to the number of nodes");
  auto c = detail::chain_builder(g, b, p, back, ends).take();
  for (std::uint32_t k = 0; k < c.blocks.size(); ++k) c.blocks[k].block_class = k;
  return c;
}

}}  // namespace neap::v0
