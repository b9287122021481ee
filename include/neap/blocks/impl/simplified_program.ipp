// The bodies of <neap/blocks/simplified_program.hpp>.
#pragma once

#include <neap/blocks/simplified_program.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort_once.hpp>

#include <functional>

namespace neap { inline namespace v0 {

namespace detail {

/// Applies one step after the other to a list of nodes.
class node_folder {
 public:
  node_folder(op_graph const& g, dataflow_program const& d, simplified_program p, simplify_options options)
      : g_(g),
        d_(d),
        p_(std::move(p)),
        options_(options),
        gone_(p_.nodes.size(), 0) {}

  void apply(simplify_step s) {
    switch (s) {
      case simplify_step::sources:
        fold_where([&](std::uint32_t n) { return looks_only(n) && last_before(n) == no_id; });
        break;
      case simplify_step::lists: fold_where([&](std::uint32_t n) { return is_list(n); }); break;
      case simplify_step::sizes: fold_where([&](std::uint32_t n) { return is_size(n); }); break;
      case simplify_step::small: fold_where([&](std::uint32_t n) { return is_small(n) && !p_.nodes[n].random; }); break;
      case simplify_step::random: fold_where([&](std::uint32_t n) { return is_small(n) && p_.nodes[n].random; }); break;
      case simplify_step::views: fold_where([&](std::uint32_t n) { return looks_only(n); }); break;
      case simplify_step::updates: fold_where([&](std::uint32_t n) { return is_update(n); }); break;
      case simplify_step::late: make_late(); break;
    }
    if (!p_.has_done(s)) p_.done.push_back(s);
  }
  simplified_program take() {
    connect();
    return std::move(p_);
  }

 private:
  template <class F>
  void fold_where(F const& folds) {
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n)
      if (folds(n)) fold(n);
    compact();
  }
  bool looks_only(std::uint32_t n) const {
    for (auto o : p_.nodes[n].ops)
      if (!d_[o].is_view) return false;
    return true;
  }
  bool is_list(std::uint32_t n) const { return looks_only(n) && g_.outputs(p_.nodes[n].main).size() > 1; }
  bool is_update(std::uint32_t n) const {
    auto const& x = d_[p_.nodes[n].main];
    return x.is_update && x.bytes == 0;
  }
  bool is_size(std::uint32_t n) const {
    auto const& x = d_[p_.nodes[n].main];
    if (x.is_view || x.is_update || x.is_random || p_.nodes[n].ops.size() > 1 || x.bytes > 64) return false;
    for (auto v : g_.outputs(x.op))
      if (is_floating(g_.type(v).element)) return false;
    return true;
  }
  bool is_small(std::uint32_t n) const {
    bytes_t bytes = 0;
    for (auto o : p_.nodes[n].ops) {
      if (d_[o].is_update) return false;
      bytes += d_[o].bytes;
    }
    return !p_.nodes[n].weighted && bytes <= options_.small_bytes && last_before(n) == no_id;
  }

  template <class F>
  void each_before(std::uint32_t n, F const& f) const {
    for (auto o : p_.nodes[n].ops)
      for (auto const* list : {&d_[o].data, &d_[o].order})
        for (auto before : *list)
          if (auto const m = p_.node_of[before]; m != n && m != simplified_program::prologue_node) f(m);
  }
  /// The last of the nodes that n waits for; no_id: none.
  std::uint32_t last_before(std::uint32_t n) const {
    std::uint32_t last = no_id;
    each_before(n, [&](std::uint32_t m) { last = last == no_id ? m : std::max(last, m); });
    return last;
  }
  /// Into the last node that it waits for: so the list stays topological.
  void fold(std::uint32_t n) {
    auto const to = last_before(n);
    gone_[n] = 1;
    if (to == no_id) {
      for (auto o : p_.nodes[n].ops) p_.node_of[o] = simplified_program::prologue_node, p_.prologue.push_back(o);
      return;
    }
    auto& into = p_.nodes[to];
    auto const& from = p_.nodes[n];
    for (auto o : from.ops) p_.node_of[o] = to, into.ops.push_back(o);
    into.weighted |= from.weighted, into.trained |= from.trained;
    into.anchored |= from.anchored, into.random |= from.random;
  }
  void compact() {
    std::vector<simplified_node> left;
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) {
      if (gone_[n]) continue;
      for (auto o : p_.nodes[n].ops) p_.node_of[o] = static_cast<std::uint32_t>(left.size());
      sort(p_.nodes[n].ops);
      left.push_back(std::move(p_.nodes[n]));
    }
    sort(p_.prologue);
    p_.nodes = std::move(left);
    gone_.assign(p_.nodes.size(), 0);
  }
  void sort(std::vector<op_id>& ops) const {
    std::sort(ops.begin(), ops.end(), [&](op_id a, op_id b) { return d_.node_of[a] < d_.node_of[b]; });
  }

  void make_late() {
    auto const count = static_cast<std::uint32_t>(p_.nodes.size());
    std::vector<unsigned char> moves(count), put(count);
    for (std::uint32_t n = 0; n < count; ++n) moves[n] = !p_.nodes[n].anchored;
    // Where the order matters beyond the data, nodes stay.
    for (std::uint32_t n = 0; n < count; ++n)
      for (auto o : p_.nodes[n].ops)
        for (auto before : d_[o].order)
          if (auto const m = p_.node_of[before]; m != simplified_program::prologue_node) moves[m] = moves[n] = 0;
    for (std::uint32_t n = 0; n < count; ++n)  // a node that stays needs what it waits for in front of it, as it is
      if (moves[n]) each_before(n, [&](std::uint32_t m) { moves[n] = moves[n] && moves[m]; });
    std::vector<std::uint32_t> order, open;
    auto const emit = [&](std::uint32_t root) {
      open.push_back(root);
      while (!open.empty()) {
        auto const n = open.back();
        auto const size = open.size();
        if (!put[n])
          each_before(n, [&](std::uint32_t m) {
            if (!put[m]) open.push_back(m);
          });
        if (open.size() > size) {
          std::sort(open.begin() + static_cast<std::ptrdiff_t>(size), open.end(), std::greater<>{});
          continue;
        }
        open.pop_back();
        if (!put[n]) put[n] = 1, order.push_back(n);
      }
    };
    for (std::uint32_t n = 0; n < count; ++n)
      if (!moves[n]) emit(n);
    for (std::uint32_t n = 0; n < count; ++n) emit(n);  // they have no readers
    std::vector<simplified_node> nodes;
    for (auto n : order) nodes.push_back(std::move(p_.nodes[n]));
    p_.nodes = std::move(nodes);
    compact();
  }

  void connect() {
    p_.edges.clear();
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) {
      std::vector<std::pair<std::uint32_t, value_id>> reads;
      for (auto o : p_.nodes[n].ops) {
        for (auto v : g_.inputs(o))
          if (auto const from = g_.producer(v); from != nothing<op_id>)
            if (auto const m = p_.node_of[from]; m != n && m != simplified_program::prologue_node)
              reads.emplace_back(m, v);
        for (auto before : d_[o].order)
          if (auto const m = p_.node_of[before]; m != n && m != simplified_program::prologue_node)
            reads.emplace_back(m, nothing<value_id>);
      }
      detail::sort_once(reads);
      for (auto const& [m, v] : reads) {
        if (p_.edges.empty() || p_.edges.back().to != n || p_.edges.back().from != m) p_.edges.push_back({m, n, {}});
        if (v != nothing<value_id>) p_.edges.back().values.push_back(v);
      }
    }
  }

  op_graph const& g_;
  dataflow_program const& d_;
  simplified_program p_;
  simplify_options options_;
  std::vector<unsigned char> gone_;
};

}  // namespace detail

NEAP_FUNC simplified_program unfolded(op_graph const& g, dataflow_program const& d) {
  simplified_program p;
  p.node_of.assign(g.op_count(), no_id);
  for (auto const& n : d.nodes) {
    p.node_of[n.op] = static_cast<std::uint32_t>(p.nodes.size());
    p.nodes.push_back({n.op, {n.op}, n.weighted, n.trained, n.anchored, n.is_random});
  }
  return detail::node_folder(g, d, std::move(p), {}).take();
}

NEAP_FUNC simplified_program simplify(op_graph const& g, dataflow_program const& d, simplified_program p,
                                      simplify_step step, simplify_options const& options) {
  detail::node_folder f(g, d, std::move(p), options);
  f.apply(step);
  return f.take();
}

NEAP_FUNC simplified_program simplify(op_graph const& g, dataflow_program const& d, simplify_options const& options) {
  detail::node_folder f(g, d, unfolded(g, d), options);
  for (auto s : simplify_steps) f.apply(s);
  return f.take();
}

NEAP_FUNC std::string to_text(op_graph const& g, simplified_program const& p) {
  std::string s;
  if (!p.prologue.empty()) s += "prologue:\n";
  for (auto o : p.prologue) s += "    " + detail::assignment_text(g, o) + "\n";
  std::size_t edge = 0;
  for (std::uint32_t n = 0; n < p.nodes.size(); ++n) {
    s += "node " + std::to_string(n) + ":";
    for (; edge < p.edges.size() && p.edges[edge].to == n; ++edge)
      s += (p.edges[edge].values.empty() ? " after " : " reads ") + std::to_string(p.edges[edge].from);
    s += "\n";
    for (auto o : p.nodes[n].ops) s += (o == p.nodes[n].main ? "  * " : "    ") + detail::assignment_text(g, o) + "\n";
  }
  return s;
}

}}  // namespace neap::v0
