// Weight gradients that are products and whose only reader is the weight's update become one operator with it
// (op::matmul_update): the gradient is made and used up in parts, and never takes the memory of the whole. The update
// moves to where the product was, so that a gradient's operands live no longer than before.
//
// The values stay the same to the last bit. But the update must wait for the weight's other readers, so the product can
// be ordered less freely: a gradient is fused where it is larger than both of its operands, which are in memory beside it
// anyway, and where its product comes in parts (gemm_parts).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/matmul_update.hpp>
#include <neap/train/program_copy.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace neap { inline namespace v0 {

struct fused_updates {
  op_graph program;
  table<value_id, value_id>
      value;                 // of the graph that was given -> of the program; nothing<value_id>: a fused gradient
  std::vector<op_id> fused;  // the updates that were, in the graph that was given
};

namespace detail {

struct update_to_fuse {
  op_id product, update;
  operator_facets const* facets;  // of the matmul_update, whose attributes are at `attributes` of the pass's bytes
  std::size_t attributes;
  std::size_t place;  // the position, by the ids of the graph that was given, behind which it comes
};

/// Finds the pairs and writes the graph anew; what is known of operators' types comes through `match`.
class update_fuser {
 public:
  update_fuser(op_graph const& g, std::span<op_id const>* chosen);

  /// The product that makes the gradient of update o, if it is to be fused; and in how many parts.
  std::pair<op::matmul const*, std::int64_t> product_of(op_id o) const;
  template <class Update>
  void match(op_id o) {
    auto const* u = g_.as<Update>(o);
    if (!u || g_.inputs(o).size() + 1 > op::matmul_update<Update>::max_inputs) return;
    auto const [m, parts] = product_of(o);
    if (!m) return;
    op::matmul_update<Update> const both{*u, m->transpose_a, m->transpose_b, parts};
    auto const at = bytes_.size();
    bytes_.resize(at + (sizeof both + 15) / 16 * 16);
    std::memcpy(bytes_.data() + at, &both, sizeof both);
    auto const& facets = [&]() -> operator_facets const& {
      if constexpr (is_standard<Update>) return g_.facets(o).joined();
      else return facets_of<op::matmul_update<Update>>;
    }();
    fuse({product_behind(g_.inputs(o)[1]), o, &facets, at, 0});
  }

  fused_updates write();

 private:
  /// Which op makes a gradient that has no other reader: in mixed precision, what its cast to f32 reads. (An update computes
  /// in f32 of gradients of any type: it needs no cast.)
  op_id product_behind(value_id v) const;
  /// Decides where the update can be at the earliest.
  void fuse(update_to_fuse f);
  void put(program_copy& copy, op_id o, op_id product, operator_view op);

  op_graph const& g_;
  std::span<op_id const>* chosen_;
  table<op_id, unsigned char> gone_, pulled_;  // fused; to be put before the first fused update that reads it
  plain_vector<update_to_fuse> found_;
  plain_vector<std::byte> bytes_;
  plain_vector<value_id> inputs_;
};

template <class Op>
struct fuse_one {
  static void match(update_fuser&, op_id) {}
};
template <class Update>
struct fuse_one<op::matmul_update<Update>> {
  static void match(update_fuser& f, op_id o) { f.match<Update>(o); }
};
template <class... Op>
void match_updates(update_fuser& f, op_id o, type_list<Op...>) {
  (fuse_one<Op>::match(f, o), ...);
}

}  // namespace detail

/// The program with the updates fused whose operator has its op::matmul_update in the graph's set (the standard set has
/// those of all its optimizers); `chosen`, if given: those of these updates that can be, whatever their sizes. Throws neap::error for a graph with parts, or whose ids are not in a topological
/// order. O(ops + edges).
fused_updates fuse_updates(op_graph const& g, std::span<op_id const>* chosen = nullptr);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse_updates.ipp>
#endif
