// Runs a traced loss over parts of the batch, one after another, as batch_use.hpp says what a part can make:
// first what is known before the parts, then part by part, then what is known after all of them. Ops are applied as the
// program would apply them, at once or to the trace that is active: both see the same sequence of ops.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/model/apply.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/pins.hpp>
#include <neap/train/batch_use.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A loss that was traced for the whole batch, and the tensors that it was traced for.
struct traced_loss {
  op_graph program;
  value_id loss{};
  std::vector<std::string> names;  // of the outputs
  std::vector<value_id> outputs;
  std::vector<value_id> inputs;  // the sample's tensors
  std::vector<resident> residents;
  std::vector<value_id> fixed;               // no gradient goes through them
  std::vector<std::source_location> places;  // by op
};

class batch_parts {
 public:
  /// `weights`: the model's own tensors, which gradients are taken of. Throws neap::error, with the op and its line, if
  /// the loss is no sum over the parts.
  batch_parts(traced_loss const& t, std::vector<tensor> const& sample, std::vector<tensor> const& weights,
              batch_cut const& how, std::source_location at);

  /// What part i adds to the loss; empty if it adds nothing.
  tensor part(std::int64_t i);

  /// The outputs, when all parts have run. Writes what the program writes of the batch.
  std::vector<tensor> finish();

 private:
  [[noreturn]] void refuse(batch_value const& x) const;

  bool draws(op_id o) const { return g_.as<op::dropout>(o) || g_.as<op::dropout_grad>(o); }

  static tensor source_tensor(resident const& r, std::vector<tensor> const& weights);

  // ------------------------------------------------------------------ one op

  /// Op o with the attributes that it has as part i, or as it is (i < 0).
  std::vector<tensor> apply_op(op_id o, std::vector<tensor> const& in, std::int64_t i = -1);
  /// What op o has made, pinned as its outputs are: in each part.
  std::vector<tensor> pinned_as(op_id o, std::vector<tensor> made, std::source_location at) const;
  /// The piece of x that part i sees.
  tensor piece_of(tensor const& x, std::int32_t axis, std::int64_t i) const;
  /// Partial results a and b as one.
  tensor combined(combine how, tensor const& a, tensor const& b) const;

  // ------------------------------------------------------------------ before the parts

  bool is_in_part(op_id o) const { return uses_.run(o) == batch_run::part || uses_.run(o) == batch_run::linear; }
  /// Whether a value that is known before the parts is put together from theirs; else it is computed as a whole.
  bool is_swept(value_id v) const;
  /// Whether a part reads input k of op o as a whole that is known before.
  bool reads_known(op_id o, std::size_t k) const;

  /// Finds what is needed when, and computes what is known before the parts.
  bool writes(op_id o) const;
  /// What the loss, the outputs and what is written need.
  table<op_id, bool> live_ops() const;
  /// What runs after the parts, and what they hand on to it.
  void find_late_ops(table<op_id, bool> const& live, table<value_id, bool>& wanted);
  /// What the parts read as a whole.
  void find_whole_values(table<op_id, bool> const& live, table<value_id, bool>& wanted) const;
  void run_before();
  /// Copies what op o is about to overwrite and others read later.
  void keep_old_values(op_id o);
  /// A value of the whole batch, from all parts.
  tensor sweep(value_id v);

  // ------------------------------------------------------------------ a part

  /// What part i makes of these values. Throws away what nothing reads any more.
  std::vector<tensor> run_part(std::int64_t i, std::vector<value_id> const& wanted);
  std::vector<tensor> run_in_part(op_id o, std::int64_t i, std::vector<tensor> const& here);
  /// What is added to partial sums is added in the first part.
  std::vector<tensor> run_linear(op_id o, std::int64_t i, std::vector<tensor> in);

  // ------------------------------------------------------------------ after the parts

  /// Keeps what a part has made of a value until all have run.
  void collect(value_id v, tensor const& made);
  /// A value of the whole batch, when all parts have run.
  tensor after(value_id v);
  void run_late(op_id o);

  traced_loss const& t_;
  op_graph const& g_;
  batch_uses uses_;
  batch_cut how_;
  std::source_location at_;
  table<value_id, tensor> known_, late_;  // whole values before and after the parts
  table<value_id, bool> is_fixed_, is_collected_;
  table<value_id, std::vector<tensor>> collected_;
  table<op_id, bool> is_late_;
  std::vector<value_id> to_collect_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/batch_parts.ipp>
#endif
