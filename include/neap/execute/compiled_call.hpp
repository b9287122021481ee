// One call of a compiled function: its arguments, the function and its result, behind virtual functions. What compiled
// functions do with a call is then compiled once, and not for each function.
#pragma once

#include <neap/capture/argument_key.hpp>
#include <neap/capture/known_arguments.hpp>
#include <neap/capture/walk.hpp>
#include <neap/model/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// What a graph has made for a result: its tensor and its tracked scalar number k.
class made_parts {
 public:
  virtual tensor tensor_of(std::size_t k) = 0;
  virtual std::uint64_t value_of(std::size_t k) = 0;

 protected:
  ~made_parts() = default;
};

/// Gives the parts of a result what a graph has made: a class for walk_parts().
struct result_filler {
  made_parts& from;
  std::size_t tensors = 0, scalars = 0;
  void visit(tensor& x) { x = from.tensor_of(tensors++); }
  void scalar(void*, void* value, std::size_t bytes, symbol_id*) {
    std::uint64_t const bits = from.value_of(scalars++);
    std::memcpy(value, &bits, bytes);
  }
  void plain(void*, std::size_t) {}
  void text(std::string&) {}
  void structure(std::uint64_t) {}
  void structure(std::string_view) {}
  void unlisted(unsigned char const*, std::size_t) {}
  void enter(std::string_view, std::size_t) {}
  void leave() {}
  void tracked(tracked_base&) {}  // results have none
};

class compiled_call {
 public:
  /// A number of the arguments' types.
  virtual std::uint64_t type_number() const = 0;
  /// The parts of the objects that are passed by reference, or of those by value.
  virtual void walk(bool references, part_visitor& to) = 0;
  /// All of them, without taking memory.
  virtual void walk_known(known_arguments& to) = 0;
  virtual void put(argument_key& to) = 0;

  /// Whether all that is passed by value can be copied.
  virtual bool copies() const = 0;
  /// Keeps a copy for run_kept(), where copies() holds.
  virtual void keep_copy() = 0;
  /// Runs the function, and holds its result.
  virtual void run() = 0;
  /// On a copy of what is passed by value, where copies() holds; else as run().
  virtual void run_on_copy() = 0;
  virtual void run_kept() = 0;

  virtual bool has_result() const = 0;
  virtual void drop_result() = 0;
  virtual void walk_result(part_visitor& to) = 0;
  /// A copy of the result, which walk_form() walks.
  virtual std::shared_ptr<void> form() const = 0;
  virtual void walk_form(void* form, part_visitor& to) const = 0;
  /// The result becomes that form, with these parts.
  virtual void fill(void const* form, made_parts& parts) = 0;

 protected:
  ~compiled_call() = default;
};

/// Of f, a function with results of type R, for arguments that are held as H...: by reference or by value.
template <class F, class R, class... H>
class call_of final : public compiled_call {
  using frame = std::tuple<H...>;
  using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;
  static constexpr bool can_copy = (std::is_copy_constructible_v<H> && ...);

 public:
  call_of(F& f, frame& arguments) : f_(&f), arguments_(&arguments) {}

  std::uint64_t type_number() const override {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(static_cast<void const*>(&type_address<frame>)));
  }
  void walk(bool references, part_visitor& to) override {
    each([&]<class Held>(auto& x, std::size_t k) {
      if (std::is_reference_v<Held> == references) walk_part(x, to, "argument " + std::to_string(k + 1), k);
    });
  }
  void walk_known(known_arguments& to) override {
    to.structure(type_number());
    each([&]<class Held>(auto& x, std::size_t) {
      if constexpr (std::is_reference_v<Held>) to.refers_to(x), walk_parts(x, to);
    });
    to.by_value();
    each([&]<class Held>(auto& x, std::size_t) {
      if constexpr (!std::is_reference_v<Held>) walk_parts(x, to);
    });
  }
  void put(argument_key& to) override {
    each([&]<class Held>(auto& x, std::size_t) {
      if constexpr (std::is_reference_v<Held> && !std::is_base_of_v<tensor, std::remove_cvref_t<Held>>)
        to.put(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&x)));
      walk_parts(x, static_cast<part_visitor&>(to));
    });
  }

  bool copies() const override { return can_copy; }
  void keep_copy() override {
    if constexpr (can_copy) copy_.emplace(*arguments_);
  }
  void run() override { run(*arguments_); }
  void run_on_copy() override {
    if constexpr (can_copy) {
      auto copy = *arguments_;
      run(copy);
    } else {
      run(*arguments_);
    }
  }
  void run_kept() override {
    if constexpr (can_copy) run(*copy_);
  }

  bool has_result() const override { return result_.has_value(); }
  void drop_result() override { result_.reset(); }
  void walk_result(part_visitor& to) override { walk_parts(*result_, to); }
  std::shared_ptr<void> form() const override { return std::make_shared<kept>(*result_); }
  void walk_form(void* form, part_visitor& to) const override { walk_parts(*static_cast<kept*>(form), to); }
  void fill(void const* form, made_parts& parts) override {
    if constexpr (!std::is_void_v<R>) {
      result_.emplace(*static_cast<kept const*>(form));
      result_filler filler{parts};
      walk_parts(*result_, filler);
    }
  }
  R result() {
    if constexpr (!std::is_void_v<R>) return std::move(*result_);
  }

 private:
  template <class Each>
  void each(Each const& visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit.template operator()<H>(std::get<I>(*arguments_), I), ...);
    }(std::index_sequence_for<H...>{});
  }
  void run(frame& on) {
    auto const invoke = [&]<std::size_t... I>(std::index_sequence<I...>) -> R {
      return (*f_)(std::forward<H>(std::get<I>(on))...);
    };
    if constexpr (std::is_void_v<R>) invoke(std::index_sequence_for<H...>{}), result_.emplace();
    else result_.emplace(invoke(std::index_sequence_for<H...>{}));
  }

  F* f_;
  frame* arguments_;
  std::optional<std::conditional_t<can_copy, frame, bool>> copy_;
  std::optional<kept> result_;
};

}}}  // namespace neap::v0::detail
