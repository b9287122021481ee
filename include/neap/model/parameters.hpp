// A model's tensors, found by looking into it (fields.hpp): its parameters, its buffers, and their names by path.
#pragma once

#include <neap/model/fields.hpp>
#include <neap/model/parameter.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// A tensor of a model and where it is: "layers.3.up.weight".
struct named_tensor {
  std::string name;
  neap::tensor tensor;
};

namespace detail {
template <class T>
struct is_tensor_leaf : std::is_base_of<tensor, T> {};
/// A function of a tensor and its path, borrowed: looking into a model is compiled once for the model, not for each
/// visitor.
struct tensor_visitor {
  void* f;
  void (*call)(void* f, tensor& x, std::string const& path);
  void (*object)(void* f, void const* address, void const* type, std::string const& path) = nullptr;
  void operator()(tensor& x, std::string const& path) const { call(f, x, path); }
  void enter(void const* address, void const* type, std::string const& path) const;
};
}  // namespace detail

/// f(x, path) for every parameter, buffer and plain tensor of a model, in the order of declaration.
template <class Model, class F>
void for_each_tensor(Model& model, F f) {
  detail::tensor_visitor const visit{
      &f, [](void* to, tensor& x, std::string const& path) { (*static_cast<F*>(to))(x, path); }};
  for_each_leaf<detail::is_tensor_leaf>(model, visit);
}

/// The same; and before the parts of an object at(address, type, path), with `type` an address for each type.
template <class Model, class F, class At>
void for_each_tensor_and_object(Model& model, F f, At at) {
  std::pair<F*, At*> both{&f, &at};
  using both_of = std::pair<F*, At*>;
  detail::tensor_visitor const visit{
      &both, [](void* to, tensor& x, std::string const& path) { (*static_cast<both_of*>(to)->first)(x, path); },
      [](void* to, void const* address, void const* type, std::string const& path) {
        (*static_cast<both_of*>(to)->second)(address, type, path);
      }};
  for_each_leaf<detail::is_tensor_leaf>(model, visit);
}

/// The model's tensors of one role with their names; tied ones once, by their first name. Passed over are tensors that
/// were never given a value, and views: a weight is trained by its owner's handle, not by a part of it.
template <class Model>
std::vector<named_tensor> named_tensors(Model& model, role r) {
  std::vector<named_tensor> all;
  for_each_tensor(model, [&](tensor& t, std::string const& path) {
    if (t.is_empty() || t.is_traced() || t.storage()->role() != r) return;
    if (t.layout() != tensor_layout::dense(t.storage()->type())) return;
    if (r == role::weight && !t.wants_gradient() && !t.is_frozen()) return;  // detached
    for (auto const& seen : all)
      if (seen.tensor.storage() == t.storage()) return;
    all.push_back({path, t});
  });
  return all;
}

namespace detail {
template <class Model>
std::vector<tensor> tensors_of(Model& model, role r) {
  std::vector<tensor> all;
  for (auto& n : named_tensors(model, r)) all.push_back(std::move(n.tensor));
  return all;
}
}  // namespace detail

namespace detail {
template <class T>
struct may_be_absent
    : std::bool_constant<is_nullable<T>::value || is_container<T>::value || std::is_base_of_v<tensor, T>> {};

/// Lists the parts of a model that hold nothing: null pointers, empty optionals and containers, weights without a value.
struct absent_parts {
  std::string text;

  void add(std::string const& path, char const* what);
  template <class T>
  void operator()(T& x, std::string const& path) {
    if constexpr (std::is_base_of_v<tensor, T>) {
      if (x.is_empty()) add(path, " has no value");
    } else if constexpr (is_nullable<T>::value) {
      if (x) for_each_leaf<may_be_absent>(*x, *this, path);
      else add(path, " is null");
    } else {
      std::size_t i = 0;
      for (auto& each : x) for_each_leaf<may_be_absent>(each, *this, join_path(path, std::to_string(i++)));
      if (i == 0) add(path, " is empty");
    }
  }
};
template <class Model>
std::string absent_of(Model& model) {
  absent_parts all;
  for_each_leaf<may_be_absent>(model, all);
  return all.text;
}
}  // namespace detail

/// Handles to the model's weights, frozen ones too.
template <class Model>
std::vector<tensor> parameters(Model& model) {
  return detail::tensors_of(model, role::weight);
}
/// Handles to the weights that are not frozen: what gradients are computed for.
template <class Model>
std::vector<tensor> trained_parameters(Model& model) {
  auto all = parameters(model);
  std::erase_if(all, [](tensor const& w) { return w.is_frozen(); });
  return all;
}
template <class Model>
std::vector<tensor> buffers(Model& model) {
  return detail::tensors_of(model, role::buffer);
}

/// Freezes all weights of a module (false), or lets them train again: parameter::requires_gradient of each. Buffers are
/// not concerned: the running statistics of a frozen batch norm move on in training (batch_norm2d::fixed_statistics).
///
///   neap::requires_gradient(model.encoder, false);
template <class Module>
void requires_gradient(Module& part, bool wanted, std::source_location at = std::source_location::current()) {
  auto const weights = parameters(part);
  if constexpr (std::is_base_of_v<tensor, Module>)
    if (weights.empty())
      throw_error(context_access::place(at), {"requires_gradient: only a weight is trained or frozen, this is ",
                                              part.is_empty() ? "an empty tensor" : to_string(part.type())});
  for (auto const& w : weights) w.storage()->set_frozen(!wanted);
}

/// The number of weights' elements.
template <class Model>
std::int64_t parameter_count(Model& model) {
  std::int64_t n = 0;
  for (auto const& t : parameters(model)) n += t.count();
  return n;
}

/// Draws all random initial values again, from a seed: weight number k of the model uses stream k, buffers the streams
/// after those. Equal models of equal seeds are equal, whatever was made before them.
template <class Model>
void initialise(Model& model, std::uint64_t seed) {
  std::uint64_t k = 0;
  for (auto const& all : {parameters(model), buffers(model)})
    for (auto const& t : all) {
      auto const& first = t.storage()->first_values();
      t.storage()->restart(first.is_random() ? first.with_seed(seed, ++k) : first);
    }
}

/// Gives all floating weights and buffers another element type; initial values are drawn again, and tied ones stay tied.
/// Views of weights that the model keeps still look at those that were.
template <class Model>
void set_element(Model& model, dtype t) {
  std::vector<std::pair<tensor, tensor>> done;  // what was, what is
  auto const set = [&](auto& x, std::string const&) {
    if constexpr (requires { x.set_element(t); }) {
      if (x.is_empty() || !is_floating(x.element())) return;
      tensor& handle = x;
      for (auto const& [before, now] : done)
        if (before.storage() == x.storage()) return void(handle = now);
      tensor const before = handle;
      x.set_element(t);
      done.emplace_back(before, handle);
    }
  };
  for_each_leaf<detail::is_tensor_leaf>(model, set);
}

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/parameters.ipp>
#endif
