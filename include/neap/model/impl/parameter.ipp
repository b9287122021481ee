// The bodies of <neap/model/parameter.hpp>.
#pragma once

#include <neap/model/parameter.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC tensor make_owned(tensor_type const& t, initialiser const& first, role r, std::source_location at) {
  return make_leaf(make_storage(t, first, r, at), tensor_layout::dense(t), r == role::weight);
}

NEAP_FUNC tensor copy_owned(tensor const& from) {
  if (from.is_empty() || from.is_traced()) return from;  // a trace's values have no owner
  auto const& s = *from.storage();
  tensor to = make_owned(s.type(), s.first_values(), s.role());
  if (s.is_allocated()) std::memcpy(to.storage()->data(), from.storage()->data(), static_cast<std::size_t>(s.bytes()));
  if (context_access::trace()) to.storage()->set_copied_in_trace();
  if (auto* l = computation_listener::active()) l->copied(s, to.storage());
  to.storage()->set_frozen(s.is_frozen());
  return to;
}

}  // namespace detail
}  // namespace neap::inline v0

namespace neap::inline v0 {

NEAP_FUNC tensor constant(tensor const& t) {
  if (!t.is_empty() && !t.is_traced() && t.storage()->role() == role::activation) t.storage()->set_role(role::constant);
  return t;
}

}  // namespace neap::inline v0
