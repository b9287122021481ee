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

#include <neap/core/compiled_once.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/traversal.hpp>
#include <neap/model/op_names.hpp>
#include <neap/model/parameter.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// A source of a program and the tensor that holds its memory.
struct resident {
  value_id value;
  tensor holder;
  std::string name;

  /// Where its bytes are, 64-byte aligned; they come into being with the first call.
  void* memory() const { return holder.storage()->data(); }
};

namespace detail {
/// Which input of a recorded operator its output j is a view of; -1: of none.
NEAP_ONCE int viewed_input(tensor_node const& n, std::uint32_t j) {
  plain_vector<tensor_layout> layouts;
  bool shares = false;
  for (auto const& t : n.in) {
    layouts.push_back(t.layout());
    shares = shares || t.storage() == n.out[j].storage;
  }
  if (!shares) return -1;
  shape_context shapes(n.facets->name, span_of(layouts));
  n.facets->infer(n.attributes.data(), shapes);
  auto const& r = shapes.outputs()[j];
  return r.alias == alias_kind::view ? r.of : -1;
}

/// Refuses a program that no order can run: a gradient reads what an update has overwritten on which it depends itself.
NEAP_ONCE void require_order(op_graph const& g) {
  if (!g.has_updates()) return;
  auto const e = all_edges(g);
  if (kahn_order(e).size() == g.op_count()) return;
  for (auto update : g.ops())
    for (auto const reader : g.order_after(update)) {
      if (reader < update || !descendants(e, update).test(index(reader))) continue;
      for (auto v : g.inputs(reader))
        for (auto u : g.outputs(update))
          if (g.storage(v) == g.storage(u) && g.record(v).version < g.record(u).version)
            throw_error(context_access::place({}),
                        {"grad: a tensor that the gradient needs for ", g.facets(reader).name, ", ", g.type(v),
                         ", was changed in place after it was used: change a neap::copy of it"});
    }
}
}  // namespace detail

class tracer {
 public:
  /// Traces what runs on this thread from now on. Throws neap::error if a trace is active already.
  explicit tracer(operator_table ops, std::source_location at = std::source_location::current())
      : edit_(ops),
        context_(eager_context::current()),
        token_(std::make_shared<detail::trace_token>()) {
    if (context_.trace_) throw_error(context_access::place(at), {"a trace is active on this thread already"});
    context_.trace_ = this;
  }
  tracer(tracer const&) = delete;
  tracer& operator=(tracer const&) = delete;
  NEAP_ONCE ~tracer() { stop(); }

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
  tensor input(tensor const& like, std::string_view name = {}) {
    value_id const v = edit_.add_source(role::input, like.type(), name);
    inputs_.push_back(v);
    // Programs that capture the sample itself, instead of taking it as an argument, mean the input; of a weight that is
    // the sample, too, they mean the weight.
    if (like.storage() && like.layout() == tensor_layout::dense(like.storage()->type()) &&
        !belongs_to_model(like.storage()->role()))
      know(like, v);
    return wrap(v);
  }
  /// The name that a tensor of the model gets if the program reads it.
  NEAP_ONCE void set_name(tensor const& t, std::string const& name) {
    if (t.storage()) names_.emplace_back(t.storage().get(), name);
  }

  /// The path of an object of the model: what runs within a neap::scope of it is named after it.
  void set_module(void const* object, void const* type, std::string const& path) {
    op_names_.set_module(object, type, path);
  }
  /// The names of ops, and the scopes that they are made in.
  detail::op_names& op_names() { return op_names_; }

  // ------------------------------------------------------------------ what comes out

  NEAP_ONCE tensor wrap(value_id v) {
    auto n = std::make_shared<detail::tensor_node>();
    n->out.push_back({edit_.layout_of(v), nullptr, v, 0});
    n->trace = token_;
    return tensor(std::move(n), 0);
  }
  /// The value of a tensor in this program; eager tensors become sources. Throws neap::error if it cannot be one.
  NEAP_ONCE value_id value(tensor const& t, std::source_location at = std::source_location::current()) {
    if (t.is_empty()) detail::no_tensor(at);
    auto const& g = edit_.graph();
    if (t.is_traced()) {
      if (t.node()->trace != token_) of_another_trace(t, at);
      value_id const v = t.node()->out[t.output()].value;
      auto const last = last_update(v);
      if (last == nothing<value_id> || g.record(v).version == g.record(g.storage(v)).updates) return v;
      if (!is_floating(g.type(v).element) && g.layout(last) == g.layout(v)) return last;
      value_id const now = look(last, g.layout(v));
      outdated_.emplace_back(v, now);
      return now;
    }
    auto const* n = t.node().get();
    if (n->facets && detail::viewed_input(*n, t.output()) >= 0) return view_again(t, at);
    auto const* s = t.storage().get();
    auto known = known_.find(s);
    if (known == number_map::none) known = know(t, add_source(t, at));
    value_id const first{known};
    bool const whole = t.layout() == tensor_layout::dense(s->type());
    bool const detached = s->role() == role::weight && !t.wants_gradient() && !t.is_frozen();
    if (auto const last = last_update(first); last != nothing<value_id>) {
      bool const same = g.layout(last) == t.layout();
      if (same && (!is_floating(g.type(last).element) || t.wants_gradient())) return last;
      value_id const now = look(last, t.layout(), !t.wants_gradient());
      if (t.wants_gradient()) updated_.set(index(g.storage(now)), static_cast<std::uint32_t>(index(now)));
      return now;
    }
    if (whole && !detached) return first;
    // A view without history is a source of its own on the same storage: no gradient goes through it.
    if (auto const seen = views_.find(n); seen != number_map::none) return value_id{seen};
    value_id const v =
        g.producer(first) != nothing<op_id> ? look(first, t.layout()) : edit_.add_source_view(first, t.layout());
    keep_view(t, v);
    return v;
  }
  /// What a tensor shows now, as a value that no gradient goes through.
  tensor leaf(tensor const& t, std::source_location at) {
    value_id const v = value(t, at);
    return wrap(look(v, edit_.layout_of(v)));
  }
  /// Whether an eager tensor may show something else in another step: what belongs to the model, an argument, what the
  /// program has updated.
  NEAP_ONCE bool may_change(tensor const& t) const {
    if (belongs_to_model(t.storage()->role())) return true;
    auto const v = known_.find(t.storage().get());
    if (v == number_map::none) return false;
    return edit_.graph().role(value_id{v}) == role::input || last_update(value_id{v}) != nothing<value_id>;
  }
  /// A copy of what a tensor of the model was before the program wrote it; empty if it has not.
  NEAP_ONCE tensor before_updates(tensor const& t) {
    auto const known = known_.find(t.storage().get());
    if (known == number_map::none || last_update(value_id{known}) == nothing<value_id>) return {};
    auto const now = edit_.add(op::copy{}, {value_id{known}}).front();
    unrecorded_.push_back(now);
    return wrap(now);
  }
  /// Whether a tensor is one of this trace.
  bool made(tensor const& t) const { return t.node() && t.node()->trace == token_; }
  /// Whether the program has read an eager tensor so far.
  bool reads(tensor const& t) const { return t.storage() && known_.contains(t.storage().get()); }
  /// Adds an op; its outputs. An in-place update of a model's tensor is what later readers of that tensor read.
  NEAP_ONCE std::vector<tensor> emit(operator_view op, std::span<tensor const> in, std::source_location at) {
    auto const first = edit_.graph().op_count();  // with views of the model's tensors that are made for it
    std::vector<value_id> ids;
    ids.reserve(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].is_empty()) detail::no_input(op.facets->name, i, at);
      ids.push_back(value(in[i], at));
    }
    std::vector<value_id> outputs;
    detail::with_place(at, [&] { outputs = edit_.emit(op, span_of(ids)); });
    op_names_.name(edit_, first);
    places_.resize(edit_.graph().op_count());
    places_.back() = context_access::place(at);
    std::vector<tensor> out;
    out.reserve(outputs.size());
    for (auto v : outputs) {
      auto const& g = edit_.graph();
      if (g.record(v).alias == alias_kind::update)
        updated_.set(index(g.storage(v)), static_cast<std::uint32_t>(index(v)));
      if (!context_access::is_recording()) unrecorded_.push_back(v);
      out.push_back(wrap(v));
    }
    if (!new_pins_.empty() && !outputs.empty())
      detail::with_place(at, [&] { edit_.add_pins(edit_.graph().producer(outputs.front()), new_pins_); });
    return out;
  }
  /// Keeps a tensor to the end of the program in a role: output, gradient or loss.
  value_id keep(tensor const& t, role r) {
    value_id const v = value(t);
    edit_.keep(v, r);
    return v;
  }

  graph_editor& editor() { return edit_; }
  /// Ops that are added from now on are pinned so, too (model/pins.hpp); the pins of new ops so far.
  pin_set pin_new_ops(pin_set more) {
    auto const before = new_pins_;
    new_pins_ |= more;
    return before;
  }
  void restore_pins(pin_set before) { new_pins_ = before; }
  std::vector<value_id> const& inputs() const { return inputs_; }
  /// What was made while nothing was recorded (no_gradient, evaluation): no gradient goes through it.
  std::vector<value_id> const& unrecorded() const { return unrecorded_; }
  /// Tensors of the program whose memory was updated in place before they were read: what they were, what was read.
  std::vector<std::pair<value_id, value_id>> const& outdated() const { return outdated_; }
  /// All sources but the inputs, in the order in which the program first read them.
  std::vector<resident> const& residents() const { return residents_; }
  /// The line of the program that applied op o; no place for ops that the library has added.
  std::source_location place(op_id o) const {
    return index(o) < places_.size() ? places_[index(o)] : std::source_location{};
  }

  /// Which line of the program first read resident k.
  std::source_location first_read(std::size_t k) const { return first_reads_[k]; }

  /// Whether a tensor of this trace is still held. When the trace has ended and what it gave is gone: a model that has
  /// stored one, and would read it in the next step if it reads it at all.
  bool is_held() const { return token_.use_count() > 1; }

  /// Ends the trace; the graph. Throws neap::error if no order can run it.
  op_graph finish() {
    auto g = finish_unordered();
    detail::require_order(g);
    return g;
  }
  /// The same where an order is still to be made possible (train/old_values.hpp).
  op_graph finish_unordered() {
    stop();
    op_names_.finish(edit_);
    return std::move(edit_).finish();
  }

 private:
  static bool belongs_to_model(role r) { return r == role::weight || r == role::buffer || r == role::state; }
  /// From now on the eager tensor's storage is value v; what it is, if it was nothing before.
  std::uint32_t know(tensor const& t, value_id v) {
    if (known_.add(t.storage().get(), static_cast<std::uint32_t>(index(v)))) holders_.push_back(t);
    return known_.find(t.storage().get());
  }

  /// What an eager view that was recorded is in this program: the same operator on what it looks at.
  NEAP_ONCE value_id view_again(tensor const& t, std::source_location at) {
    auto const& n = *t.node();
    auto const& g = edit_.graph();
    std::vector<value_id> in;
    for (auto const& x : n.in) in.push_back(value(x, at));
    if (auto const seen = views_.find(&n); seen != number_map::none)
      if (value_id const v = id_at<value_id>(seen + t.output()); g.record(v).version == g.record(g.storage(v)).updates)
        return v;
    std::vector<value_id> out;
    detail::with_place(at, [&] { out = edit_.emit({n.facets, n.attributes.data()}, span_of(in)); });
    keep_view(t, out.front());
    return out[t.output()];
  }
  void keep_view(tensor const& t, value_id first) {
    views_.set(t.node().get(), static_cast<std::uint32_t>(index(first)));
    holders_.push_back(t);
  }
  /// The last update of v's storage; nothing if there was none.
  value_id last_update(value_id v) const {
    auto const last = updated_.find(index(edit_.graph().storage(v)));
    return last == number_map::none ? nothing<value_id> : value_id{last};
  }
  /// A part of v's storage as it is now. No gradient goes through it, if it is `fixed`.
  NEAP_ONCE value_id look(value_id v, tensor_layout const& part, bool fixed = true) {
    value_id const now = edit_.add(op::as_strided{part.type.dims, part.strides, part.offset}, {v}).front();
    if (fixed) unrecorded_.push_back(now);
    return now;
  }

  void stop() {
    if (context_.trace_ == this) context_.trace_ = nullptr;
    token_->has_ended = true;
  }
  [[noreturn]] NEAP_ONCE void of_another_trace(tensor const& t, std::source_location at) const {
    throw_error(context_access::place(at),
                {"this tensor, ", t.type(),
                 ", was made by an earlier trace: what one planned step makes is not there in the next. Keep it in a "
                 "neap::buffer, which neap::assign writes, or make it an output of the loss and a part of the next "
                 "batch"});
  }

  NEAP_ONCE value_id add_source(tensor const& t, std::source_location at) {
    auto const& s = *t.storage();
    // Its data are as they were made: they are made in the program, where they take memory only while they are needed.
    if (auto const& first = s.first_values();
        s.role() == role::activation && first.how == initialiser::kind::constant && s.is_as_made())
      return edit_.add(op::fill{s.type().dims, s.type().element, first.a}, {}).front();
    if (s.is_copied_in_trace())
      throw_error(context_access::place(at),
                  {"the traced program reads a copy of a ", name_of(s.role()), ", ", t.type(),
                   ", which it has made and which would be the same in every step: use it, or the module that has "
                   "it, by reference (auto const&)"});
    if (!is_source(s.role())) {
      throw_error(context_access::place(at),
                  {"the traced program reads a tensor that is neither an argument nor a part of the model, ", t.type(),
                   ": pass it in, make it a neap::parameter or neap::buffer, or wrap it in neap::constant"});
    }
    auto const known = std::find_if(names_.begin(), names_.end(), [&](auto const& named) { return named.first == &s; });
    std::string text = known != names_.end() ? known->second
                                             : std::string(name_of(s.role())) + "." + std::to_string(residents_.size());
    value_id const v = edit_.add_source(s.role(), s.type(), text);
    residents_.push_back({v, detail::make_leaf(t.storage(), tensor_layout::dense(s.type())), std::move(text)});
    first_reads_.push_back(context_access::place(at));
    return v;
  }

  graph_editor edit_;
  detail::op_names op_names_;
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
inline void enter_module(tracer& t, void const* object, void const* type) { t.op_names().enter_module(object, type); }
inline void enter_name(tracer& t, std::string const& name) { t.op_names().enter_name(name); }
inline void leave_scope(tracer& t) { t.op_names().leave(); }

inline tensor leaf_in_trace(tensor const& t, std::source_location at) { return tracer::active()->leaf(t, at); }
inline void require_steady(tensor const& t, std::source_location at) {
  auto const* trace = tracer::active();
  if (trace && trace->may_change(t))
    throw_error(context_access::place(at), {"the data of this tensor, ", t.type(),
                                            ", may be others in each step of the traced program. A choice by data is "
                                            "neap::where(condition, a, b); data are read outside of the trace"});
}
}  // namespace detail

}  // namespace neap::inline v0
