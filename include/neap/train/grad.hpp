// Gradients of what tensors were computed from. Eager: the operators recorded since form a graph, which is differentiated
// like any other, and the ops that this adds run at once, each intermediate freed after its last reader. In a trace: the
// trace's graph is differentiated where it stands, so that a whole training step can be traced as it is written.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/apply.hpp>
#include <neap/train/differentiate.hpp>

#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// The recorded operators that `loss` was computed with, in the order in which they ran (on several threads: in one of the
/// orders in which they could have run on one).
plain_vector<tensor_node const*> recorded_nodes(tensor const& loss);

/// The graph of recorded operators, with the memory in which each of its values lies and the version of that memory which
/// the operators read. (A view reads nothing: what counts is when an operator that computes read through it.)
class recorded_graph {
 public:
  recorded_graph(operator_table ops, tensor const& loss, std::span<tensor const> wrt, std::source_location at);

  value_id value(tensor const& t);
  /// What the graph's values so far are, by their ids, each with its history.
  std::vector<tensor> handles(tensor const& loss, std::span<tensor const> wrt) const;
  graph_editor& editor() { return edit_; }

  struct memory {
    std::shared_ptr<tensor_storage> storage;
    std::uint32_t version = 0;
    bool counts = false;     // the version: an operator computed the value, or with it
    bool of_buffer = false;  // what a buffer was when it was read
  };
  /// Where a value of the recorded part lies, and in which version it was meant.
  memory const& of(value_id v) const { return memory_[index(v)]; }
  std::size_t value_count() const { return memory_.size(); }

 private:
  static void require_history(tensor const& t, std::source_location at);
  void place(value_id v, tensor_value const& x, bool counts);
  /// A buffer as it was when it was read: there still, or the copy that was made when it was written.
  value_id buffer_value(tensor const& t, read_data const& data);
  /// An operator computed with value v of tensor t in a version of its storage.
  void read(tensor const& t, value_id v, std::uint32_t version, std::string_view who, std::source_location at);
  /// The version of a storage that was met first.
  std::uint32_t meet(void const* storage, std::uint32_t version);

  graph_editor edit_;
  number_map first_output_;  // by tensor_node
  number_map versions_;      // by tensor_storage
  std::vector<memory> memory_;
  struct buffer_read {
    tensor_node const* node;
    std::uint32_t output;
    read_data const* data;
    value_id value;
  };
  std::vector<buffer_read> buffers_;
};

/// Runs the ops of `g` from number `first` on that `results` need; the results' memory.
std::vector<tensor> run_recorded(op_graph const& g, std::size_t first, recorded_graph const& recorded,
                                 std::span<value_id const> results, std::source_location at);
/// The same by operators that are recorded in their turn: the results have a history. `values`: of recorded.handles().
std::vector<tensor> run_with_history(op_graph const& g, std::size_t first, recorded_graph const& recorded,
                                     std::vector<tensor> values, std::span<value_id const> results,
                                     std::source_location at);

/// Adds to `all` what a source that became v by updates in place was before, and to `fixed` v, if it did.
void earlier_values(op_graph const& g, value_id v, std::vector<value_id>& all, std::vector<value_id>& fixed);

/// grad; a tensor that does not reach the loss gets zeros or, without them, an empty tensor.
std::vector<tensor> gradients(tensor const& loss, std::span<tensor const> wrt, bool zeros, bool history,
                              std::source_location at);

}  // namespace detail

struct grad_options {
  /// Gradients that are computed at once have a history, as those in a trace and in the loss of eager_step always have.
  /// What they were computed from lives as long as they do.
  bool history = false;
};

/// The gradients of a scalar with respect to tensors: weights, or leaves made by with_gradient(). A tensor that the loss
/// does not depend on gets zeros. Gradients with a history can be differentiated again, through all operators but norms,
/// fused attention, cross-entropy and max pooling (and a user's unary without a curve), which are then refused by name:
///
///   auto const slope = neap::grad(loss, {x}, {.history = true})[0];
///   auto const curve = neap::grad(neap::sum(slope), {x})[0];
///
/// A loss that depends on one without is refused, unless it is detached.
std::vector<tensor> grad(tensor const& loss, std::span<tensor const> wrt, grad_options how = {},
                         std::source_location at = std::source_location::current());
std::vector<tensor> grad(tensor const& loss, std::vector<tensor> const& wrt, grad_options how = {},
                         std::source_location at = std::source_location::current());
std::vector<tensor> grad(tensor const& loss, std::initializer_list<tensor> wrt, grad_options how = {},
                         std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/grad.ipp>
#endif
