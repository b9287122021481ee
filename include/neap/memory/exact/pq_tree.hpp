// All orders of some leaves in which certain sets of them are contiguous: a PQ-tree (Booth and Lueker 1976). The children of
// a P-node may stand in any order, those of a Q-node in the one given or its reverse.
//
//        Q              orders of a b c d e: a (b c d in any order) e, and e (...) a
//      / | \            with "d and e contiguous":  a ((b c in any order) d) e, and its reverse
//     a  P  e
//       /|\             Trees are never changed: a new one shares what it can with the old one, which stays, and a search
//      b c d            goes back by forgetting the nodes that were added last.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

class pq_tree {
 public:
  static constexpr std::uint32_t none = 0xffffffffu;
  struct extent {
    std::size_t nodes = 0, children = 0;
  };

  constexpr extent size() const { return {nodes_.size(), children_.size()}; }
  /// Forgets all nodes that were added since.
  constexpr void shrink(extent to) { nodes_.resize(to.nodes), children_.resize(to.children); }

  constexpr std::uint32_t leaf(std::uint32_t id) {
    nodes_.push_back({kind::leaf, id, 0});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  /// Not empty, in any order.
  constexpr std::uint32_t in_any_order(std::vector<std::uint32_t> const& parts) { return make(kind::any, parts); }

  /// A tree of another, its leaves named anew by name(id).
  template <class Name>
  constexpr std::uint32_t copy(pq_tree const& other, std::uint32_t root, Name&& name) {
    node const n = other.nodes_[root];
    if (n.is == kind::leaf) return leaf(name(n.first));
    list parts;
    for (std::uint32_t k = 0; k < n.count; ++k) parts.push_back(copy(other, other.children_[n.first + k], name));
    return make(n.is, parts);
  }

  /// Labels the nodes below `root` by which leaves are marked (by id), as the two functions below ask.
  constexpr void label(std::uint32_t root, std::vector<char> const& marked) {
    if (labels_.size() < nodes_.size()) labels_.resize(2 * nodes_.size(), filled::none);
    label_below(root, marked);
  }
  /// The tree of those orders in which the marked leaves are contiguous, with `by` in their place; `none` if there is no
  /// such order. `by` may not be older than the labels' root. O(leaves).
  constexpr std::uint32_t replace(std::uint32_t root, std::uint32_t by) {
    return labels_[root] == filled::all ? by : replace_in(root, by);
  }
  /// f(leaf ids) for each largest set of marked leaves between which none of the others can come.
  template <class F>
  constexpr void for_each_block(std::uint32_t root, F&& f) const {
    std::vector<std::uint32_t> block;
    if (labels_[root] == filled::all) {
      add_leaves(root, block);
      f(block);
    } else blocks_in(root, block, f);
  }
  constexpr void add_leaves(std::uint32_t root, std::vector<std::uint32_t>& out) const {
    node const n = nodes_[root];
    if (n.is == kind::leaf) out.push_back(n.first);
    for (std::uint32_t k = 0; k < n.count; ++k) add_leaves(children_[n.first + k], out);
  }
  /// The leaves in the order of their ranks, where that is an order of the tree but for what is equal.
  constexpr std::vector<std::uint32_t> arranged(std::uint32_t root, std::vector<std::uint32_t> const& rank) const {
    std::vector<std::uint32_t> out;
    arrange(root, rank, out);
    return out;
  }
  /// Equal for trees of the same orders of the same leaves; value(id) stands for a leaf.
  template <class Value, class Mix>
  constexpr std::uint64_t hash(std::uint32_t root, Value const& value, Mix const& mix) const {
    node const n = nodes_[root];
    if (n.is == kind::leaf) return value(n.first);
    std::uint64_t forth = n.count, back = n.count;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const child = hash(children_[n.first + k], value, mix);
      if (n.is == kind::any) forth += mix(child, 1);
      else forth = mix(forth, child);
    }
    if (n.is == kind::any) return mix(forth, 2);
    for (std::uint32_t k = n.count; k-- > 0;) back = mix(back, hash(children_[n.first + k], value, mix));
    return mix(forth + back, 3);
  }

 private:
  enum class kind : std::uint8_t { leaf, any, given };
  enum class filled : std::uint8_t { none, part, all };
  struct node {
    kind is;
    std::uint32_t first, count;  // children; of a leaf its id
  };
  struct ranks {
    std::uint32_t least, most;
    friend constexpr bool operator<(ranks const& a, ranks const& b) {
      return a.least != b.least ? a.least < b.least : a.most < b.most;
    }
  };
  using list = std::vector<std::uint32_t>;

  constexpr std::uint32_t make(kind is, list const& parts) {
    if (parts.size() == 1) return parts[0];
    nodes_.push_back({parts.size() == 2 ? kind::any : is, static_cast<std::uint32_t>(children_.size()),
                      static_cast<std::uint32_t>(parts.size())});
    children_.insert(children_.end(), parts.begin(), parts.end());
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  constexpr filled label_below(std::uint32_t at, std::vector<char> const& marked) {
    node const n = nodes_[at];
    if (n.is == kind::leaf) return labels_[at] = marked[n.first] ? filled::all : filled::none;
    bool some = false, others = false;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const child = label_below(children_[n.first + k], marked);
      some |= child != filled::none, others |= child != filled::all;
    }
    return labels_[at] = !some ? filled::none : others ? filled::part : filled::all;
  }
  constexpr std::uint32_t replace_in(std::uint32_t at, std::uint32_t by) {
    node const n = nodes_[at];
    auto const child = [&](std::uint32_t k) { return children_[n.first + k]; };
    list parts;
    if (n.is == kind::any) {
      std::uint32_t left = none, right = none;
      bool whole = false;  // a child is marked as a whole
      for (std::uint32_t k = 0; k < n.count; ++k) {
        auto const c = child(k);
        if (labels_[c] == filled::none) parts.push_back(c);
        else if (labels_[c] == filled::all) whole = true;
        else if (left == none) left = c;
        else if (right == none) right = c;
        else return none;
      }
      if (left == none) parts.push_back(by);
      else if (right == none && !whole) {
        auto const inside = replace_in(left, by);
        if (inside == none) return none;
        parts.push_back(inside);
      } else {
        list row;
        if (!open(left, row)) return none;
        row.push_back(by);
        if (right != none && !open_back(right, row)) return none;
        parts.push_back(make(kind::given, row));
      }
      return make(kind::any, parts);
    }
    std::uint32_t i = 0, j = n.count - 1;
    while (labels_[child(i)] == filled::none) parts.push_back(child(i++));
    while (labels_[child(j)] == filled::none) --j;
    if (i == j) {
      auto const inside = replace(child(i), by);
      if (inside == none) return none;
      parts.push_back(inside);
    } else {
      for (auto k = i + 1; k < j; ++k)
        if (labels_[child(k)] != filled::all) return none;
      if (labels_[child(i)] == filled::part && !open(child(i), parts)) return none;
      parts.push_back(by);
      if (labels_[child(j)] == filled::part && !open_back(child(j), parts)) return none;
    }
    for (auto k = j + 1; k < n.count; ++k) parts.push_back(child(k));
    return make(kind::given, parts);
  }
  /// Adds to the row what is not marked of a node that is marked in part, where all that is marked comes behind it.
  constexpr bool open(std::uint32_t at, list& row) {
    node const n = nodes_[at];
    std::uint32_t part = none;
    if (n.is == kind::any) {
      list others;
      for (std::uint32_t k = 0; k < n.count; ++k) {
        auto const c = children_[n.first + k];
        if (labels_[c] == filled::none) others.push_back(c);
        else if (labels_[c] == filled::part && std::exchange(part, c) != none) return false;
      }
      if (!others.empty()) row.push_back(make(kind::any, others));
      return part == none || open(part, row);
    }
    auto const last = n.count - 1;
    bool const back = labels_[children_[n.first]] > labels_[children_[n.first + last]];
    auto const child = [&](std::uint32_t k) { return children_[n.first + (back ? last - k : k)]; };
    std::uint32_t k = 0;
    for (; k < n.count && labels_[child(k)] == filled::none; ++k) row.push_back(child(k));
    if (k < n.count && labels_[child(k)] == filled::part && !open(child(k++), row)) return false;
    for (; k < n.count; ++k)
      if (labels_[child(k)] != filled::all) return false;
    return true;
  }
  /// The same in reverse, where all that is marked comes before it.
  constexpr bool open_back(std::uint32_t at, list& row) {
    auto const first = row.size();
    if (!open(at, row)) return false;
    std::reverse(row.begin() + static_cast<std::ptrdiff_t>(first), row.end());
    return true;
  }
  template <class F>
  constexpr void blocks_in(std::uint32_t at, list& block, F& f) const {
    node const n = nodes_[at];
    auto const tell = [&] {
      if (!block.empty()) f(block);
      block.clear();
    };
    if (labels_[at] != filled::part) return;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = children_[n.first + k];
      if (labels_[c] != filled::all || n.is == kind::any) tell();
      if (labels_[c] == filled::all) add_leaves(c, block);
      else blocks_in(c, block, f);
    }
    tell();
  }
  constexpr ranks arrange(std::uint32_t at, std::vector<std::uint32_t> const& rank, list& out) const {
    struct part {
      ranks of;
      list leaves;
    };
    node const n = nodes_[at];
    if (n.is == kind::leaf) {
      out.push_back(n.first);
      return {rank[n.first], rank[n.first]};
    }
    std::vector<part> parts(n.count);
    for (std::uint32_t k = 0; k < n.count; ++k) parts[k].of = arrange(children_[n.first + k], rank, parts[k].leaves);
    if (n.is == kind::any) sort_list(parts, [](part const& a, part const& b) { return a.of < b.of; });
    else if (parts.back().of < parts.front().of) std::reverse(parts.begin(), parts.end());
    ranks all{none, 0};
    for (auto const& p : parts) {
      out.insert(out.end(), p.leaves.begin(), p.leaves.end());
      all = {std::min(all.least, p.of.least), std::max(all.most, p.of.most)};
    }
    return all;
  }

  plain_vector<node> nodes_;
  list children_;
  plain_vector<filled> labels_;
};

}  // namespace neap::inline v0::detail
