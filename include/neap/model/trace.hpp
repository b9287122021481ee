// Tracing: while a tracer is active on a thread, operators on tensors are added to its graph instead of being computed.
// Tensors carry types only; no data are read, written or allocated. Eager tensors that a traced program reads become
// the graph's sources: weights, states, buffers and constants, by what they were made as. A view of a weight that was
// made before the trace is made in it again, so that gradients find the weight.
//
// An in-place update makes a new value of what it writes, and tensors that look at the same storage, at whatever part
// of it, stand for what is there from then on, as they do when operators run at once. As there, no gradient goes
// through what is read so, but for weights, which are leaves: a tensor's history is that of the handle, not that of the
// memory.
//
//   neap::tracer t{neap::graph{}.facet_table()};
//   auto y = model(t.input(sample));
//   t.keep(y, neap::role::output);
//   auto g = neap::graph{t.finish()};
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/traversal.hpp>
#include <neap/model/parameter.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A source of a program and the tensor that holds its memory.
struct resident {
  value_id value;
  tensor holder;
  std::string name;

  /// Where its bytes are, 64-byte aligned; they come into being with the first call.
  void* memory() const { return holder.storage()->data(); }
};

namespace detail {
class op_names;  // model/op_names.hpp

/// Which input of a recorded operator its output j is a view of; -1: of none.
int viewed_input(tensor_node const& n, std::uint32_t j);

/// Refuses a program that no order can run: a gradient reads what an update has overwritten on which it depends itself.
void require_order(op_graph const& g);
}  // namespace detail

class tracer {
 public:
  /// Traces what runs on this thread from now on. Throws neap::error if a trace is active already.
  explicit tracer(operator_table ops, std::source_location at = std::source_location::current());
  tracer(tracer const&) = delete;
  tracer& operator=(tracer const&) = delete;
  ~tracer();

  /// The active one; nullptr if there is none.
  static tracer* active() { return context_access::trace(); }

  /// While it lives, no trace is active on this thread: another program may be traced in the middle of one.
  class pause {
   public:
    pause() : context_(eager_context::current()), before_(std::exchange(context_.trace_, nullptr)) {}
    pause(pause const&) = delete;
    pause& operator=(pause const&) = delete;
    ~pause() { context_.trace_ = before_; }

   private:
    eager_context& context_;
    tracer* before_;
  };

  // ------------------------------------------------------------------ what goes in

  /// A value of the type of `like` that each run of the program is given anew.
  tensor input(tensor const& like, std::string_view name = {});
  /// The name that a tensor of the model gets if the program reads it.
  void set_name(tensor const& t, std::string const& name);

  /// The path of an object of the model: what runs within a neap::scope of it is named after it.
  void set_module(void const* object, void const* type, std::string const& path);
  /// The names of ops, and the scopes that they are made in.
  detail::op_names& op_names() { return *op_names_; }

  // ------------------------------------------------------------------ what comes out

  tensor wrap(value_id v);
  /// The value of a tensor in this program; eager tensors become sources. Throws neap::error if it cannot be one.
  value_id value(tensor const& t, std::source_location at = std::source_location::current());
  /// What a tensor shows now, as a value that no gradient goes through.
  tensor leaf(tensor const& t, std::source_location at);
  /// Whether an eager tensor may show something else in another step: what belongs to the model, an argument, what the
  /// program has updated.
  bool may_change(tensor const& t) const;
  /// A copy of what a tensor of the model was before the program wrote it; empty if it has not.
  tensor before_updates(tensor const& t);
  /// Whether a tensor is one of this trace.
  bool made(tensor const& t) const { return t.node() && t.node()->trace == token_; }
  /// Whether the program has read an eager tensor so far.
  bool reads(tensor const& t) const { return t.storage() && known_.contains(t.storage().get()); }
  /// Adds an op; its outputs. An in-place update of a model's tensor is what later readers of that tensor read.
  std::vector<tensor> emit(operator_view op, std::span<tensor const> in, std::source_location at);
  /// Keeps a tensor to the end of the program in a role: output, gradient or loss.
  value_id keep(tensor const& t, role r);

  graph_editor& editor() { return edit_; }
  /// Ops that are added from now on are pinned so, too (model/pins.hpp); the pins of new ops so far.
  pin_set pin_new_ops(pin_set more);
  void restore_pins(pin_set before) { new_pins_ = before; }
  std::vector<value_id> const& inputs() const { return inputs_; }
  /// What was made while nothing was recorded (no_gradient, evaluation): no gradient goes through it.
  std::vector<value_id> const& unrecorded() const { return unrecorded_; }
  /// Tensors of the program whose memory was updated in place before they were read: what they were, what was read.
  std::vector<std::pair<value_id, value_id>> const& outdated() const { return outdated_; }
  /// All sources but the inputs, in the order in which the program first read them.
  std::vector<resident> const& residents() const { return residents_; }
  /// The line of the program that applied op o; no place for ops that the library has added.
  std::source_location place(op_id o) const;

  /// Which line of the program first read resident k.
  std::source_location first_read(std::size_t k) const { return first_reads_[k]; }

  /// Whether a tensor of this trace is still held. When the trace has ended and what it gave is gone: a model that has
  /// stored one, and would read it in the next step if it reads it at all.
  bool is_held() const { return token_.use_count() > 1; }

  /// Ends the trace; the graph. Throws neap::error if no order can run it.
  op_graph finish();
  /// The same where an order is still to be made possible (train/old_values.hpp).
  op_graph finish_unordered();

 private:
  static bool belongs_to_model(role r) { return r == role::weight || r == role::buffer || r == role::state; }
  /// From now on the eager tensor's storage is value v; what it is, if it was nothing before.
  std::uint32_t know(tensor const& t, value_id v);

  /// What an eager view that was recorded is in this program: the same operator on what it looks at.
  value_id view_again(tensor const& t, std::source_location at);
  void keep_view(tensor const& t, value_id first);
  /// The last update of v's storage; nothing if there was none.
  value_id last_update(value_id v) const;
  /// A part of v's storage as it is now. No gradient goes through it, if it is `fixed`.
  value_id look(value_id v, tensor_layout const& part, bool fixed = true);

  void stop();
  [[noreturn]] void of_another_trace(tensor const& t, std::source_location at) const;

  value_id add_source(tensor const& t, std::source_location at);

  graph_editor edit_;
  std::shared_ptr<detail::op_names> op_names_;  // not shared: complete where its containers are, in trace.ipp
  eager_context& context_;
  std::shared_ptr<detail::trace_token> token_;
  number_map known_;                                        // eager storages to values: sources, or what made them
  number_map views_;                                        // eager tensors' nodes to values: views of such sources
  number_map updated_;                                      // the graph's storages to their last update
  std::vector<tensor> holders_;                             // keeps those addresses their own
  std::vector<std::pair<void const*, std::string>> names_;  // the first one counts
  std::vector<value_id> inputs_, unrecorded_;
  pin_set new_pins_;
  std::vector<std::pair<value_id, value_id>> outdated_;
  std::vector<resident> residents_;
  std::vector<std::source_location> first_reads_;  // of each
  std::vector<std::source_location> places_;       // by op
};

namespace detail {
void enter_module(tracer& t, void const* object, void const* type);
void enter_name(tracer& t, std::string const& name);
void leave_scope(tracer& t);

inline tensor leaf_in_trace(tensor const& t, std::source_location at) { return tracer::active()->leaf(t, at); }
void require_steady(tensor const& t, std::source_location at);
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/trace.ipp>
#endif
