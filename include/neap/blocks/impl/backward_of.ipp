// The bodies of <neap/blocks/backward_of.hpp>.
#pragma once

#include <neap/blocks/backward_of.hpp>

#include <neap/core/min_cut.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

class backward_finder {
 public:
  backward_finder(op_graph const& g, basic_program const& b, simplified_program const& p)
      : g_(g),
        b_(b),
        p_(p),
        last_(p.nodes.size()),
        taken_(p.nodes.size(), 0),
        lo_(g.op_count(), none),
        hi_(g.op_count(), static_cast<std::int32_t>(p.nodes.size()) - 1),
        of_(g.op_count(), no_id) {
    for (auto o : b.order)
      if (p.node_of[o] == no_id) late_.push_back(o);
    at_.assign(g.op_count(), no_id);
    for (std::size_t i = 0; i < late_.size(); ++i) at_[late_[i]] = static_cast<std::uint32_t>(i);
  }

  backward_nodes find() {
    backward_nodes out;
    out.placed.assign(g_.op_count(), 0);
    constant_.assign(g_.op_count(), 0);
    note_touches();
    for (auto o : late_) note_place(o, out);
    leads_.assign(g_.op_count(), 0);
    for (std::size_t i = late_.size(); i-- > 0;)
      if (auto const o = late_[i]; leads_[o] || (out.placed[o] && b_.part[o] == step_part::backward))
        for (auto v : g_.inputs(o))
          if (auto const from = g_.producer(v); is_late(from)) leads_[from] = 1;
    for (std::size_t i = late_.size(); i-- > 0;) inherit(i, out);
    for (std::size_t i = 0; i < late_.size(); ++i) bound_above(i);
    for (std::size_t i = late_.size(); i-- > 0;) bound_below(i);
    if (last_ > 0) sweep();
    place_views();
    place_constants();
    out.node = std::move(of_);
    out.leads = std::move(leads_);
    return out;
  }

 private:
  static constexpr std::int32_t none = -1;
  static constexpr std::size_t max_touches = 64;  // what more nodes touch places nothing

  bool is_late(op_id o) const { return o != nothing<op_id> && at_[o] != no_id; }
  /// The op that made the memory of a value.
  op_id maker(value_id v) const { return g_.producer(g_.record(g_.storage(v)).first); }
  /// Ops of the late part that must run before o, without constants.
  template <class F>
  void each_before(op_id o, F const& f) const {
    for (auto v : g_.inputs(o))
      if (auto const from = g_.producer(v); is_late(from) && !constant_[from]) f(from);
    for (auto from : g_.order_after(o))
      if (is_late(from) && !constant_[from]) f(from);
  }
  /// The same, with what views look at in their place.
  template <class F>
  void each_maker_before(op_id o, F const& f) const {
    std::vector<op_id> open{o};
    while (!open.empty()) {
      auto const at = open.back();
      open.pop_back();
      each_before(at, [&](op_id from) {
        if (flow::is_view(g_, from)) open.push_back(from);
        else f(from);
      });
    }
  }
  /// It depends on no gradient, and waits for no node.
  bool is_constant(op_id o) const {
    for (auto from : g_.order_after(o))
      if (is_late(from) ? !constant_[from] : p_.node_of[from] != simplified_program::prologue_node) return false;
    for (auto v : g_.inputs(o))
      if (auto const from = g_.producer(v); is_late(from) && !constant_[from]) return false;
    return true;
  }
  /// It can be made before all nodes.
  bool is_free(op_id o) const {
    for (auto v : g_.inputs(o))
      if (auto const from = g_.producer(v); from != nothing<op_id>)
        if (is_late(from) ? of_[from] != no_id : p_.node_of[from] != simplified_program::prologue_node) return false;
    return true;
  }

  /// The trained nodes that touch each value and each memory: forward results, weights, inputs; not states, like a
  /// counter of steps that every draw reads.
  void note_touches() {
    readers_.assign(g_.value_count(), 0);
    auto const each_touch = [&](auto&& touch) {
      for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) {
        if (!p_.nodes[n].trained) continue;
        for (auto o : p_.nodes[n].ops) {
          for (auto v : g_.inputs(o)) touch(v, n);
          for (auto v : g_.outputs(o)) touch(v, n);
        }
      }
    };
    touches_.build(g_.storage_count(), [&](auto&& pair) {
      table<storage_id, std::uint32_t> last(g_.storage_count(), no_id);
      each_touch([&](value_id v, std::uint32_t n) {
        auto const s = g_.storage(v);
        if (last[s] != n && g_.role(g_.record(s).first) != role::state) last[s] = n, pair(s, n);
      });
    });
    touches_of_value_.build(g_.value_count(), [&](auto&& pair) {
      table<value_id, std::uint32_t> last(g_.value_count(), no_id);
      each_touch([&](value_id v, std::uint32_t n) {
        if (last[v] != n) last[v] = n, pair(v, n);
      });
    });
    each_touch([&](value_id v, std::uint32_t n) {
      auto const from = g_.producer(v);
      if (from == nothing<op_id> || p_.node_of[from] != n) readers_[v] = 1;
    });
  }
  /// The nodes where reading v places an op: makers and readers of just this value, where other nodes read it; else of
  /// the memory that it looks at. A view that was made backward counts as its source.
  std::span<std::uint32_t const> nodes_placing(value_id v) const {
    auto const s = g_.storage(v);
    if (g_.role(g_.record(s).first) == role::state) return {};
    while (g_.record(v).alias == alias_kind::view && is_late(g_.producer(v))) v = g_.base(v);
    return readers_[v] ? touches_of_value_[v] : touches_[s];
  }
  /// The nodes that touch everything that o reads and that places it.
  void note_place(op_id o, backward_nodes& out) {
    std::vector<std::uint32_t> common;
    std::uint32_t least = 0;  // the first node that touches the latest of what it reads
    for (auto v : g_.inputs(o)) {
      auto const t = nodes_placing(v);
      if (t.empty() || t.size() > max_touches) continue;
      least = std::max(least, t.front());
      if (!out.placed[o]) common.assign(t.begin(), t.end());
      else std::erase_if(common, [&](std::uint32_t n) { return !std::binary_search(t.begin(), t.end(), n); });
      out.placed[o] = 1;
    }
    if (out.placed[o] && common.empty()) common.push_back(least);
    common_.push_back(std::move(common));
    constant_[o] = !out.placed[o] && is_constant(o);
  }
  /// A gradient that is only used for updates of weights is of the nodes that the weights are of; so is what it was
  /// made from, as long as it is as large.
  void inherit(std::size_t i, backward_nodes const& out) {
    auto const o = late_[i];
    if (out.placed[o] || constant_[o]) return;
    std::vector<std::uint32_t> common;
    bool any = false;
    for (auto v : g_.outputs(o))
      for (auto const& u : g_.uses(v)) {
        bool const update = is_late(u.op) && b_.part[u.op] == step_part::update;
        if (!is_late(u.op) || (!update && (out.placed[u.op] || g_.type(g_.output(u.op)).count() != g_.type(v).count())))
          return;
        auto const& c = common_[at_[u.op]];
        if (!any) common = c;
        else std::erase_if(common, [&](std::uint32_t n) { return !std::binary_search(c.begin(), c.end(), n); });
        any = true;
      }
    common_[i] = std::move(common);
  }
  /// The last node that op number i of the late part can belong to, given what it waits for.
  void bound_above(std::size_t i) {
    auto const o = late_[i];
    auto& common = common_[i];
    std::int32_t hi = static_cast<std::int32_t>(last_) - 1;
    each_before(o, [&](op_id from) { hi = std::min(hi, hi_[from]); });
    if (!common.empty()) {
      std::int32_t at = none;
      for (auto n : common)
        if (static_cast<std::int32_t>(n) <= hi) at = static_cast<std::int32_t>(n);
      if (at != none && !flow::is_view(g_, o) && starts(o)) common.assign(1, static_cast<std::uint32_t>(at));
      if (at == none) common.assign(hi >= 0, static_cast<std::uint32_t>(hi));  // it waits for an earlier node
      else hi = at;
    }
    hi_[o] = hi;
  }
  /// It reads a constant that stands for the gradient of the loss, and no gradient else.
  bool starts(op_id o) const {
    bool constant = false, other = false;
    for (auto v : g_.inputs(o))
      if (auto const from = g_.producer(v); is_late(from)) (constant_[from] ? constant : other) = true;
    return constant && !other;
  }
  /// The first node that op number i of the late part can belong to, given what those behind it need.
  void bound_below(std::size_t i) {
    auto const o = late_[i];
    for (auto n : common_[i])
      if (static_cast<std::int32_t>(n) >= lo_[o]) {
        lo_[o] = std::min(static_cast<std::int32_t>(n), hi_[o]);
        break;
      }
    if (!constant_[o])
      each_before(o, [&](op_id from) { lo_[from] = std::max(lo_[from], std::min(lo_[o], hi_[from])); });
  }

  /// Cuts off node after node, from the last one on.
  void sweep() {
    auto const n = static_cast<std::int32_t>(last_);
    std::vector<std::vector<op_id>> from_lo(last_), from_hi(last_);
    for (auto o : late_) {
      if (constant_[o]) continue;
      if (lo_[o] >= 0) from_lo[static_cast<std::size_t>(lo_[o])].push_back(o);
      if (hi_[o] >= 0) from_hi[static_cast<std::size_t>(hi_[o])].push_back(o);
    }
    std::vector<op_id> open;
    for (std::int32_t i = n - 1; i >= 0; --i) {
      auto const here = static_cast<std::uint32_t>(i);
      for (auto o : from_lo[here])
        if (of_[o] == no_id) take(o, here);
      open.insert(open.end(), from_hi[here].begin(), from_hi[here].end());
      std::erase_if(open, [&](op_id o) { return of_[o] != no_id; });
      std::sort(open.begin(), open.end(), [&](op_id a, op_id b) { return at_[a] < at_[b]; });
      // Ops without a place that lead to none with one: as soon as gradients of readers, or of this node, are there.
      auto const follow = [&] {
        for (auto o : open)
          if (of_[o] == no_id && lo_[o] == none && (is_next(o, here, true) || is_last(o))) take(o, here);
      };
      follow();
      std::erase_if(open, [&](op_id o) { return of_[o] != no_id; });
      if (i == 0) break;
      if (!p_.nodes[here].trained) continue;  // nothing is made for it
      divide(open, here);
      follow();
    }
    // The rest has no place, and no node is next: as soon as all gradients are there that it reads.
    for (auto o : late_) {
      if (of_[o] != no_id || constant_[o] || lo_[o] != none) continue;
      auto at = no_id;
      each_before(o, [&](op_id from) { at = std::min(at, of_[from]); });
      if (at != no_id) take(o, at);
    }
    // The rest reads what is made for the first node.
    for (auto o : late_) {
      if (of_[o] != no_id || constant_[o]) continue;
      bool reads = lo_[o] != none;
      each_before(o, [&](op_id from) { reads |= of_[from] != no_id; });
      if (reads) of_[o] = 0;
    }
  }
  void take(op_id o, std::uint32_t n) {
    of_[o] = n;
    ++taken_[n];
  }
  /// All gradients that o reads are there, made backward by readers of node `here`; or, `same`, they are results for
  /// the node itself that nothing of earlier nodes needs.
  bool is_next(op_id o, std::uint32_t here, bool same) {
    bool any = false, all = true;
    each_maker_before(o, [&](op_id from) {
      any = true;
      all = all && of_[from] != no_id && (of_[from] == here ? same && !leads_[from] : reads_of(of_[from], here));
    });
    return any && all;
  }
  /// All gradients that o reads are there, and the ops with a place have read them: they wait for no other.
  bool is_last(op_id o) {
    bool read = false, waits = false;
    each_maker_before(o, [&](op_id from) {
      waits |= of_[from] == no_id;
      for (auto v : g_.outputs(from)) waits = waits || awaited(g_.storage(v), read);
    });
    return read && !waits;
  }
  /// Whether an op with a place, and of no node yet, reads the memory; `read`: one that is of a node does.
  bool awaited(storage_id s, bool& read) {
    for (value_id v : values_of(s))
      for (auto const& u : g_.uses(v)) {
        if (!is_late(u.op) || lo_[u.op] == none || flow::is_view(g_, u.op)) continue;
        if (of_[u.op] == no_id) return true;
        read = true;
      }
    return false;
  }
  /// Node m reads node n, or only nodes lie between that nothing was made for: gradients pass through them as they are.
  bool reads_of(std::uint32_t m, std::uint32_t n) {
    if (before_.row_count() == 0)
      before_.build(last_, [&](auto&& pair) {
        for (auto const& e : p_.edges)
          if (!e.values.empty()) pair(e.to, e.from);
      });
    std::vector<std::uint32_t> open{m};
    for (std::size_t i = 0; i < open.size() && i < 32; ++i)
      for (auto k : before_[open[i]]) {
        if (k == n) return true;
        if (k > n && taken_[k] == 0) open.push_back(k);
      }
    return false;
  }

  /// Views cost nothing: they go where they are read.
  void place_views() {
    for (std::size_t i = late_.size(); i-- > 0;)
      if (auto const o = late_[i]; of_[o] != no_id && flow::is_view(g_, o))
        if (auto const n = last_reader(o); n != no_id) of_[o] = n;
  }
  void place_constants() {
    for (std::size_t i = late_.size(); i-- > 0;) {
      auto const o = late_[i];
      if (constant_[o]) of_[o] = last_reader(o);
    }
    for (auto o : late_) {  // what several nodes read is made before them all, where it can be
      if (!constant_[o] || !is_free(o)) continue;
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses(v))
          if (of_[u.op] != last_reader(o)) of_[o] = no_id;
    }
  }
  std::uint32_t last_reader(op_id o) const {
    std::uint32_t last = no_id;
    for (auto v : g_.outputs(o))
      for (auto const& u : g_.uses(v))
        if (auto const n = of_[u.op]; n != no_id) last = last == no_id ? n : std::max(last, n);
    return last;
  }

  /// The free ops at the cut before node `here`: those on the source's side belong to it. Ops without a place wait.
  void divide(std::vector<op_id> const& all, std::uint32_t here) {
    bool any = false;
    number_map node;
    std::uint32_t count = 2;
    std::vector<op_id> open;
    for (auto o : all)
      if (lo_[o] != none) open.push_back(o), node.add(index(o), count++);
    struct memory {
      storage_id storage;
      std::uint32_t node;
    };
    std::vector<memory> memories;
    number_map memory_of;
    auto const note = [&](value_id v) {
      auto const from = maker(v);
      if (is_late(from) && !constant_[from] && memory_of.add(index(g_.storage(v)), count))
        memories.push_back({g_.storage(v), count++});
    };
    for (auto o : open) {
      for (auto v : g_.inputs(o)) note(v);
      for (auto v : g_.outputs(o)) note(v);
    }
    min_cut net(count);
    for (auto o : open) {
      auto const at = node.find(index(o));
      for (auto v : g_.inputs(o))
        if (auto const s = memory_of.find(index(g_.storage(v))); s != number_map::none)
          net.add_edge(s, at, min_cut::unlimited);
      each_before(o, [&](op_id from) {
        if (auto const f = node.find(index(from)); f != number_map::none) net.add_edge(at, f, min_cut::unlimited);
      });
      if (is_next(o, here, false)) net.add_edge(0, at, 1);  // between equals
    }
    for (auto const& m : memories) {
      auto const from = maker(g_.record(m.storage).first);
      bool const made = of_[from] != no_id;
      if (!made && !node.contains(index(from))) continue;
      any |= made;
      net.add_edge(made ? 0 : node.find(index(from)), m.node, weight_of(m.storage));
      if (read_later(m.storage, node)) net.add_edge(m.node, 1, min_cut::unlimited);
    }
    if (!any) return;
    net.cut(0, 1);
    for (auto o : open)
      if (net.has_source(node.find(index(o)))) take(o, here);
  }
  /// Bytes, far above what decides between equals.
  bytes_t weight_of(storage_id s) const { return std::clamp<bytes_t>(g_.bytes(s), 1, bytes_t{1} << 45) << 12; }
  /// Whether an op that is sure to belong to an earlier node reads the memory. (An op without a place follows its
  /// inputs.)
  bool read_later(storage_id s, number_map const& open) {
    for (value_id v : values_of(s))
      for (auto const& u : g_.uses(v))
        if (is_late(u.op) && of_[u.op] == no_id && lo_[u.op] != none && !open.contains(index(u.op))) return true;
    return false;
  }
  std::span<value_id const> values_of(storage_id s) {
    if (values_.row_count() == 0)
      values_.build(g_.storage_count(), [&](auto&& pair) {
        for (auto v : g_.values()) pair(g_.storage(v), v);
      });
    return values_[s];
  }

  op_graph const& g_;
  basic_program const& b_;
  simplified_program const& p_;
  std::size_t last_;
  std::vector<op_id> late_;         // in the order of the program
  table<op_id, std::uint32_t> at_;  // in late_
  csr<storage_id, std::uint32_t> touches_;
  csr<value_id, std::uint32_t> touches_of_value_;
  table<value_id, unsigned char> readers_;          // nodes other than its maker read it
  csr<std::uint32_t, std::uint32_t> before_;        // of each node: whose results it reads
  std::vector<std::uint32_t> taken_;                // ops that belong to each node so far
  std::vector<std::vector<std::uint32_t>> common_;  // of late_: the nodes where its inputs place it, ascending
  table<op_id, std::int32_t> lo_, hi_;              // first and last node that an op can belong to; lo_ none: no place
  table<op_id, std::uint32_t> of_;
  table<op_id, unsigned char> constant_, leads_;
  csr<storage_id, value_id> values_;
};

}  // namespace detail

NEAP_FUNC backward_nodes find_backward(op_graph const& g, basic_program const& b, simplified_program const& p) {
  return detail::backward_finder(g, b, p).find();
}

}}  // namespace neap::v0
