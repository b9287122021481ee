// In which orders what is alive may lie: a PQ-tree of records and free bytes, of which stretches are replaced at each
// boundary (planar_search.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/guess/planar_problem.hpp>
#include <neap/memory/guess/pq_tree.hpp>
#include <neap/memory/guess/subsets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

/// Of a boundary: what ends in it, records and free bytes, and what takes its place, to the byte.
struct stretch {
  std::uint32_t items, beginning;  // sets: of what ends; of the boundary's records that begin
  std::int64_t free;               // bytes that begin
};

/// Trees of orders of the same records, in a place that can be cut back. Leaves below the count of records are these,
/// others are free bytes of one section that lie together.
class planar_orders {
 public:
  struct extent {
    pq_tree::extent tree;
    std::size_t free;
  };
  static constexpr std::uint32_t none = pq_tree::none;

  explicit planar_orders(planar_problem const& problem) : problem_(&problem) {}

  pq_tree tree;
  std::vector<std::uint32_t> items;  // by find_items(): what ends at the boundary

  planar_problem const& problem() const { return *problem_; }
  std::size_t record_count() const { return problem_->records().count(); }
  bool is_record(std::uint32_t leaf) const { return leaf < record_count(); }
  std::int64_t size_of(std::uint32_t leaf) const {
    return is_record(leaf) ? problem_->records().size[leaf] : free_[leaf - record_count()];
  }
  std::size_t leaf_count() const { return record_count() + free_.size(); }

  extent size() const { return {tree.size(), free_.size()}; }
  void shrink(extent to) { tree.shrink(to.tree), free_.resize(to.free); }
  void clear() { shrink({}); }

  /// All that lives in a section, in any order.
  std::uint32_t all_in(std::size_t direction, std::uint32_t section) {
    std::vector<std::uint32_t> parts;
    for (std::uint32_t i = 0; i < record_count(); ++i)
      if (problem_->begin_of(direction, i) <= section && section < problem_->end_of(direction, i))
        parts.push_back(tree.leaf(i));
    auto const& b = problem_->boundary(direction, section);
    add_free(b, b.free, parts);
    return tree.in_any_order(parts);
  }

  /// Lists what ends at the boundary in an order of that root: its records, then free bytes.
  void find_items(planar_boundary const& at, std::uint32_t root) {
    items = at.ending;
    leaves_.clear();
    tree.add_leaves(root, leaves_);
    for (auto leaf : leaves_)
      if (!is_record(leaf)) items.push_back(leaf);
  }
  /// The items as sets, of which each lies together in all orders of that root.
  void find_blocks(std::uint32_t root, std::vector<std::uint32_t>& blocks) {
    label(root, items);
    item_of_.resize(std::max(item_of_.size(), leaf_count()), 0);
    for (std::uint32_t k = 0; k < items.size(); ++k) item_of_[items[k]] = k;
    blocks.clear();
    tree.for_each_block(root, [&](std::vector<std::uint32_t> const& block) {
      std::uint32_t set = 0;
      for (auto leaf : block) set |= std::uint32_t{1} << item_of_[leaf];
      blocks.push_back(set);
    });
  }
  /// The root with a stretch put in place of what ends in it; `none` if that cannot be. `by`: what has been put there.
  std::uint32_t put(planar_boundary const& at, std::uint32_t root, stretch const& s, std::uint32_t& by) {
    parts_.clear(), leaves_.clear();
    for_each_member(s.beginning, [&](std::size_t k) { parts_.push_back(tree.leaf(at.beginning[k])); });
    add_free(at, s.free, parts_);
    by = tree.in_any_order(parts_);
    for_each_member(s.items, [&](std::size_t k) { leaves_.push_back(items[k]); });
    label(root, leaves_);
    return tree.replace(root, by);
  }
  /// Labels the nodes below a root by whether these leaves are theirs, as the tree's replace() needs it.
  void label(std::uint32_t root, std::vector<std::uint32_t> const& leaves) {
    marked_.resize(std::max(marked_.size(), leaf_count()), 0);
    for (auto leaf : leaves) marked_[leaf] = 1;
    tree.label(root, marked_);
    for (auto leaf : leaves) marked_[leaf] = 0;
  }
  /// These leaves in any order.
  std::uint32_t in_any_order(std::vector<std::uint32_t> const& leaves) {
    parts_.clear();
    for (auto leaf : leaves) parts_.push_back(tree.leaf(leaf));
    return tree.in_any_order(parts_);
  }

  /// Equal for the same orders, free bytes told apart by their sizes only.
  state_hash state_of(std::uint32_t root) {
    state_hash state;
    state.add(0, tree.hash(
                     root,
                     [&](std::uint32_t leaf) {
                       return is_record(leaf) ? hash_of(leaf, 0)
                                              : hash_of(static_cast<std::uint64_t>(size_of(leaf)), 1);
                     },
                     hash_of));
    return state;
  }
  /// Adds a tree of the same orders, with its free bytes, to others.
  std::uint32_t copy_to(planar_orders& to, std::uint32_t root) const {
    return to.tree.copy(tree, root, [&](std::uint32_t leaf) {
      if (is_record(leaf)) return leaf;
      to.free_.push_back(size_of(leaf));
      return static_cast<std::uint32_t>(to.leaf_count() - 1);
    });
  }

 private:
  /// Adds leaves of so many free bytes of the section behind a boundary, those that end together apart.
  void add_free(planar_boundary const& at, std::int64_t bytes, std::vector<std::uint32_t>& parts) {
    auto const falling = std::min(bytes, at.falls);
    for (auto size : {falling, bytes - falling}) {
      if (size == 0) continue;
      parts.push_back(tree.leaf(static_cast<std::uint32_t>(leaf_count())));
      free_.push_back(size);
    }
  }

  planar_problem const* problem_;
  plain_vector<std::int64_t> free_;
  std::vector<std::uint32_t> leaves_, parts_, item_of_;
  std::vector<char> marked_;
};

}  // namespace neap::inline v0::detail
