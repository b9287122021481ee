// How the values of a loss depend on the batch: what a part of the batch can make of each of them. A loss that is
// traced for the whole batch is cut into parts of the batch by the operators' own dimension relations:
//
//   whole    each part has all of it: it depends on no sample, or is known before the parts run
//   piece    a part makes a piece of it along an axis
//   partial  a part makes a partial result; the sum (the maximum, the minimum) over the parts is the value
//   mixed    it is known only when all parts have run
//
// A loss whose use is `whole` or `partial` is the sum of what the parts make of it, and so is its gradient. What is
// linear in a sum over the batch is such a sum. What a factor or divisor needs of the whole batch must be known before:
// no gradient goes through it, as through a number of labels or the sum of a mask.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/operators/update.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// How a batch is cut: into `parts` whose extents differ by one sample at most. What is cut has extents that are multiples
/// of `units`: of the parts, where they are equal, else of the samples.
struct batch_cut {
  std::int64_t parts = 1, units = 1;
  std::int64_t from(std::int64_t part) const { return part * units / parts; }
  bool cuts(std::int64_t extent) const { return extent % units == 0; }
};
/// The cuts of a sample into at most so many parts, of which the first that makes parts of the loss is meant. A sample of
/// tensors has as many samples as the first extent that most of them have; tensors whose extents are no multiple of it go
/// with every part.
std::vector<batch_cut> cuts_of(std::span<tensor_type const> sample, std::int64_t parts);

enum class batch_use : std::uint8_t { whole, piece, partial, mixed };

/// Why a value is mixed.
enum class mixing : std::uint8_t { none, joins, extreme, not_linear, written };

struct batch_value {
  batch_use use = batch_use::whole;
  combine how = combine::sum;  // of partial results: sum, max or min
  std::int32_t axis = -1;      // of pieces
  bool sampled = false;        // it depends on the sample
  bool carries = false;        // a gradient may go through it to a weight
  bool of_weights = false;     // it depends on a weight
  bool gathers = false;        // whole, and made by an op that joins samples
  mixing why = mixing::none;   // of mixed ones
  op_id by = nothing<op_id>;   // the op that joins samples, or has mixed the value
};

/// How an op runs.
enum class batch_run : std::uint8_t {
  once,    // before the parts, on whole values
  same,    // in each part, on whole values: a gradient goes through it
  part,    // in each part, on pieces
  linear,  // in each part, on partial sums
  late,    // after the parts, on whole values
};

/// Whether an op is linear in some of its inputs; affine: linear but for what other inputs or a number add to it.
enum class linearity : std::uint8_t { none, linear, affine };

/// `sums`: which inputs are partial sums.
linearity linearity_in(op_graph const& g, op_id o, std::span<bool const> sums);

class batch_uses {
 public:
  /// `g`: a loss of the whole batch, whose ops are numbered in an order in which they can run; `sample`: the inputs,
  /// which are cut along axis 0 where they divide; `outputs`: what else is read of the whole; no gradient goes through values of `fixed`.
  /// O(ops + edges) but for ops of many inputs.
  batch_uses(op_graph const& g, std::span<value_id const> sample, std::span<value_id const> outputs,
             std::span<value_id const> fixed, batch_cut const& how);

  batch_value const& of(value_id v) const { return values_[v]; }
  batch_run run(op_id o) const { return runs_[o]; }
  /// Along which axis each input of a `part` is cut; -1: it is whole in each part.
  std::span<std::int32_t const> input_axes(op_id o) const;
  /// How outputs of a `part` that are no pieces are combined, as its operator says.
  combine combined(op_id o) const { return combined_[first_axis_[o]]; }
  /// Whether a mean over targets gets all of them besides (op::cross_entropy).
  bool takes_all_targets(op_id o) const;
  /// The op of a fixed view that shows all of its input: what detach() is in a trace.
  bool is_detached(op_id o) const;

 private:
  struct cut {
    plain_vector<std::int32_t> in, out;
    bool reduces = false;
    std::int32_t loop = -1;
    combine how = combine::concat;
  };

  plain_vector<dim_link> links(op_id o) const;

  /// The op with inputs cut as `c.in` says, and whatever must be cut besides; nothing if it cannot be.
  bool complete(op_id o, std::span<dim_link const> all, cut& c) const;

  /// Whether op o is the concat or the reshape of a stack along a new axis in front of the batch's: pieces one after
  /// another along the batch's axis, which the reshape separates again. A part stacks its pieces; the relations of either
  /// op alone do not show it.
  bool stacks(op_id o, cut& c) const;

  void enter(op_id o);

  bool carries_out(value_id v, bool carrying_in) const;
  void give_whole(op_id o, batch_value x, bool carries);
  void give_parts(op_id o, batch_value x, cut const& c, bool carrying_in);
  void enter_linear(op_id o, batch_value x);
  void mix(op_id o, batch_value x, mixing why, op_id by);

  op_graph const& g_;
  std::span<value_id const> outputs_;
  batch_cut how_;
  table<value_id, batch_value> values_;
  table<op_id, batch_run> runs_;
  table<op_id, std::uint32_t> first_axis_;
  table<value_id, bool> fixed_;
  plain_vector<std::int32_t> axes_;  // by op and input
  plain_vector<combine> combined_;   // by op, at its first input
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/batch_use.ipp>
#endif
