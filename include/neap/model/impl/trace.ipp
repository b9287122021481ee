// The bodies of <neap/model/trace.hpp>.
#pragma once

#include <neap/model/trace.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/model/op_names.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC int viewed_input(tensor_node const& n, std::uint32_t j) {
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

NEAP_FUNC void enter_module(tracer& t, void const* object, void const* type) {
  t.op_names().enter_module(object, type);
}
NEAP_FUNC void enter_name(tracer& t, std::string const& name) { t.op_names().enter_name(name); }
NEAP_FUNC void leave_scope(tracer& t) { t.op_names().leave(); }

NEAP_FUNC void require_order(op_graph const& g) {
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
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tracer::~tracer() { stop(); }

NEAP_FUNC void tracer::set_name(tensor const& t, std::string const& name) {
  if (t.storage()) names_.emplace_back(t.storage().get(), name);
}

NEAP_FUNC tensor tracer::wrap(value_id v) {
  auto n = std::make_shared<detail::tensor_node>();
  n->out.push_back({edit_.layout_of(v), nullptr, v, 0});
  n->trace = token_;
  return tensor(std::move(n), 0);
}

NEAP_FUNC value_id tracer::value(tensor const& t, std::source_location at) {
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

NEAP_FUNC bool tracer::may_change(tensor const& t) const {
  if (belongs_to_model(t.storage()->role())) return true;
  auto const v = known_.find(t.storage().get());
  if (v == number_map::none) return false;
  return edit_.graph().role(value_id{v}) == role::input || last_update(value_id{v}) != nothing<value_id>;
}

NEAP_FUNC tensor tracer::before_updates(tensor const& t) {
  auto const known = known_.find(t.storage().get());
  if (known == number_map::none || last_update(value_id{known}) == nothing<value_id>) return {};
  auto const now = edit_.add(op::copy{}, {value_id{known}}).front();
  unrecorded_.push_back(now);
  return wrap(now);
}

NEAP_FUNC std::vector<tensor> tracer::emit(operator_view op, std::span<tensor const> in, std::source_location at) {
  auto const first = edit_.graph().op_count();  // with views of the model's tensors that are made for it
  std::vector<value_id> ids;
  ids.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].is_empty()) detail::no_input(op.facets->name, i, at);
    ids.push_back(value(in[i], at));
  }
  std::vector<value_id> outputs;
  detail::with_place(at, op.facets->name, [&] { outputs = edit_.emit(op, span_of(ids)); });
  op_names_->name(edit_, first);
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

NEAP_FUNC value_id tracer::view_again(tensor const& t, std::source_location at) {
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

NEAP_FUNC value_id tracer::look(value_id v, tensor_layout const& part, bool fixed) {
  value_id const now = edit_.add(op::as_strided{part.type.dims, part.strides, part.offset}, {v}).front();
  if (fixed) unrecorded_.push_back(now);
  return now;
}

NEAP_FUNC void tracer::of_another_trace(tensor const& t, std::source_location at) const {
  throw_error(context_access::place(at),
              {"this tensor, ", t.type(),
               ", was made by an earlier trace: what one planned step makes is not there in the next. Keep it in a "
               "neap::buffer, which neap::assign writes, or make it an output of the loss and a part of the next "
               "batch"});
}

NEAP_FUNC value_id tracer::add_source(tensor const& t, std::source_location at) {
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
  std::string text =
      known != names_.end() ? known->second : std::string(name_of(s.role())) + "." + std::to_string(residents_.size());
  value_id const v = edit_.add_source(s.role(), s.type(), text);
  residents_.push_back({v, detail::make_leaf(t.storage(), tensor_layout::dense(s.type())), std::move(text)});
  first_reads_.push_back(context_access::place(at));
  return v;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tracer::tracer(operator_table ops, std::source_location at)
    : edit_(ops),
      op_names_(std::make_shared<detail::op_names>()),
      context_(eager_context::current()),
      token_(std::make_shared<detail::trace_token>()) {
  if (context_.trace_) throw_error(context_access::place(at), {"a trace is active on this thread already"});
  context_.trace_ = this;
}

NEAP_FUNC tensor tracer::input(tensor const& like, std::string_view name) {
  value_id const v = edit_.add_source(role::input, like.type(), name);
  inputs_.push_back(v);
  // Programs that capture the sample itself, instead of taking it as an argument, mean the input; of a weight that is
  // the sample, too, they mean the weight.
  if (like.storage() && like.layout() == tensor_layout::dense(like.storage()->type()) &&
      !belongs_to_model(like.storage()->role()))
    know(like, v);
  return wrap(v);
}

NEAP_FUNC void tracer::set_module(void const* object, void const* type, std::string const& path) {
  op_names_->set_module(object, type, path);
}

NEAP_FUNC tensor tracer::leaf(tensor const& t, std::source_location at) {
  value_id const v = value(t, at);
  return wrap(look(v, edit_.layout_of(v)));
}

NEAP_FUNC value_id tracer::keep(tensor const& t, role r) {
  value_id const v = value(t);
  edit_.keep(v, r);
  return v;
}

NEAP_FUNC pin_set tracer::pin_new_ops(pin_set more) {
  auto const before = new_pins_;
  new_pins_ |= more;
  return before;
}

NEAP_FUNC std::source_location tracer::place(op_id o) const {
  return index(o) < places_.size() ? places_[index(o)] : std::source_location{};
}

NEAP_FUNC op_graph tracer::finish() {
  auto g = finish_unordered();
  detail::require_order(g);
  return g;
}

NEAP_FUNC op_graph tracer::finish_unordered() {
  stop();
  op_names_->finish(edit_);
  return std::move(edit_).finish();
}

NEAP_FUNC std::uint32_t tracer::know(tensor const& t, value_id v) {
  if (known_.add(t.storage().get(), static_cast<std::uint32_t>(index(v)))) holders_.push_back(t);
  return known_.find(t.storage().get());
}

NEAP_FUNC void tracer::keep_view(tensor const& t, value_id first) {
  views_.set(t.node().get(), static_cast<std::uint32_t>(index(first)));
  holders_.push_back(t);
}

NEAP_FUNC value_id tracer::last_update(value_id v) const {
  auto const last = updated_.find(index(edit_.graph().storage(v)));
  return last == number_map::none ? nothing<value_id> : value_id{last};
}

NEAP_FUNC void tracer::stop() {
  if (context_.trace_ == this) context_.trace_ = nullptr;
  token_->has_ended = true;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void require_steady(tensor const& t, std::source_location at) {
  auto const* trace = tracer::active();
  if (trace && trace->may_change(t))
    throw_error(context_access::place(at), {"the data of this tensor, ", t.type(),
                                            ", may be others in each step of the traced program. A choice by data is "
                                            "neap::where(condition, a, b); data are read outside of the trace"});
}

}  // namespace detail
}}  // namespace neap::v0
