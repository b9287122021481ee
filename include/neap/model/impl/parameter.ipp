// The bodies of <neap/model/parameter.hpp>.
#pragma once

#include <neap/model/parameter.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

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

/// The last copy of a tied tensor on this thread.
struct copied_tie {
  std::weak_ptr<tensor_storage> from, to;
  std::ptrdiff_t distance = 0;       // from handle to handle
  std::vector<void const*> handles;  // that were copied
};

NEAP_FUNC tensor copy_member(tensor const& from, void const* to) {
  if (from.is_empty() || from.is_traced() || !from.storage()->is_tied()) return copy_owned(from);
  thread_local std::vector<copied_tie> ties;
  static std::atomic<std::uint64_t> lost_ties = 0;
  std::erase_if(ties, [](copied_tie const& t) { return t.from.expired() || t.to.expired(); });
  void const* const handle = &from;
  auto const distance =
      static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(handle));
  auto const last =
      std::find_if(ties.begin(), ties.end(), [&](auto const& t) { return t.from.lock() == from.storage(); });
  bool is_other = false;  // handle than those of the last copy
  if (last != ties.end()) {
    auto& handles = last->handles;
    auto const copy = last->to.lock();
    is_other = std::find(handles.begin(), handles.end(), handle) == handles.end();
    if (is_other && last->distance == distance) {
      handles.push_back(handle);
      copy->set_tied();
      return make_leaf(copy, tensor_layout::dense(copy->type()), copy->role() == role::weight);
    }
  }
  tensor const made = copy_owned(from);
  if (is_other) {
    auto const number = ++lost_ties;
    last->to.lock()->set_lost_tie(number), made.storage()->set_lost_tie(number);
  }
  copied_tie round{from.storage(), made.storage(), distance, {handle}};
  if (last != ties.end()) *last = std::move(round);
  else ties.push_back(std::move(round));
  return made;
}

NEAP_FUNC void cast_elements(void const* from, dtype f, void* to, dtype t, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto const x = element_as<double>(from, f, static_cast<std::int64_t>(i));
    auto const y = static_cast<float>(x);
    switch (t) {
      case dtype::f64: static_cast<double*>(to)[i] = x; break;
      case dtype::f32: static_cast<float*>(to)[i] = y; break;
      case dtype::bf16: static_cast<bf16*>(to)[i] = bf16(y); break;
      default: static_cast<f16*>(to)[i] = f16(y);
    }
  }
}

NEAP_FUNC tensor converted_owned(tensor const& from, dtype t, std::source_location at) {
  auto const& s = *from.storage();
  if (computation_listener::active())
    throw_error(context_access::place(at),
                {"set_element within a compiled function: convert the model before the call"});
  tensor to = make_owned({t, s.type().dims}, s.first_values(), s.role(), at);
  if (s.is_allocated()) {
    if (!is_floating(s.type().element) || !is_floating(t))
      throw_error(context_access::place(at),
                  {"set_element: a tensor of ", s.type(), " has data, which do not become ", name_of(t)});
    auto const n = static_cast<std::size_t>(s.type().count());
    cast_elements(from.storage()->data(), s.type().element, to.storage()->data_to_overwrite(), t, n);
  }
  to.storage()->set_frozen(s.is_frozen());
  to.storage()->set_training(s.training(), s.training_waits());
  to.storage()->set_converted_from(*from.storage());
  if (s.is_tied()) to.storage()->set_tied();
  return to;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor constant(tensor const& t) {
  if (!t.is_empty() && !t.is_traced() && t.storage()->role() == role::activation) t.storage()->set_role(role::constant);
  return t;
}

}}  // namespace neap::v0
