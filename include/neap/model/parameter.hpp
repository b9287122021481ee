// What a model owns: parameters (weights, trained) and buffers (running statistics, tables; not trained). Both are tensors
// and go wherever tensors go. Unlike a plain tensor they are values: a copy of a model is another model, with data of its
// own. What the model's functions see is the handle, so a step that updates a weight in place updates the model's.
//
// Weights that are tied (share()) are tied in a copy of the model. Plain tensors and views that the model made of its weights
// still look at the original's: give such a model a copy constructor that makes them again, or delete it.
#pragma once

#include <neap/model/refers_as.hpp>
#include <neap/model/tensor.hpp>

#include <cstring>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

tensor make_owned(tensor_type const& t, initialiser const& first, role r,
                  std::source_location at = std::source_location::current());

tensor copy_owned(tensor const& from);
/// The copy of the handle `from` for the handle at `to`. Members that are tied are copied by one and the same model's copy
/// if they are as far from one another there as here; then one copy is made for all of them.
tensor copy_member(tensor const& from, void const* to);
/// A tensor of another element type with its data, or, where it has none yet, with its first values.
tensor converted_owned(tensor const& from, dtype t, std::source_location at);
/// `count` floating elements as those of another type, rounded to nearest (f64 by way of f32).
void cast_elements(void const* from, dtype f, void* to, dtype t, std::size_t count);

}  // namespace detail

/// A tensor that a model owns; R is its role.
template <role R>
class owned_tensor : public tensor {
 public:
  static constexpr neap::role owner_role = R;
  owned_tensor() = default;
  /// Random initial values are drawn from a stream of this thread's context, unless neap::initialise gives a seed.
  explicit owned_tensor(neap::shape const& s, initialiser first = initialiser::constant(0), dtype t = dtype::f32,
                        std::source_location at = std::source_location::current())
      : tensor(detail::make_owned({t, s}, first.is_random() ? seeded(first) : first, R, at)) {
    if (!first.is_random() || first.seed || first.stream) (void)detail::reported(*this);
  }
  /// Takes over the data of a dense tensor without history.
  static owned_tensor holding(tensor const& t, std::source_location at = std::source_location::current()) {
    owned_tensor p;  // whose data no capture knows
    static_cast<tensor&>(p) = detail::make_owned({t.element(at), t.shape(at)}, {}, R, at);
    auto const from = t.ref(at);
    if (!from.is_dense()) throw_error(context_access::place(at), {"a weight is made from a dense tensor"});
    std::memcpy(p.storage()->data(), from.data, static_cast<std::size_t>(t.type().bytes()));
    return p;
  }
  owned_tensor(owned_tensor const& other) : tensor(detail::copy_member(other, this)) {}
  owned_tensor(owned_tensor&&) noexcept = default;
  /// The other's data in this one's memory: trainers and states of optimizers go on with them, and what is tied to this
  /// one has them, too, whatever is tied over there; a frozen weight stays frozen. Of another type, or where this one is empty, they are in new memory,
  /// and what was tied to this one follows when it is given data of that type.
  owned_tensor& operator=(owned_tensor const& other) {
    if (this == &other || (has_memory() && storage() == other.storage())) return *this;
    if (has_memory() && other.has_memory() && storage()->role() == R && !context_access::trace()) {
      bool const frozen = storage()->is_frozen();
      take(other);
      storage()->set_frozen(frozen);
    } else {
      become(detail::copy_member(other, this));
    }
    return *this;
  }
  /// The other's memory in place of this one's: trainers that are bound to this one say so when they run next.
  owned_tensor& operator=(owned_tensor&& other) noexcept {
    become(static_cast<tensor&&>(other));
    return *this;
  }

  /// The same memory under another member's name: tied weights. They are tied in a copy of the model, too, if all of them
  /// are members of one object or elements of one container; a step refuses a copy whose ties were lost.
  owned_tensor share() const {
    owned_tensor p;
    if (has_memory()) storage()->set_tied();
    static_cast<tensor&>(p) = *this;
    return p;
  }
  /// Freezes a weight (false) or lets it train again. A frozen weight gets no gradient, no update and no optimizer state,
  /// and nothing is kept for its gradient; it is saved and loaded like any other. Tied weights are frozen together, and a
  /// copy of a frozen weight is frozen. What counts is the state when a step is made: a trainer refuses to run a step
  /// whose weights were frozen or freed since. Whole modules: neap::requires_gradient.
  void requires_gradient(bool wanted, std::source_location at = std::source_location::current()) const {
    static_assert(R == role::weight, "neap: only a weight is trained or frozen: a buffer never has a gradient");
    if (is_empty()) detail::no_tensor(at);
    if (!is_traced()) storage()->set_frozen(!wanted);
  }
  /// Another element type. Data are kept, rounded to nearest; where there are none yet, the initial values are of the new
  /// type. States of an optimizer go along where their type stays.
  void set_element(dtype t, std::source_location at = std::source_location::current()) {
    if (is_empty()) detail::no_tensor(at);
    if (t != element(at)) become(detail::converted_owned(*this, t, at));
  }
  /// Other initial values, from now on; random ones without a seed keep the one that this tensor has.
  void restart(initialiser const& first, std::source_location at = std::source_location::current()) {
    bool const seeded = !first.is_random() || first.seed || first.stream;
    auto const& before = first_values(at);
    storage()->restart(seeded ? first : first.with_seed(before.seed, before.stream));
  }
  initialiser const& first_values(std::source_location at = std::source_location::current()) const {
    if (is_empty()) detail::no_tensor(at);
    return storage()->first_values();
  }

  // x += y would make the model's member another tensor.
  template <class Y>
  friend void operator+=(owned_tensor const&, Y const&) {
    refuse_in_place<Y>();
  }
  template <class Y>
  friend void operator-=(owned_tensor const&, Y const&) {
    refuse_in_place<Y>();
  }
  template <class Y>
  friend void operator*=(owned_tensor const&, Y const&) {
    refuse_in_place<Y>();
  }
  template <class Y>
  friend void operator/=(owned_tensor const&, Y const&) {
    refuse_in_place<Y>();
  }

 private:
  template <class Y>
  static constexpr void refuse_in_place() {
    static_assert(
        detail::never<Y>,
        "neap: a weight or buffer is written in place by neap::assign(x, x + y), through which no gradient goes");
  }
  void become(tensor other) noexcept {
    if (has_memory() && !other.is_empty() && !other.is_traced() && storage() != other.storage())
      storage()->set_replaced_by(other.storage());
    static_cast<tensor&>(*this) = std::move(other);
  }
  bool has_memory() const { return !is_empty() && !is_traced(); }
  void take(owned_tensor const& other) {
    auto const before = storage();
    auto const& type = other.storage()->type();
    if (auto const next = before->replaced_by(); before->type() != type && next && next->type() == type)
      static_cast<tensor&>(*this) = detail::make_leaf(next, tensor_layout::dense(type), R == role::weight);
    if (storage()->type() == type) storage()->take(*other.storage());
    else become(detail::copy_owned(other));
  }
  static initialiser seeded(initialiser i) {
    return i.seed || i.stream ? i : i.with_seed(eager_context::current().draw(), 0);
  }
};

using parameter = owned_tensor<role::weight>;
using buffer = owned_tensor<role::buffer>;

/// A tensor that is the same in every step, for use inside traces: a table, a mask. It shares the data.
tensor constant(tensor const& t);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/parameter.ipp>
#endif
