// The bodies of <neap/model/precision.hpp>.
#pragma once

#include <neap/model/precision.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void require_low(dtype t, std::string_view who, std::source_location at) {
  if (!is_low(t) && t != dtype::f32)
    throw_error(context_access::place(at), {who, ": mixed precision computes in bf16 or f16, not in ", name_of(t)});
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor precision_scope::find(tensor const& t, dtype to) const {
  if (!is_kept(t)) return {};
  for (auto const& c : casts_)
    if (c.cast.element() == to && is_same(c, t)) return c.cast;
  return {};
}

NEAP_FUNC void precision_scope::keep(tensor const& t, tensor const& cast) {
  if (!is_kept(t)) return;
  auto* const trace = tracer::active();
  casts_.push_back(
      {t, cast, trace ? trace->value(t) : nothing<value_id>, t.storage()->version(), context_access::is_recording()});
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC precision_scope::precision_scope(dtype low, std::source_location at)
    : context_(eager_context::current()),
      low_(low) {
  detail::require_low(low, "precision_scope", at);
  before_ = context_access::set_precision(context_, this);
}

NEAP_FUNC std::optional<dtype> precision_scope::current() {
  if (auto const* p = context_access::precision()) return p->low();
  return {};
}

NEAP_FUNC bool precision_scope::is_kept(tensor const& t) {
  if (t.is_traced() || t.node()->facets) return false;
  auto const r = t.storage()->role();
  return (r == role::weight || r == role::buffer || r == role::constant) &&
         t.layout() == tensor_layout::dense(t.storage()->type());
}

NEAP_FUNC bool precision_scope::is_same(kept_cast const& c, tensor const& t) {
  if (c.of.storage() != t.storage() || c.recording != context_access::is_recording() ||
      c.of.wants_gradient() != t.wants_gradient())
    return false;
  if (auto* const trace = tracer::active()) return trace->made(c.cast) && trace->value(t) == c.value;
  return !c.cast.is_traced() && c.version == t.storage()->version();
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void same_precision::enter(std::optional<precision_scope>& scope) const {
  if (low_) scope.emplace(*low_);
}

}  // namespace detail
}}  // namespace neap::v0
