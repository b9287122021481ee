// state<T>: a scalar that a model keeps from call to call, and that a compiled function sees as such: what is computed
// from it is computed anew in each call, what is written to it is written in each call, and a branch depends on its
// condition alone.
//
//   struct model {
//     neap::state<int> steps{0};
//     neap::tensor operator()(neap::tensor x) {
//       ++steps;
//       return steps % 10 == 0 ? relu(x) : x * steps;   // two graphs, whatever the number of steps
//     }
//   };
//
// Outside of a capture it is a T.
#pragma once

#include <neap/capture/sym.hpp>
#include <neap/capture/write_epoch.hpp>

#include <cstdint>
#include <tuple>
#include <type_traits>

namespace neap { inline namespace v0 {

template <class T>
class state {
 public:
  using value_type = T;
  state() : state(T{}) {}
  template <class U>
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>)
  state(U x) : value_(static_cast<T>(x)) {
    detail::write_epoch::mark();
    if (auto* l = detail::scalar_listener::active()) l->constructed(this, l->constant(detail::to_bits(value_)));
  }
  state(state const& other) : value_(other.value_) {
    detail::write_epoch::mark();
    if (auto* l = detail::scalar_listener::active()) l->constructed(this, l->read(&other));
    else detail::recording_watch::uses(&other);
  }
  state& operator=(state const& other) {
    if (this != &other) *this = sym<T>(other);
    return *this;
  }
  ~state() {
    if (auto* l = detail::scalar_listener::active()) l->destroyed(this);
  }
  template <class U>
  state& operator=(sym<U> const& x) {
    auto const converted = detail::converted<T>(x);
    if (auto* l = detail::scalar_listener::active()) l->write(this, converted.number(*l));
    else detail::recording_watch::writes(this);
    value_ = converted.plain();
    detail::write_epoch::mark();
    return *this;
  }
  template <class U>
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>)
  state& operator=(U x) {
    *this = sym<U>(x);
    return *this;
  }

  operator sym<T>() const {
    if (auto* l = detail::scalar_listener::active()) return sym<T>(value_, l->symbol_of(l->read(this)));
    detail::recording_watch::uses(this);
    return sym<T>(value_);
  }
  /// The plain value, on which the graph then depends: one graph for each value.
  T value(std::source_location at = std::source_location::current()) const { return sym<T>(*this).value(at); }
  /// Whether it is not zero; the graph depends on that alone.
  explicit operator bool() const { return static_cast<bool>(sym<T>(*this)); }

  template <class U>
  state& operator+=(U const& x) {
    return *this = *this + x;
  }
  template <class U>
  state& operator-=(U const& x) {
    return *this = *this - x;
  }
  template <class U>
  state& operator*=(U const& x) {
    return *this = *this * x;
  }
  template <class U>
  state& operator/=(U const& x) {
    return *this = *this / x;
  }
  state& operator++() { return *this += 1; }
  state& operator--() { return *this -= 1; }
  sym<T> operator++(int) {
    sym<T> const before = *this;
    ++*this;
    return before;
  }
  sym<T> operator--(int) {
    sym<T> const before = *this;
    --*this;
    return before;
  }

  // For the library: no guard.
  T plain() const { return value_; }
  T& place() { return value_; }  // who writes there calls write_epoch::mark()
  friend auto neap_fields(state& self) { return std::tie(self.value_); }
  /// Its memory, for files; who reads one may write there.
  friend tensor neap_saved(state& self) {
    using whole = std::conditional_t<sizeof(T) == 8, std::int64_t,
                                     std::conditional_t<sizeof(T) == 4, std::int32_t, std::uint8_t>>;
    using element = std::conditional_t<std::is_floating_point_v<T> || std::is_same_v<T, bool>, T, whole>;
    shape const places = sizeof(T) == sizeof(element) ? shape{} : shape{static_cast<std::int64_t>(sizeof(T))};
    detail::write_epoch::mark();
    return tensor::borrow(reinterpret_cast<element*>(&self.value_), places);
  }

 private:
  T value_{};
};

}}  // namespace neap::v0
