// Tracing: while a tracer is active on a thread, operators on tensors are added to its graph instead of being computed.
// Tensors carry types only; no data are read, written or allocated. Eager tensors that a traced program reads become the
// graph's sources: weights, states, buffers and constants, by what they were made as. A view of a weight that was made
// before the trace is made in it again, so that gradients find the weight.
//
// An in-place update makes a new value of what it writes, and tensors that look at the old one stand for the new one from
// then on, as they do when operators run at once. Only what sees another part of it than was updated cannot be read again:
// that is refused.
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
#include <neap/model/parameter.hpp>

#include <algorithm>
#include <string>
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
inline int viewed_input(tensor_node const& n, std::uint32_t j) {
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
}  // namespace detail

class tracer {
 public:
  /// Traces what runs on this thread from now on. Throws neap::error if a trace is active already.
  explicit tracer(operator_table ops, std::source_location at = std::source_location::current())
      : edit_(ops),
        context_(eager_context::current()),
        token_(std::make_shared<detail::trace_token>()) {
    if (context_.trace_) throw error(context_access::place(at), "a trace is active on this thread already");
    context_.trace_ = this;
  }
  tracer(tracer const&) = delete;
  tracer& operator=(tracer const&) = delete;
  ~tracer() { stop(); }

  /// The active one; nullptr if there is none.
  static tracer* active() { return context_access::trace(); }

  // ------------------------------------------------------------------ what goes in

  /// A value of the type of `like` that each run of the program is given anew.
  tensor input(tensor const& like, std::string_view name = {}) {
    value_id const v = edit_.add_source(role::input, like.type(), name);
    inputs_.push_back(v);
    // Programs that capture the sample itself, instead of taking it as an argument, mean the input.
    if (like.storage() && like.layout() == tensor_layout::dense(like.storage()->type())) know(like, v);
    return wrap(v);
  }
  /// The name that a tensor of the model gets if the program reads it.
  void set_name(tensor const& t, std::string const& name) {
    if (t.storage()) names_.emplace_back(t.storage().get(), name);
  }

  // ------------------------------------------------------------------ what comes out

  tensor wrap(value_id v) {
    auto n = std::make_shared<detail::tensor_node>();
    n->out.push_back({edit_.layout_of(v), nullptr, v, 0});
    n->trace = token_;
    return tensor(std::move(n), 0);
  }
  /// The value of a tensor in this program; eager tensors become sources. Throws neap::error if it cannot be one.
  value_id value(tensor const& t, std::source_location at = std::source_location::current()) {
    if (t.is_empty()) detail::no_tensor(at);
    if (t.is_traced()) {
      if (t.node()->trace != token_) throw error(context_access::place(at), "this tensor belongs to another trace");
      return newest(t.node()->out[t.output()].value, at);
    }
    auto const* n = t.node().get();
    if (n->facets && detail::viewed_input(*n, t.output()) >= 0) return view_again(t, at);
    auto const* s = t.storage().get();
    auto known = known_.find(s);
    if (known == number_map::none) known = know(t, add_source(t, at));
    bool const whole = t.layout() == tensor_layout::dense(s->type());
    bool const detached = s->role() == role::weight && !t.wants_gradient();
    if (whole && !detached) return newest(value_id{known}, at);
    // A view without history is a source of its own on the same storage: no gradient goes through it.
    if (auto const seen = views_.find(n); seen != number_map::none) return newest(value_id{seen}, at);
    auto const& g = edit_.graph();
    if (auto const last = updated_.find(index(g.storage(value_id{known}))); last != number_map::none)
      return same_part(value_id{last}, t.layout(), at);
    if (g.producer(value_id{known}) != nothing<op_id>)
      throw error(context_access::place(at), "the traced program reads a view, " + to_string(t.type()) +
                                                 ", of a constant that it makes itself: make the view in the program");
    value_id const v = edit_.add_source_view(value_id{known}, t.layout());
    keep_view(t, v);
    return v;
  }
  /// Whether the program has read an eager tensor so far.
  bool reads(tensor const& t) const { return t.storage() && known_.contains(t.storage().get()); }
  /// Adds an op; its outputs. An in-place update of a model's tensor is what later readers of that tensor read.
  std::vector<tensor> emit(operator_view op, std::span<tensor const> in, std::source_location at) {
    std::vector<value_id> ids;
    ids.reserve(in.size());
    for (auto const& t : in) ids.push_back(value(t, at));
    std::vector<value_id> outputs;
    detail::with_place(at, [&] { outputs = edit_.emit(op, span_of(ids)); });
    std::vector<tensor> out;
    out.reserve(outputs.size());
    for (auto v : outputs) {
      auto const& g = edit_.graph();
      if (g.record(v).alias == alias_kind::update)
        updated_.set(index(g.storage(v)), static_cast<std::uint32_t>(index(v)));
      if (!context_access::is_recording()) unrecorded_.push_back(v);
      out.push_back(wrap(v));
    }
    return out;
  }
  /// Keeps a tensor to the end of the program in a role: output, gradient or loss.
  value_id keep(tensor const& t, role r) {
    value_id const v = value(t);
    edit_.keep(v, r);
    return v;
  }

  graph_editor& editor() { return edit_; }
  std::vector<value_id> const& inputs() const { return inputs_; }
  /// What was made while nothing was recorded (no_gradient, evaluation): no gradient goes through it.
  std::vector<value_id> const& unrecorded() const { return unrecorded_; }
  /// All sources but the inputs, in the order in which the program first read them.
  std::vector<resident> const& residents() const { return residents_; }

  /// Ends the trace; the graph.
  op_graph finish() {
    stop();
    return std::move(edit_).finish();
  }

 private:
  /// From now on the eager tensor's storage is value v; what it is, if it was nothing before.
  std::uint32_t know(tensor const& t, value_id v) {
    if (known_.add(t.storage().get(), static_cast<std::uint32_t>(index(v)))) holders_.push_back(t);
    return known_.find(t.storage().get());
  }

  /// What an eager view that was recorded is in this program: the same operator on what it looks at.
  value_id view_again(tensor const& t, std::source_location at) {
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
  /// The value that stands where v stood, after the updates in place so far.
  value_id newest(value_id v, std::source_location at) {
    auto const& g = edit_.graph();
    auto const s = g.storage(v);
    auto const last = updated_.find(index(s));
    if (last == number_map::none || g.record(v).version == g.record(s).updates) return v;
    return same_part(value_id{last}, g.layout(v), at);
  }
  value_id same_part(value_id last, tensor_layout const& part, std::source_location at) {
    auto const& g = edit_.graph();
    if (g.layout(last) == part) return last;
    throw error(context_access::place(at),
                "the traced program reads " + to_string(part.type) + " whose data were updated in place through " +
                    to_string(g.type(last)) +
                    ", another view of them: that is not traced yet. Update the whole, or make views after the update");
  }

  void stop() {
    if (context_.trace_ == this) context_.trace_ = nullptr;
  }

  value_id add_source(tensor const& t, std::source_location at) {
    auto const& s = *t.storage();
    // Nobody has touched its data: they are made in the program, where they take memory only while they are needed.
    if (auto const& first = s.first_values();
        s.role() == role::activation && !s.is_allocated() && first.how == initialiser::kind::constant)
      return edit_.add(op::fill{s.type().dims, s.type().element, first.a}, {}).front();
    if (!is_source(s.role())) {
      throw error(context_access::place(at),
                  "the traced program reads a tensor that is neither an argument nor a part of the model, " +
                      to_string(t.type()) +
                      ": pass it in, make it a neap::parameter or neap::buffer, or wrap it in neap::constant");
    }
    auto const known = std::find_if(names_.begin(), names_.end(), [&](auto const& named) { return named.first == &s; });
    std::string text = known != names_.end() ? known->second
                                             : std::string(name_of(s.role())) + "." + std::to_string(residents_.size());
    value_id const v = edit_.add_source(s.role(), s.type(), text);
    residents_.push_back({v, detail::make_leaf(t.storage(), tensor_layout::dense(s.type())), std::move(text)});
    return v;
  }

  graph_editor edit_;
  eager_context& context_;
  std::shared_ptr<detail::trace_token> token_;
  number_map known_;                                        // eager storages to values: sources, or what made them
  number_map views_;                                        // eager tensors' nodes to values: views of such sources
  number_map updated_;                                      // the graph's storages to their last update
  std::vector<tensor> holders_;                             // keeps those addresses their own
  std::vector<std::pair<void const*, std::string>> names_;  // the first one counts
  std::vector<value_id> inputs_, unrecorded_;
  std::vector<resident> residents_;
};

}  // namespace neap::inline v0
