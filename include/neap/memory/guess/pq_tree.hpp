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
  /// Of up to 32 sets, as bits, those that a leaf is in, and those between whose leaves it would stand as a stranger; in
  /// neither, it may stand anywhere.
  struct membership {
    std::uint32_t in = 0, out = 0;
  };
  struct extent {
    std::size_t nodes = 0, children = 0;
  };

  extent size() const { return {nodes_.size(), children_.size()}; }
  /// Forgets all nodes that were added since.
  void shrink(extent to) { nodes_.resize(to.nodes), children_.resize(to.children); }

  std::uint32_t leaf(std::uint32_t id) {
    nodes_.push_back({kind::leaf, id, 0});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  /// Not empty, in any order.
  std::uint32_t in_any_order(std::vector<std::uint32_t> const& parts) {
    auto const first = parts_.size();
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    return make(kind::any, first);
  }

  /// A tree of another, its leaves named anew by name(id).
  template <class Name>
  std::uint32_t copy(pq_tree const& other, std::uint32_t root, Name&& name) {
    node const n = other.nodes_[root];
    if (n.is == kind::leaf) return leaf(name(n.first));
    auto const first = parts_.size();
    for (std::uint32_t k = 0; k < n.count; ++k) parts_.push_back(copy(other, other.children_[n.first + k], name));
    return make(n.is, first);
  }

  /// Labels the nodes below `root` by which leaves are marked (by id), as the two functions below ask.
  void label(std::uint32_t root, std::vector<char> const& marked) {
    if (labels_.size() < nodes_.size()) labels_.resize(2 * nodes_.size(), filled::none);
    label_below(root, marked);
  }
  /// The tree of those orders in which the marked leaves are contiguous, with `by` in their place; `none` if there is no
  /// such order. `by` may not be older than the labels' root. O(leaves).
  std::uint32_t replace(std::uint32_t root, std::uint32_t by) {
    return labels_[root] == filled::all ? by : replace_in(root, by);
  }
  /// f(leaf ids) for each largest set of marked leaves between which none of the others can come.
  template <class F>
  void for_each_block(std::uint32_t root, F&& f) const {
    std::vector<std::uint32_t> block;
    if (labels_[root] == filled::all) {
      add_leaves(root, block);
      f(block);
    } else blocks_in(root, block, f);
  }
  void add_leaves(std::uint32_t root, std::vector<std::uint32_t>& out) const {
    node const n = nodes_[root];
    if (n.is == kind::leaf) out.push_back(n.first);
    for (std::uint32_t k = 0; k < n.count; ++k) add_leaves(children_[n.first + k], out);
  }
  /// Those sets whose leaves have strangers between them in all orders; sets_of(id) gives the membership of a leaf. Each set
  /// is told for itself, all in one go. O(leaves).
  template <class SetsOf>
  std::uint32_t never_together(std::uint32_t root, SetsOf const& sets_of) const {
    return spread_of(root, sets_of).nowhere;
  }
  /// f(sum, node, beside) for each set that is contiguous in all orders: what is below a node, or below two that are
  /// neighbours below a Q-node (else `beside` is none). `sum`: of value(id) of its leaves. Gives the sum of all.
  template <class Value, class F>
  std::uint64_t for_each_set(std::uint32_t root, Value const& value, F&& f) const {
    node const n = nodes_[root];
    if (n.is == kind::leaf) return value(n.first);
    std::uint64_t all = 0, before = 0;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = children_[n.first + k];
      auto const sum = for_each_set(c, value, f);
      if (nodes_[c].is != kind::leaf) f(sum, c, none);
      if (n.is == kind::given && k > 0) f(before + sum, c, children_[n.first + k - 1]);
      before = sum, all += sum;
    }
    return all;
  }
  /// The leaves in the order of their ranks, where that is an order of the tree but for what is equal.
  std::vector<std::uint32_t> arranged(std::uint32_t root, std::vector<std::uint32_t> const& rank) const {
    std::vector<std::uint32_t> out;
    arrange(root, rank, out);
    return out;
  }
  /// Equal for trees of the same orders of the same leaves; value(id) stands for a leaf.
  template <class Value, class Mix>
  std::uint64_t hash(std::uint32_t root, Value const& value, Mix const& mix) {
    node const n = nodes_[root];
    if (n.is == kind::leaf) return value(n.first);
    std::uint64_t forth = n.count, back = n.count;
    if (n.is == kind::any) {
      for (std::uint32_t k = 0; k < n.count; ++k) forth += mix(hash(children_[n.first + k], value, mix), 1);
      return mix(forth, 2);
    }
    auto const first = hashes_.size();
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const child = hash(children_[n.first + k], value, mix);
      hashes_.push_back(child);
      forth = mix(forth, child);
    }
    for (; hashes_.size() > first; hashes_.pop_back()) back = mix(back, hashes_.back());
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
    friend bool operator<(ranks const& a, ranks const& b) {
      return a.least != b.least ? a.least < b.least : a.most < b.most;
    }
  };
  /// Of the leaves below a node: sets that have some, sets to which some are strangers; of those that are both, by where the
  /// set can lie if together.
  struct spread {
    std::uint32_t in = 0, out = 0, at_side = 0, inside = 0, nowhere = 0;
    std::uint32_t whole() const { return in & ~out; }
    void add(spread const& child) { in |= child.in, out |= child.out, nowhere |= child.nowhere; }
  };
  using list = std::vector<std::uint32_t>;

  /// A node of the parts from `first` on, which are taken off.
  std::uint32_t make(kind is, std::size_t first) {
    auto const count = parts_.size() - first;
    auto made = parts_[first];
    if (count > 1) {
      nodes_.push_back({count == 2 ? kind::any : is, static_cast<std::uint32_t>(children_.size()),
                        static_cast<std::uint32_t>(count)});
      children_.insert(children_.end(), parts_.begin() + static_cast<std::ptrdiff_t>(first), parts_.end());
      made = static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    parts_.resize(first);
    return made;
  }
  std::uint32_t give_up(std::size_t first) {
    parts_.resize(first);
    return none;
  }
  template <class SetsOf>
  spread spread_of(std::uint32_t at, SetsOf const& sets_of) const {
    node const n = nodes_[at];
    if (n.is == kind::leaf) {
      membership const m = sets_of(n.first);
      return {m.in, m.out};
    }
    if (n.is == kind::given) return spread_of_row(n, sets_of);
    spread all;
    std::uint32_t whole = 0, inside = 0, two_inside = 0, side = 0, two_sides = 0, three_sides = 0;  // of some children
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = spread_of(children_[n.first + k], sets_of);
      all.add(c), whole |= c.whole();
      two_inside |= inside & c.inside, inside |= c.inside;
      three_sides |= two_sides & c.at_side, two_sides |= side & c.at_side, side |= c.at_side;
    }
    all.nowhere |= three_sides | two_inside | (inside & (whole | side));
    all.inside = (two_sides | inside) & ~all.nowhere;
    all.at_side = all.in & all.out & ~all.inside & ~all.nowhere;
    return all;
  }
  template <class SetsOf>
  spread spread_of_row(node const& n, SetsOf const& sets_of) const {
    spread all;
    std::uint32_t over = 0, at_left = 0, alone = 0;   // strangers came behind; nothing before; one child has all
    std::uint32_t left_whole = 0, left_inside = 0;    // of the children that have some the leftmost,
    std::uint32_t right_whole = 0, right_inside = 0;  // the rightmost
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = spread_of(children_[n.first + k], sets_of);
      auto const again = c.in & all.in, fresh = c.in & ~all.in;
      all.nowhere |= again & (over | (~alone & ~right_whole));
      at_left |= fresh & ~all.out, left_whole |= fresh & c.whole(), left_inside |= fresh & c.inside;
      alone = (alone & ~again) | fresh;
      right_whole = (right_whole & ~c.in) | c.whole(), right_inside = (right_inside & ~c.in) | c.inside;
      over |= all.in & c.out & ~c.in;
      all.add(c);
    }
    auto const several = all.in & ~alone;
    all.nowhere |= several & (left_inside | right_inside);
    auto const to_left = at_left & left_whole, to_right = right_whole & ~over;
    all.inside = ((alone & (left_inside | (~at_left & over))) | (several & ~to_left & ~to_right)) & ~all.nowhere;
    all.at_side = all.in & all.out & ~all.inside & ~all.nowhere;
    return all;
  }
  filled label_below(std::uint32_t at, std::vector<char> const& marked) {
    node const n = nodes_[at];
    if (n.is == kind::leaf) return labels_[at] = marked[n.first] ? filled::all : filled::none;
    bool some = false, others = false;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const child = label_below(children_[n.first + k], marked);
      some |= child != filled::none, others |= child != filled::all;
    }
    return labels_[at] = !some ? filled::none : others ? filled::part : filled::all;
  }
  std::uint32_t replace_in(std::uint32_t at, std::uint32_t by) {
    node const n = nodes_[at];
    auto const child = [&](std::uint32_t k) { return children_[n.first + k]; };
    auto const first = parts_.size();
    if (n.is == kind::any) {
      std::uint32_t left = none, right = none;
      bool whole = false;  // a child is marked as a whole
      for (std::uint32_t k = 0; k < n.count; ++k) {
        auto const c = child(k);
        if (labels_[c] == filled::none) parts_.push_back(c);
        else if (labels_[c] == filled::all) whole = true;
        else if (left == none) left = c;
        else if (right == none) right = c;
        else return give_up(first);
      }
      if (left == none) parts_.push_back(by);
      else if (right == none && !whole) {
        auto const inside = replace_in(left, by);
        if (inside == none) return give_up(first);
        parts_.push_back(inside);
      } else {
        auto const row = parts_.size();
        if (!open(left)) return give_up(first);
        parts_.push_back(by);
        if (right != none && !open_back(right)) return give_up(first);
        auto const made = make(kind::given, row);
        parts_.push_back(made);
      }
      return make(kind::any, first);
    }
    std::uint32_t i = 0, j = n.count - 1;
    while (labels_[child(i)] == filled::none) parts_.push_back(child(i++));
    while (labels_[child(j)] == filled::none) --j;
    if (i == j) {
      auto const inside = replace(child(i), by);
      if (inside == none) return give_up(first);
      parts_.push_back(inside);
    } else {
      for (auto k = i + 1; k < j; ++k)
        if (labels_[child(k)] != filled::all) return give_up(first);
      if (labels_[child(i)] == filled::part && !open(child(i))) return give_up(first);
      parts_.push_back(by);
      if (labels_[child(j)] == filled::part && !open_back(child(j))) return give_up(first);
    }
    for (auto k = j + 1; k < n.count; ++k) parts_.push_back(child(k));
    return make(kind::given, first);
  }
  /// Adds to the parts what is not marked of a node that is marked in part, where all that is marked comes behind it.
  bool open(std::uint32_t at) {
    node const n = nodes_[at];
    std::uint32_t part = none;
    if (n.is == kind::any) {
      auto const first = parts_.size();
      for (std::uint32_t k = 0; k < n.count; ++k) {
        auto const c = children_[n.first + k];
        if (labels_[c] == filled::none) parts_.push_back(c);
        else if (labels_[c] == filled::part && std::exchange(part, c) != none) return false;
      }
      if (parts_.size() > first) {
        auto const others = make(kind::any, first);
        parts_.push_back(others);
      }
      return part == none || open(part);
    }
    auto const last = n.count - 1;
    bool const back = labels_[children_[n.first]] > labels_[children_[n.first + last]];
    auto const child = [&](std::uint32_t k) { return children_[n.first + (back ? last - k : k)]; };
    std::uint32_t k = 0;
    for (; k < n.count && labels_[child(k)] == filled::none; ++k) parts_.push_back(child(k));
    if (k < n.count && labels_[child(k)] == filled::part && !open(child(k++))) return false;
    for (; k < n.count; ++k)
      if (labels_[child(k)] != filled::all) return false;
    return true;
  }
  /// The same in reverse, where all that is marked comes before it.
  bool open_back(std::uint32_t at) {
    auto const first = parts_.size();
    if (!open(at)) return false;
    std::reverse(parts_.begin() + static_cast<std::ptrdiff_t>(first), parts_.end());
    return true;
  }
  template <class F>
  void blocks_in(std::uint32_t at, list& block, F& f) const {
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
  ranks arrange(std::uint32_t at, std::vector<std::uint32_t> const& rank, list& out) const {
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
  list parts_;                         // of the nodes at work, one behind the other
  std::vector<std::uint64_t> hashes_;  // the same for their hashes
};

}  // namespace neap::inline v0::detail
