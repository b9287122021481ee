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
  static constexpr char yes = 1, either = 2;  // marks of leaves; 0: no
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
  constexpr std::uint32_t in_any_order(std::vector<std::uint32_t> const& parts) {
    auto const first = parts_.size();
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    return make(kind::any, first);
  }

  /// A tree of another, its leaves named anew by name(id).
  template <class Name>
  constexpr std::uint32_t copy(pq_tree const& other, std::uint32_t root, Name&& name) {
    node const n = other.nodes_[root];
    if (n.is == kind::leaf) return leaf(name(n.first));
    auto const first = parts_.size();
    for (std::uint32_t k = 0; k < n.count; ++k) parts_.push_back(copy(other, other.children_[n.first + k], name));
    return make(n.is, first);
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
  /// Whether the leaves marked `yes` are contiguous in one of the orders, but for those marked `either`. O(leaves).
  constexpr bool gathers(std::uint32_t root, std::vector<char> const& marked) const {
    return gather(root, marked) != gathered::nowhere;
  }
  /// f(sum, node, beside) for each set that is contiguous in all orders: what is below a node, or below two that are
  /// neighbours below a Q-node (else `beside` is none). `sum`: of value(id) of its leaves. Gives the sum of all.
  template <class Value, class F>
  constexpr std::uint64_t for_each_set(std::uint32_t root, Value const& value, F&& f) const {
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
  enum class gathered : std::uint8_t { neither, none, all, at_side, inside, nowhere };
  using list = std::vector<std::uint32_t>;

  /// A node of the parts from `first` on, which are taken off.
  constexpr std::uint32_t make(kind is, std::size_t first) {
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
  constexpr std::uint32_t give_up(std::size_t first) {
    parts_.resize(first);
    return none;
  }
  /// Where the leaves marked `yes` can lie among the others, if together.
  constexpr gathered gather(std::uint32_t at, std::vector<char> const& marked) const {
    node const n = nodes_[at];
    if (n.is == kind::leaf)
      return marked[n.first] == yes ? gathered::all : marked[n.first] == either ? gathered::neither : gathered::none;
    if (n.is == kind::given) return gather_row(n, marked);
    std::uint32_t whole = 0, part = 0, inside = 0, others = 0;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = gather(children_[n.first + k], marked);
      if (c == gathered::nowhere) return c;
      whole += c == gathered::all, part += c == gathered::at_side;
      inside += c == gathered::inside, others += c == gathered::none;
    }
    if (part > 2 || inside > 1 || (inside == 1 && whole + part > 0)) return gathered::nowhere;
    if (part == 2 || inside == 1) return gathered::inside;
    if (whole + part == 0) return others == 0 ? gathered::neither : gathered::none;
    return others + part == 0 ? gathered::all : gathered::at_side;
  }
  constexpr gathered gather_row(node const& n, std::vector<char> const& marked) const {
    gathered left = gathered::none, right = gathered::none;  // of the marked children the outermost
    std::uint32_t count = 0, first = 0, last = 0;
    for (std::uint32_t k = 0; k < n.count; ++k) {
      auto const c = gather(children_[n.first + k], marked);
      if (c == gathered::nowhere) return c;
      if (c == gathered::neither) continue;
      auto const place = count++;
      if (c == gathered::none) continue;
      if (left == gathered::none) left = c, first = place;
      else if (place != last + 1 || (last != first && right != gathered::all)) return gathered::nowhere;
      right = c, last = place;
    }
    if (left == gathered::none) return count == 0 ? gathered::neither : gathered::none;
    bool const at_left = first == 0, at_right = last + 1 == count;
    if (first == last)
      return count == 1                                          ? left
             : left != gathered::inside && (at_left || at_right) ? gathered::at_side
                                                                 : gathered::inside;
    if (left == gathered::inside || right == gathered::inside) return gathered::nowhere;
    bool const to_left = at_left && left == gathered::all, to_right = at_right && right == gathered::all;
    return to_left && to_right ? gathered::all : to_left || to_right ? gathered::at_side : gathered::inside;
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
  constexpr bool open(std::uint32_t at) {
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
  constexpr bool open_back(std::uint32_t at) {
    auto const first = parts_.size();
    if (!open(at)) return false;
    std::reverse(parts_.begin() + static_cast<std::ptrdiff_t>(first), parts_.end());
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
  list parts_;  // of the nodes at work, one behind the other
};

}  // namespace neap::inline v0::detail
