// Errors. A mistake in a model throws neap::error, whose text starts with the place in the user's file; what comes from
// data (files, limits, disks) is a result<T>: a value or one line that says what is wrong and where.
#pragma once

#include <neap/core/text_part.hpp>

#include <initializer_list>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace neap { inline namespace v0 {

/// One line for a person: "model.cpp:42: matmul: inner extents differ, [32,64] x [128,10]".
class error : public std::runtime_error {
 public:
  explicit error(std::string const& what) : std::runtime_error(what) {}
  /// Prefixes the place, file name without its folders; nothing for a place that is not known (std::source_location{}).
  error(std::source_location at, std::string_view what);

  static std::string place(std::source_location at);
};

/// Throws neap::error with a text of these parts, and the place if there is one.
[[noreturn]] void throw_error(std::initializer_list<detail::text_part> parts);
[[noreturn]] void throw_error(std::source_location at, std::initializer_list<detail::text_part> parts);

/// The message of a failure; converts to any result<T>.
struct failure {
  std::string message;
};

/// A value, or why there is none. `value()` on a failure throws neap::error with the place of the call and the message.
template <class T>
class result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(failure why) : state_(std::in_place_index<1>, std::move(why)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }
  T& value(std::source_location at = std::source_location::current()) & { return check(at), std::get<0>(state_); }
  T const& value(std::source_location at = std::source_location::current()) const& {
    return check(at), std::get<0>(state_);
  }
  T value(std::source_location at = std::source_location::current()) && {  // safe in a range-for
    return check(at), std::get<0>(std::move(state_));
  }
  T& operator*() & { return value({}); }
  T const& operator*() const& { return value({}); }
  T* operator->() { return &value({}); }
  T const* operator->() const { return &value({}); }
  /// Why there is no value; empty if there is one.
  std::string message() const { return ok() ? std::string{} : std::get<1>(state_).message; }

 private:
  void check(std::source_location at) const {
    if (!ok()) throw_error(at, {std::get<1>(state_).message});
  }
  std::variant<T, failure> state_;
};

/// Success, or why not. `value()` on a failure throws neap::error with the place of the call and the message.
class status {
 public:
  status() = default;
  status(failure why) : message_(std::move(why.message)), ok_(false) {}
  explicit operator bool() const { return ok_; }
  bool ok() const { return ok_; }
  std::string const& message() const { return message_; }
  void value(std::source_location at = std::source_location::current()) const {
    if (!ok_) throw_error(at, {message_});
  }

 private:
  std::string message_;
  bool ok_ = true;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/error.ipp>
#endif
