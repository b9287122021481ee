// The bodies of <neap/model/parameters.hpp>.
#pragma once

#include <neap/model/parameters.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void tensor_visitor::enter(void const* address, void const* type, std::string const& path) const {
  if (object) object(f, address, type, path);
}

NEAP_FUNC void tensor_visitor::lack(std::string const& path, char const* what) const {
  if (absent) absent(f, path, what);
}

NEAP_FUNC std::vector<named_tensor> named_tensors_of(model_ref model, role r) {
  std::vector<named_tensor> all;
  model.each_tensor([&](tensor& t, std::string const& path) {
    if (t.is_empty() || t.is_traced() || t.storage()->role() != r) return;
    if (t.layout() != tensor_layout::dense(t.storage()->type())) return;
    if (r == role::weight && !t.wants_gradient() && !t.is_frozen()) return;  // detached
    for (auto const& seen : all)
      if (seen.tensor.storage() == t.storage()) return;
    all.push_back({path, t});
  });
  return all;
}

NEAP_FUNC std::vector<tensor> tensors_of(model_ref model, role r) {
  std::vector<tensor> all;
  for (auto& n : named_tensors_of(model, r)) all.push_back(std::move(n.tensor));
  return all;
}

NEAP_FUNC void add_absent(void* to, std::string const& path, char const* what) {
  auto& text = *static_cast<std::string*>(to);
  text += (text.empty() ? "" : ", ") + (path.empty() ? "it" : path) + what;
}
NEAP_FUNC std::string absent_of(model_ref model) {
  std::string text;
  auto const see = [](void* to, tensor& x, std::string const& path) {
    if (x.is_empty()) add_absent(to, path, " has no value");
  };
  model.visit({&text, see, nullptr, add_absent});
  return text;
}

NEAP_FUNC void initialise_all(model_ref model, std::uint64_t seed) {
  std::uint64_t k = 0;
  for (auto const r : {role::weight, role::buffer})
    for (auto const& t : tensors_of(model, r)) {
      auto const& first = t.storage()->first_values();
      t.storage()->restart(first.is_random() ? first.with_seed(seed, ++k) : first);
    }
}

}  // namespace detail
}}  // namespace neap::v0
