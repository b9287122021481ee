// What a compiled function has the host do in each of its calls, in the order of the program: functions for their effects,
// functions for their results. A call that begins as a graph and goes on eagerly (a path that is not known yet, an
// exception) does not repeat what the host has already done: the log has the results.
#pragma once

#include <neap/capture/sym.hpp>
#include <neap/model/tensor.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The bits of a scalar, or a tensor; nothing for an effect.
struct host_result {
  std::uint64_t bits = 0;
  tensor made{};
};

/// A function of the program with those of its arguments that are plain values; tensors and tracked scalars are passed.
class host_function {
 public:
  host_function() = default;
  host_function(host_function const&) = delete;
  host_function& operator=(host_function const&) = delete;
  virtual ~host_function() = default;
  /// Throws what the function throws.
  virtual host_result call(std::span<tensor const> tensors, std::span<std::uint64_t const> scalars) const = 0;
  /// Whether it is the same function, with equal plain arguments where they can be compared.
  virtual bool is_like(host_function const& other) const = 0;
  virtual bool may_throw() const = 0;
  virtual bool gives_tensor() const = 0;
  /// The type of that tensor, where it is known without a call.
  virtual std::optional<tensor_type> type_given() const { return std::nullopt; }
};

/// Of one call: what the host has done so far.
class host_log {
 public:
  /// The result of this function as the next one of the call. Throws what it throws, or has thrown.
  host_result const& perform(std::shared_ptr<host_function const> const& f, std::span<tensor const> tensors,
                             std::span<std::uint64_t const> scalars);
  void restart() { next_ = 0; }
  /// What is done until end_trial() is on a path that the call does not take in the end: effects are left out, and of the
  /// rest counts what the call's path has, too.
  void begin_trial() { firm_ = done_.size(), holds_effects_ = true; }
  void end_trial() { holds_effects_ = false; }
  bool holds_effects() const { return holds_effects_; }
  /// What has thrown is no part of the path from now on.
  void skip_failed() { skips_failed_ = true; }
  bool is_empty() const { return done_.empty(); }
  /// The result of function number k of the call; null: it has not been called. Throws what it has thrown.
  host_result const* known(std::size_t k) const;
  /// Whether the last function that was called has thrown.
  bool has_failed() const { return !done_.empty() && done_.back().failed; }

  /// The log of the call that runs eagerly on this thread after it has begun as a graph; null: none.
  static host_log*& active() { return capture_context::here().log; }

 private:
  struct entry {
    std::shared_ptr<host_function const> function;
    host_result result;
    std::exception_ptr failed;
  };
  std::vector<entry> done_;
  std::size_t next_ = 0;
  std::size_t firm_ = std::numeric_limits<std::size_t>::max();  // those before this one belong to the call's path
  bool skips_failed_ = false, holds_effects_ = false;
};

/// While it lives, the thread's log is this one.
class log_scope {
 public:
  explicit log_scope(host_log* l) : before_(std::exchange(host_log::active(), l)) {}
  log_scope(log_scope const&) = delete;
  log_scope& operator=(log_scope const&) = delete;
  ~log_scope() { host_log::active() = before_; }

 private:
  host_log* before_;
};

/// While it lives, no capture sees what the thread does.
class unseen_scope {
 public:
  unseen_scope() : before_(std::exchange(capture_context::here(), {})) {}
  unseen_scope(unseen_scope const&) = delete;
  unseen_scope& operator=(unseen_scope const&) = delete;
  ~unseen_scope() { capture_context::here() = before_; }

 private:
  capture_context before_;
};

/// What a capture learns of host functions; null while none is under way on the thread.
class host_listener : public value_listener {
 public:
  struct arguments {
    std::vector<tensor> tensors;
    std::vector<std::uint32_t> scalars;  // expressions
    std::vector<std::uint64_t> bits;     // their values
  };
  virtual void effect(std::shared_ptr<host_function const> f, arguments const& passed, std::source_location at) = 0;
  /// The result, and the expression of a scalar.
  virtual std::pair<host_result, std::uint32_t> external(std::shared_ptr<host_function const> f,
                                                         arguments const& passed, std::source_location at) = 0;
  /// The expression of element i of a tensor, in row-major order: its bits.
  virtual std::uint32_t element(tensor const& t, std::int64_t i, std::source_location at) = 0;
  /// The bits of such an element where nothing is computed; none: not known yet.
  virtual std::optional<std::uint64_t> known(std::uint32_t element) const = 0;
  /// What runs until the end changes nothing that was there before: it is computed whether it is chosen or not.
  virtual void begins_branch(std::source_location at) = 0;
  virtual void ends_branch() = 0;

  static host_listener*& active() { return capture_context::here().host; }
};

class branch_scope {
 public:
  explicit branch_scope(std::source_location at);
  branch_scope(branch_scope const&) = delete;
  branch_scope& operator=(branch_scope const&) = delete;
  ~branch_scope();

 private:
  host_listener* listener_;
};

/// A copy of its own, without history, that no capture sees.
tensor apart(tensor const& t, std::source_location at);

/// In a capture it is recorded; in a call that goes on eagerly the log has it; else the function is called.
std::pair<host_result, std::uint32_t> perform_on_host(std::shared_ptr<host_function const> const& f,
                                                      host_listener::arguments const& passed, bool is_effect,
                                                      std::source_location at);

template <class A>
concept tensor_argument = std::is_base_of_v<tensor, A>;
template <class A>
concept text_argument =
    std::is_same_v<A, char const*> || std::is_same_v<A, char*> || std::is_same_v<A, std::string_view>;
/// A value that says all of itself: a copy of it is as good at any later time.
template <class A>
struct is_value : std::bool_constant<std::is_arithmetic_v<A> || std::is_enum_v<A> || std::is_same_v<A, std::string> ||
                                     text_argument<A> || std::is_same_v<A, shape> || std::is_empty_v<A> ||
                                     (std::is_pointer_v<A> && std::is_function_v<std::remove_pointer_t<A>>)> {};
template <class A>
struct is_value<std::vector<A>> : is_value<A> {};
template <class A, class B>
struct is_value<std::pair<A, B>> : std::bool_constant<is_value<A>::value && is_value<B>::value> {};

/// Tensors and tracked scalars differ from call to call, other arguments are values of the path.
template <class F, class... A>
class host_function_of final : public host_function {
  template <class X>
  static constexpr bool is_plain = !tensor_argument<X> && !symbolic<X>;
  template <class X>
  using kept = std::conditional_t<is_plain<X>, std::conditional_t<text_argument<X>, std::string, X>, std::tuple<>>;
  static_assert(
      ((!is_plain<A> || is_value<A>::value) && ...),
      "neap: a host function of a compiled function takes tensors, neap::sym and neap::state, which reach it as "
      "they are in each call, and numbers, enums and strings, which are part of the path. What an object, a "
      "pointer or a reference has at a later call would not be seen: give its parts");
  template <class X>
  static auto show() {
    if constexpr (tensor_argument<X>) return std::type_identity<tensor>{};
    else if constexpr (symbolic<X>) return std::type_identity<typename scalar_of<X>::type>{};
    else if constexpr (std::is_same_v<X, char*>) return std::type_identity<char const*>{};
    else if constexpr (text_argument<X>) return std::type_identity<X>{};
    else return std::type_identity<X const&>{};
  }
  template <class X>
  using shown = typename decltype(show<X>())::type;

 public:
  using result = std::remove_cvref_t<std::invoke_result_t<F const&, shown<A>...>>;

  host_function_of(F f, A const&... passed) : f_(std::move(f)), plain_(keep(passed)...) {}

  host_result call(std::span<tensor const> tensors, std::span<std::uint64_t const> scalars) const override {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      unseen_scope const unseen;
      constexpr auto at = places();
      auto const run = [&]() -> decltype(auto) { return f_(get<I>(tensors, scalars, at[I])...); };
      using R = decltype(run());
      host_result r;
      if constexpr (std::is_void_v<R>) {
        run();
      } else if constexpr (tensor_argument<std::remove_cvref_t<R>>) {
        r.made = apart(run(), {});
      } else {
        static_assert(
            tracked_scalar<std::remove_cvref_t<R>>,
            "neap: a host function of a compiled function gives a number, a bool, an enum, a tensor or nothing");
        r.bits = to_bits<std::remove_cvref_t<R>>(run());
      }
      return r;
    }(std::index_sequence_for<A...>{});
  }
  bool is_like(host_function const& other) const override {
    auto const* o = dynamic_cast<host_function_of const*>(&other);
    if (!o) return false;
    if constexpr (std::is_pointer_v<F>)
      if (f_ != o->f_) return false;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] auto const equal = [](auto const& a, auto const& b) {
        if constexpr (requires {
                        { a == b } -> std::convertible_to<bool>;
                      })
          return static_cast<bool>(a == b);
        else return (void)a, (void)b, true;
      };
      return (equal(std::get<I>(plain_), std::get<I>(o->plain_)) && ...);
    }(std::index_sequence_for<A...>{});
  }
  bool may_throw() const override { return !std::is_nothrow_invocable_v<F const&, shown<A>...>; }
  bool gives_tensor() const override { return tensor_argument<result>; }

 private:
  template <class X>
  static kept<X> keep(X const& x) {
    if constexpr (is_plain<X>) return kept<X>(x);
    else return (void)x, kept<X>{};
  }
  /// The number of each argument among those of its kind.
  static constexpr auto places() {
    std::array<std::size_t, sizeof...(A) + 1> at{};
    std::size_t tensors = 0, scalars = 0, i = 0;
    ((at[i++] = tensor_argument<A> ? tensors++ : symbolic<A> ? scalars++ : 0), ...);
    return at;
  }
  template <std::size_t I>
  decltype(auto) get(std::span<tensor const> tensors, std::span<std::uint64_t const> scalars, std::size_t at) const {
    using X = std::tuple_element_t<I, std::tuple<A...>>;
    if constexpr (tensor_argument<X>) return tensor(tensors[at]);
    else if constexpr (symbolic<X>) return from_bits<typename scalar_of<X>::type>(scalars[at]);
    else if constexpr (std::is_same_v<X, std::string_view>) return std::string_view(std::get<I>(plain_));
    else if constexpr (text_argument<X>) return std::get<I>(plain_).c_str();
    else return (std::get<I>(plain_));
  }

  F f_;
  std::tuple<kept<A>...> plain_;
};

template <class X>
void list_argument(host_listener::arguments& to, X const& x, std::source_location at) {
  if constexpr (tensor_argument<X>) {
    if (x.is_empty()) no_tensor(at);
    to.tensors.push_back(x);
  } else if constexpr (symbolic<X>) {
    auto const s = as_sym(x);
    if (auto* l = scalar_listener::active()) to.scalars.push_back(s.number(*l));
    to.bits.push_back(to_bits(s.plain()));
  }
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/host_function.ipp>
#endif
