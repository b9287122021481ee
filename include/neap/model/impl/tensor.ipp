// The bodies of <neap/model/tensor.hpp>.
#pragma once

#include <neap/model/tensor.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor_node::~tensor_node() {
  std::vector<tensor> open = std::move(in);
  while (!open.empty()) {
    tensor last = std::move(open.back());
    open.pop_back();
    if (last.node() && last.node().use_count() == 1)
      for (auto& t : last.node()->in) open.push_back(std::move(t));
  }
}

NEAP_FUNC tensor make_leaf(std::shared_ptr<tensor_storage> s, tensor_layout const& l, bool wants_gradient) {
  auto n = std::make_shared<tensor_node>();
  auto const version = s->version();
  n->out.push_back({l, std::move(s), nothing<value_id>, version});
  n->wants_gradient = wants_gradient;
  return tensor(std::move(n), 0);
}

NEAP_FUNC std::shared_ptr<tensor_storage> make_storage(tensor_type const& t, initialiser const& first, role r,
                                                       std::source_location at) {
  for (auto x : t.dims)
    if (x < 0) throw_error(context_access::place(at), {"a tensor cannot have the shape ", t.dims});
  std::shared_ptr<tensor_storage> s;
  with_place(at, [&] { s = std::make_shared<tensor_storage>(t, first, r); });
  return s;
}

NEAP_FUNC int axis_of(tensor const& x, std::int64_t axis, char const* who, std::source_location at) {
  int const rank = x.rank(at);
  if (axis < -rank || axis >= rank) throw_error(context_access::place(at), {who, ": no axis ", axis, " in ", x.type()});
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

NEAP_FUNC void require_number(char const* who, dtype t, double x, std::source_location at) {
  if (!has_number(t, x)) throw_error(context_access::place(at), {who, ": ", x, " is no ", t});
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor_ref tensor::ref(std::byte* (listener::*reads)(tensor const&, std::source_location),
                                 std::source_location at) const {
  if (!node_) detail::no_tensor(at);
  if (!storage() && node_->trace->has_ended) detail::no_trace(at);
  if (!storage())
    throw_error(
        context_access::place(at),
        {"this tensor has no data: it stands for a value of a traced program. A choice by data is neap::where(condition, "
         "a, b); data are read outside of the trace"});
  detail::require_steady(*this, at);
  if (auto* l = listener::active()) {
    if (auto* elements = (l->*reads)(*this, at)) return tensor_ref::place(elements, tensor_layout::dense(type()));
  } else {
    detail::recording_watch::uses(*storage());
  }
  std::byte* first = nullptr;
  detail::with_place(at, [&] { first = storage()->data(); });
  return tensor_ref::place(first, layout());
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor tensor::lazy(tensor_type const& t, initialiser const& first, role r, place at) {
  // Random numbers that are made inside a trace are the same in every step.
  if (r == role::activation && first.is_random() && context_access::trace()) r = role::constant;
  return detail::reported(detail::make_leaf(detail::make_storage(t, first, r, at), tensor_layout::dense(t)));
}

NEAP_FUNC tensor tensor::full(neap::shape const& s, double x, dtype t, place at) {
  detail::require_number("full", t, x, at);
  return lazy({t, s}, initialiser::constant(x), role::activation, at);
}

NEAP_FUNC tensor_layout const& tensor::layout(std::source_location at) const {
  if (!node_) detail::no_tensor(at);
  return node_->out[output_].layout;
}

NEAP_FUNC std::int64_t tensor::size(std::int64_t axis, std::source_location at) const {
  return shape(at)[detail::axis_of(*this, axis, "size", at)];
}

NEAP_FUNC bool tensor::is_frozen() const {
  return node_ && node_->wants_gradient && !node_->facets && !node_->though_frozen && storage()->is_frozen();
}

NEAP_FUNC tensor tensor::with_gradient(std::source_location at) const {
  if (!node_) detail::no_tensor(at);
  if (context_access::trace()) return detail::leaf_in_trace(*this, at);
  if (is_traced()) detail::no_trace(at);
  tensor leaf = detail::make_leaf(storage(), layout(), true);
  leaf.node()->though_frozen = true;
  if (auto* l = detail::computation_listener::active()) l->detached(leaf);
  return leaf;
}

NEAP_FUNC tensor tensor::detach(std::source_location at) const {
  if (!node_) detail::no_tensor(at);
  if (context_access::trace()) return detail::leaf_in_trace(*this, at);
  if (is_traced()) detail::no_trace(at);
  tensor const leaf = detail::make_leaf(storage(), layout());
  if (auto* l = detail::computation_listener::active()) l->detached(leaf);
  return leaf;
}

}}  // namespace neap::v0
