// The bodies of <neap/model/precision.hpp>.
#pragma once

#include <neap/model/precision.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC void require_low(dtype t, std::string_view who, std::source_location at) {
  if (!is_low(t) && t != dtype::f32)
    throw_error(context_access::place(at), {who, ": mixed precision computes in bf16 or f16, not in ", name_of(t)});
}

}  // namespace detail
}  // namespace neap::inline v0

namespace neap::inline v0 {

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

}  // namespace neap::inline v0
