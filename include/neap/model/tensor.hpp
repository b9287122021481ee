// The tensor of the model DSL: a handle, cheap to copy, to one result of one operator. It is in one of two modes:
//   eager    it has data on the host (views share them), and remembers the operator that made it if a gradient may be
//            asked; data come into being when first needed, so a model that was only built takes no memory
//   traced   a trace was active when it was made: a type and a value of the trace's graph, no data
// Functions on tensors are in functions.hpp. Names for weights and running statistics: parameter and buffer.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/model/context.hpp>
#include <neap/model/kernels.hpp>
#include <neap/model/storage.hpp>

#include <concepts>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

class tensor;

/// An argument of an operator between tensors: a tensor or a number, and the place where it was written.
class operand {
 public:
  operand(tensor const& t, std::source_location at = std::source_location::current()) : tensor_(&t), at_(at) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  operand(T x, std::source_location at = std::source_location::current()) : number_(static_cast<double>(x)),
                                                                            at_(at) {}

  bool is_tensor() const { return tensor_ != nullptr; }
  tensor const& get() const { return *tensor_; }
  double number() const { return number_; }
  std::source_location at() const { return at_; }

 private:
  tensor const* tensor_ = nullptr;
  double number_ = 0;
  std::source_location at_;
};

/// A place along an axis, negative ones counting from its end, and where it was written.
class axis_place {
 public:
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  axis_place(T i, std::source_location at = std::source_location::current())
      : place_(static_cast<std::int64_t>(i)),
        at_(at) {}
  std::int64_t place() const { return place_; }
  std::source_location at() const { return at_; }

 private:
  std::int64_t place_;
  std::source_location at_;
};

namespace detail {

/// Its address says which trace a tensor belongs to.
struct trace_token {
  bool has_ended = false;
};
struct tensor_node;

tensor add_operands(operand const& a, operand const& b);
tensor subtract_operands(operand const& a, operand const& b);
tensor multiply_operands(operand const& a, operand const& b);
tensor divide_operands(operand const& a, operand const& b);
tensor negate_operand(operand const& a);
tensor greater_operands(operand const& a, operand const& b);
tensor greater_equal_operands(operand const& a, operand const& b);
tensor less_operands(operand const& a, operand const& b);
tensor less_equal_operands(operand const& a, operand const& b);
tensor equal_operands(operand const& a, operand const& b);
tensor not_equal_operands(operand const& a, operand const& b);
tensor and_operands(operand const& a, operand const& b);
tensor or_operands(operand const& a, operand const& b);
tensor xor_operands(operand const& a, operand const& b);
tensor not_operand(operand const& a);
tensor first_place(tensor const& x, std::int64_t i, std::source_location at);
tensor leaf_in_trace(tensor const& t, std::source_location at);
void require_steady(tensor const& t, std::source_location at);

template <class>
inline constexpr bool never = false;

template <class T>
constexpr bool check_element() {
  static_assert(is_element<T>,
                "neap: no tensor has elements of this type: give double, float, neap::bf16, neap::f16, std::int64_t, "
                "std::int32_t, std::uint8_t or bool");
  return true;
}

}  // namespace detail

class tensor {
  using place = std::source_location;

 public:
  /// No tensor at all: for members that are set later.
  tensor() = default;

  // ------------------------------------------------------------------ ways to make one

  /// A tensor whose data come into being when first needed, as `first` says.
  static tensor lazy(tensor_type const& t, initialiser const& first = {}, role r = role::activation,
                     place at = place::current());
  static tensor zeros(neap::shape const& s, dtype t = dtype::f32, place at = place::current()) {
    return full(s, 0, t, at);
  }
  static tensor ones(neap::shape const& s, dtype t = dtype::f32, place at = place::current()) {
    return full(s, 1, t, at);
  }
  /// Throws neap::error if the type cannot hold x.
  static tensor full(neap::shape const& s, double x, dtype t = dtype::f32, place at = place::current());
  /// Normal numbers of mean 0 and deviation 1, from a seed.
  static tensor randn(neap::shape const& s, std::uint64_t seed, dtype t = dtype::f32, place at = place::current()) {
    return lazy({t, s}, initialiser::normal(0, 1).with_seed(seed, 0), role::activation, at);
  }
  /// Numbers uniform in [0, 1), from a seed.
  static tensor rand(neap::shape const& s, std::uint64_t seed, dtype t = dtype::f32, place at = place::current()) {
    return lazy({t, s}, initialiser::uniform(0, 1).with_seed(seed, 0), role::activation, at);
  }
  /// A copy of the elements, in row-major order. Throws neap::error if there are not as many as the shape needs.
  template <class T>
  static tensor from(std::vector<T> const& elements, neap::shape const& s, place at = place::current());
  template <class T>
  static tensor from(std::initializer_list<T> elements, neap::shape const& s, place at = place::current()) {
    return from(std::vector<T>(elements), s, at);
  }
  /// Looks at memory that the caller owns and keeps alive, dense, in row-major order. What updates in place writes there.
  /// Throws neap::error if there is none.
  template <class T>
  static tensor borrow(T* data, neap::shape const& s, place at = place::current());

  // ------------------------------------------------------------------ what it is

  // These throw neap::error for a tensor that was never given a value.

  bool is_empty() const { return node_ == nullptr; }
  tensor_layout const& layout(std::source_location at = std::source_location::current()) const;
  tensor_type const& type(std::source_location at = std::source_location::current()) const { return layout(at).type; }
  neap::shape const& shape(std::source_location at = std::source_location::current()) const { return type(at).dims; }
  dtype element(std::source_location at = std::source_location::current()) const { return type(at).element; }
  int rank(std::source_location at = std::source_location::current()) const { return type(at).rank(); }
  /// The extent of an axis; negative axes count from the end. Throws neap::error if there is no such axis.
  std::int64_t size(std::int64_t axis, std::source_location at = std::source_location::current()) const;
  std::int64_t count(std::source_location at = std::source_location::current()) const { return type(at).count(); }
  bool is_traced() const;
  /// Whether the data exist (they may still come into being).
  bool has_data() const;
  /// Whether a gradient with respect to it exists: a weight that is not frozen, or what was computed from one.
  bool wants_gradient() const;
  /// Whether it is a weight that is frozen (parameter::requires_gradient).
  bool is_frozen() const;

  // ------------------------------------------------------------------ its data (eager only)

  // In a trace these throw neap::error, but for data that are the same in every step: what depends on others cannot be
  // known there.

  /// Where the elements are; element i of axis k is strides[k] elements on.
  tensor_ref ref(std::source_location at = std::source_location::current()) const;
  /// The first element of a dense tensor of Ts. Throws neap::error if it is not one.
  template <class T>
  T* data(std::source_location at = std::source_location::current()) const;
  /// The one element of a tensor that has one, converted to T. Throws neap::error if it has none or more.
  template <class T>
  T item(std::source_location at = std::source_location::current()) const;
  /// All elements in row-major order, converted to T.
  template <class T>
  std::vector<T> values(std::source_location at = std::source_location::current()) const;

  /// The same data, as a leaf with a gradient of its own; no gradient goes through it to what it was computed from.
  tensor with_gradient(std::source_location at = std::source_location::current()) const;
  /// The same data, as a leaf without history.
  tensor detach(std::source_location at = std::source_location::current()) const;

  template <class Bool>
    requires std::same_as<Bool, bool>
  explicit operator Bool() const {
    static_assert(
        detail::never<Bool>,
        "neap: a tensor is not a truth value: a choice by data is neap::where(condition, a, b), and &&, || and ! "
        "are &, | and ~; outside of traces, t.item<float>() is a number");
    return false;
  }

  friend tensor operator+(operand a, operand b) { return detail::add_operands(a, b); }
  friend tensor operator-(operand a, operand b) { return detail::subtract_operands(a, b); }
  friend tensor operator*(operand a, operand b) { return detail::multiply_operands(a, b); }
  friend tensor operator/(operand a, operand b) { return detail::divide_operands(a, b); }
  friend tensor operator-(operand a) { return detail::negate_operand(a); }

  // Masks: booleans, elementwise, between what broadcasts to one shape (functions/comparison.hpp).

  friend tensor operator>(operand a, operand b) { return detail::greater_operands(a, b); }
  friend tensor operator>=(operand a, operand b) { return detail::greater_equal_operands(a, b); }
  friend tensor operator<(operand a, operand b) { return detail::less_operands(a, b); }
  friend tensor operator<=(operand a, operand b) { return detail::less_equal_operands(a, b); }
  friend tensor operator==(operand a, operand b) { return detail::equal_operands(a, b); }
  friend tensor operator!=(operand a, operand b) { return detail::not_equal_operands(a, b); }
  friend tensor operator&(operand a, operand b) { return detail::and_operands(a, b); }
  friend tensor operator|(operand a, operand b) { return detail::or_operands(a, b); }
  friend tensor operator^(operand a, operand b) { return detail::xor_operands(a, b); }
  friend tensor operator~(operand a) { return detail::not_operand(a); }

  // x += y is x = x + y: x is another tensor from then on, and those who hold the former one see no change. A weight or
  // buffer is written by neap::assign.

  friend tensor& operator+=(tensor& x, operand y) { return x = detail::add_operands(operand(x, y.at()), y); }
  friend tensor& operator-=(tensor& x, operand y) { return x = detail::subtract_operands(operand(x, y.at()), y); }
  friend tensor& operator*=(tensor& x, operand y) { return x = detail::multiply_operands(operand(x, y.at()), y); }
  friend tensor& operator/=(tensor& x, operand y) { return x = detail::divide_operands(operand(x, y.at()), y); }

  /// A view of place i of the first axis, which is then gone: neap::select(x, 0, i).
  tensor operator[](axis_place i) const { return detail::first_place(*this, i.place(), i.at()); }
  /// A view of a place of each of the first axes: x.at(i, j) is x[i][j].
  template <std::integral... Next>
  tensor at(axis_place i, Next... next) const {
    tensor x = detail::first_place(*this, i.place(), i.at());
    ((x = detail::first_place(x, static_cast<std::int64_t>(next), i.at())), ...);
    return x;
  }
  template <class Index>
    requires std::is_base_of_v<tensor, Index>
  tensor operator[](Index const&) const {
    static_assert(detail::never<Index>,
                  "neap: a tensor is no index: whole numbers pick by neap::index_select(x, numbers, axis), a mask by "
                  "neap::where(mask, a, b) or neap::masked_fill(x, mask, value)");
    return {};
  }

  // For the library's own headers: the operator application behind the handle.
  tensor(std::shared_ptr<detail::tensor_node> node, std::uint32_t output) : node_(std::move(node)), output_(output) {}
  std::shared_ptr<detail::tensor_node> const& node() const { return node_; }
  std::uint32_t output() const { return output_; }
  std::shared_ptr<detail::tensor_storage> const& storage() const;

 private:
  using listener = detail::computation_listener;
  tensor_ref ref(std::byte* (listener::*reads)(tensor const&, std::source_location), std::source_location at) const;

  std::shared_ptr<detail::tensor_node> node_;
  std::uint32_t output_ = 0;
};

namespace detail {
/// What x += y cannot be, by what x is.
template <class X>
constexpr void refuse_in_place() {
  static_assert(
      never<X>,
      "neap: x += y is x = x + y and needs a variable: a part such as x[0] is not written in place (neap::where, "
      "neap::concat or neap::index_add make the whole anew), and of a const tensor write  tensor y = x + ...");
}
}  // namespace detail

#define NEAP_NO_VARIABLE(OP)                 \
  template <class X, class Y>                \
    requires std::is_same_v<X, tensor const> \
  void operator OP(X&, Y const&) {           \
    detail::refuse_in_place<X>();            \
  }                                          \
  template <class X, class Y>                \
    requires std::is_same_v<X, tensor>       \
  void operator OP(X&&, Y const&) {          \
    detail::refuse_in_place<X>();            \
  }
NEAP_NO_VARIABLE(+=)
NEAP_NO_VARIABLE(-=)
NEAP_NO_VARIABLE(*=)
NEAP_NO_VARIABLE(/=)
#undef NEAP_NO_VARIABLE

namespace detail {

struct tensor_value {
  tensor_layout layout;
  std::shared_ptr<tensor_storage> storage;  // eager
  value_id value = nothing<value_id>;       // traced
  std::uint32_t version = 0;                // the storage's, when this was made
};

/// One application of an operator, or a leaf. It owns its inputs, so what a loss was computed from lives as long as the
/// loss does.
struct tensor_node {
  std::vector<tensor_value> out;
  std::shared_ptr<trace_token> trace;       // of which trace; none: eager
  operator_facets const* facets = nullptr;  // recorded: the operator; none: a leaf
  plain_vector<std::byte> attributes;
  std::vector<tensor> in;
  plain_vector<std::uint32_t> in_version;           // the storages' versions that the operator read
  std::vector<std::shared_ptr<read_data>> in_data;  // of inputs that are buffers: those versions; none: no buffers
  std::source_location place{};                     // recorded: the line of the program that applied it
  std::uint64_t order = 0;                          // higher than that of what it was computed from
  bool wants_gradient = false;
  bool though_frozen = false;  // a leaf of with_gradient(), which has a gradient even where its weight is frozen
  bool of_gradient = false;    // grad() gave it, or what it was computed from: its history is not known
  bool of_compiled = false;    // in place of grad(), a compiled function did

  tensor_node() = default;
  tensor_node(tensor_node const&) = delete;
  tensor_node& operator=(tensor_node const&) = delete;
  /// Long chains are released in a loop, not by recursion.
  ~tensor_node();
};

tensor make_leaf(std::shared_ptr<tensor_storage> s, tensor_layout const& l, bool wants_gradient = false);

/// A tensor whose data are numbers of the program.
inline tensor reported(tensor made) {
  if (auto* l = computation_listener::active()) l->made(made);
  return made;
}

[[noreturn]] inline void no_tensor(std::source_location at) {
  char const* const function = context_access::function();
  throw_error(context_access::place(at),
              {function ? function : "", function ? ": " : "", "this tensor is empty: it has no value"});
}

/// Input i of an operator has no value.
[[noreturn]] inline void no_input(std::string_view op, std::size_t i, std::source_location at) {
  char const* const function = context_access::function();
  throw_error(context_access::place(at),
              {function ? std::string_view(function) : op, ": input ", i,
               ": this tensor is empty: it has no value (a module made without its sizes has "
               "empty weights)"});
}

[[noreturn]] inline void no_trace(std::source_location at) {
  throw_error(
      context_access::place(at),
      {"this tensor belongs to a trace that has ended, and has no data: make it an output of the loss, or of the "
       "traced function"});
}

/// A storage for a dense tensor; errors name the caller's place.
std::shared_ptr<tensor_storage> make_storage(tensor_type const& t, initialiser const& first, role r,
                                             std::source_location at);

/// A tensor of its own with these elements.
template <class T>
tensor make_copy(std::vector<T> const& elements, shape const& s, std::source_location at) {
  static_assert(check_element<T>());
  std::int64_t needed = 0;
  with_place(at, [&] { needed = tensor_storage::bytes_of({dtype_of<T>, s}) / size_of(dtype_of<T>); });
  if (static_cast<std::int64_t>(elements.size()) != needed)
    throw_error(context_access::place(at),
                {"a tensor of shape ", s, " needs ", needed, " elements, got ", elements.size()});
  // What is made from data inside a trace does not change from step to step: a constant of the program.
  auto const r = context_access::trace() ? role::constant : role::activation;
  tensor_type const t{dtype_of<T>, s};
  auto storage = make_storage(t, {}, r, at);
  T* to = nullptr;
  with_place(at, [&] { to = reinterpret_cast<T*>(storage->data()); });
  for (std::size_t i = 0; i < elements.size(); ++i) to[i] = elements[i];
  return reported(make_leaf(std::move(storage), tensor_layout::dense(t)));
}

/// A tensor over memory of another owner.
inline tensor borrowed(tensor_ref const& r) {
  tensor_type const t{r.element, r.dims};
  return make_leaf(std::make_shared<tensor_storage>(t, r.data, role::activation), tensor_layout{t, r.strides, 0});
}

/// An axis, which may count from the end, as 0 ... rank - 1.
int axis_of(tensor const& x, std::int64_t axis, char const* who, std::source_location at);

/// Throws neap::error unless the two shapes broadcast.
inline void require_broadcast(tensor const& x, tensor const& y, char const* who, std::source_location at) {
  for (int i = 1; i <= std::min(x.rank(at), y.rank(at)); ++i)
    if (auto const a = x.size(-i), b = y.size(-i); a != b && a != 1 && b != 1)
      throw_error(context_access::place(at), {who, ": shapes do not broadcast, ", x.shape(), " and ", y.shape()});
}
/// Throws neap::error unless a tensor of this element type can hold the number.
void require_number(char const* who, dtype t, double x, std::source_location at);
/// Refuses tensors of another rank; `what` says who takes what.
inline void require_rank(tensor const& x, int rank, char const* what, std::source_location at) {
  if (x.rank(at) != rank) throw_error(context_access::place(at), {what, ", got ", x.type()});
}

/// One element of any type as a T.
template <class T>
T element_as(void const* data, dtype t, std::int64_t i) {
  return with_type(t, [&](auto tag) -> T {
    using From = typename decltype(tag)::type;
    auto const x = static_cast<From const*>(data)[i];
    if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16>) return static_cast<T>(static_cast<float>(x));
    else return static_cast<T>(x);
  });
}

}  // namespace detail

template <class T>
tensor tensor::from(std::vector<T> const& elements, neap::shape const& s, place at) {
  return detail::make_copy(elements, s, at);
}
template <class T>
tensor tensor::borrow(T* data, neap::shape const& s, place at) {
  static_assert(!std::is_const_v<T>,
                "neap: borrowed memory may be written by what updates in place: give a T*, or copy it by tensor::from");
  static_assert(std::is_const_v<T> || detail::check_element<T>());
  tensor_layout const l = lazy({dtype_of<T>, s}, {}, role::activation, at).layout();
  if (!data && l.type.count() > 0) throw_error(context_access::place(at), {"borrow: there is no memory for ", l.type});
  return detail::make_leaf(std::make_shared<detail::tensor_storage>(l.type, data, role::activation), l);
}

inline std::shared_ptr<detail::tensor_storage> const& tensor::storage() const { return node_->out[output_].storage; }
inline bool tensor::is_traced() const { return node_ && node_->trace != nullptr; }
inline bool tensor::has_data() const { return node_ && storage() && storage()->is_allocated(); }
inline bool tensor::wants_gradient() const { return node_ && node_->wants_gradient && !is_frozen(); }

inline tensor_ref tensor::ref(std::source_location at) const { return ref(&listener::reads_data, at); }

template <class T>
T* tensor::data(std::source_location at) const {
  static_assert(detail::check_element<std::remove_const_t<T>>());
  auto const r = ref(at);
  if (r.element != dtype_of<std::remove_const_t<T>>)
    throw_error(context_access::place(at), {"data: the tensor is ", type(), ", its elements are asked as ",
                                            name_of(dtype_of<std::remove_const_t<T>>)});
  if (!layout().is_dense())
    throw_error(context_access::place(at), {"data: the tensor is a view whose elements are not in row-major order; "
                                            "neap::contiguous makes a dense one"});
  return static_cast<T*>(r.data);
}

template <class T>
T tensor::item(std::source_location at) const {
  auto const r = ref(&listener::reads_elements, at);
  if (count() != 1)
    throw_error(context_access::place(at), {"item: a tensor of one element is needed, this is ", type()});
  return detail::element_as<T>(r.data, r.element, 0);
}

template <class T>
std::vector<T> tensor::values(std::source_location at) const {
  auto const r = ref(&listener::reads_elements, at);
  std::vector<T> all;
  all.reserve(static_cast<std::size_t>(r.count()));
  extents i = extents::filled(r.rank(), 0);
  for (std::int64_t n = r.count(); n > 0; --n) {
    std::int64_t offset = 0;
    for (int k = 0; k < r.rank(); ++k) offset += i[k] * r.strides[k];
    all.push_back(detail::element_as<T>(r.data, r.element, offset));
    for (int k = r.rank() - 1; k >= 0 && ++i[k] == r.dims[k]; --k) i[k] = 0;
  }
  return all;
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/tensor.ipp>
#endif
