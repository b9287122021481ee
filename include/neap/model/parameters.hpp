// A model's tensors, found by looking into it (fields.hpp): its parameters, its buffers, and their names by path.
#pragma once

#include <neap/model/fields.hpp>
#include <neap/model/parameter.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A tensor of a model and where it is: "layers.3.up.weight".
struct named_tensor {
  std::string name;
  neap::tensor tensor;
};

namespace detail {
template <class T>
struct is_tensor_leaf : std::is_base_of<tensor, T> {};
/// A number that a model keeps: a neap::state. neap_saved(x) is its memory as a tensor.
template <class T>
concept kept_number = requires(T& x) {
  { neap_saved(x) } -> std::same_as<tensor>;
};
template <class T>
struct is_saved_leaf : std::bool_constant<is_tensor_leaf<T>::value || kept_number<T>> {};
/// A function of a tensor and its path, borrowed: looking into a model is compiled once for the model, not for each
/// visitor.
struct tensor_visitor {
  void* f;
  void (*call)(void* f, tensor& x, std::string const& path);
  void (*object)(void* f, void const* address, void const* type, std::string const& path) = nullptr;
  void (*absent)(void* f, std::string const& path, char const* what) = nullptr;
  void (*number)(void* f, tensor memory, std::string const& path) = nullptr;
  void operator()(tensor& x, std::string const& path) const { call(f, x, path); }
  template <kept_number T>
  void operator()(T& x, std::string const& path) const {
    if (number) number(f, neap_saved(x), path);
  }
  void enter(void const* address, void const* type, std::string const& path) const;
  void lack(std::string const& path, char const* what) const;
};

/// Refers to a model, or to a module or a sample, as one looks into it for tensors: erased, so that who looks is
/// compiled once. The model outlives it.
class model_ref {
 public:
  template <class Model>
    requires(!std::is_same_v<std::remove_const_t<Model>, model_ref>)
  explicit model_ref(Model& model)
      : model_(const_cast<std::remove_const_t<Model>*>(std::addressof(model))),
        visit_([](void* at, tensor_visitor const& v) { for_each_leaf<is_saved_leaf>(*static_cast<Model*>(at), v); }) {}
  void visit(tensor_visitor const& v) const { visit_(model_, v); }
  /// The same of another model of the type.
  model_ref of(void* other) const {
    auto made = *this;
    made.model_ = other;
    return made;
  }
  /// f(x, path) for every tensor.
  template <class F>
  void each_tensor(F f) const {
    visit({&f, [](void* to, tensor& x, std::string const& path) { (*static_cast<F*>(to))(x, path); }});
  }

 private:
  void* model_;
  void (*visit_)(void* model, tensor_visitor const& v);
};

/// named_tensors().
std::vector<named_tensor> named_tensors_of(model_ref model, role r);
std::vector<tensor> tensors_of(model_ref model, role r);
/// The parts of a model that hold nothing, as a text: null pointers, empty optionals and containers, weights without a
/// value.
std::string absent_of(model_ref model);
/// Adds a part to such a text, a std::string at `to`.
void add_absent(void* to, std::string const& path, char const* what);
/// initialise().
void initialise_all(model_ref model, std::uint64_t seed);
}  // namespace detail

/// f(x, path) for every parameter, buffer and plain tensor of a model, in the order of declaration.
template <class Model, class F>
void for_each_tensor(Model& model, F f) {
  detail::model_ref(model).each_tensor(std::move(f));
}

/// The model's tensors of one role with their names; tied ones once, by their first name. Passed over are tensors that
/// were never given a value, and views: a weight is trained by its owner's handle, not by a part of it.
template <class Model>
std::vector<named_tensor> named_tensors(Model& model, role r) {
  return detail::named_tensors_of(detail::model_ref(model), r);
}

/// Handles to the model's weights, frozen ones too.
template <class Model>
std::vector<tensor> parameters(Model& model) {
  return detail::tensors_of(detail::model_ref(model), role::weight);
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
  return detail::tensors_of(detail::model_ref(model), role::buffer);
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
  detail::initialise_all(detail::model_ref(model), seed);
}

/// Gives all floating weights and buffers another element type: parameter::set_element of each. Tied ones stay tied. Views of
/// weights that the model keeps still look at those that were.
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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/parameters.ipp>
#endif
