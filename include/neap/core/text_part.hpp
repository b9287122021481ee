// Texts for people, written from parts: what an error says. A text that is a sum of strings makes and frees one at every
// sign, in the middle of code that does something else; parts are borrowed, and put together by one function.
#pragma once

#include <neap/core/compiled_once.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace neap::inline v0::detail {

/// Text, a number, an enumerator that has name_of(), or what has to_string(); borrowed until the end of the expression.
class text_part {
 public:
  text_part() = default;
  text_part(std::string_view x) : text_(x.data()), size_(x.size()), kind_(kind::text) {}
  text_part(char const* x) : text_part(std::string_view(x)) {}
  text_part(std::string const& x) : text_(x.data()), size_(x.size()), kind_(kind::text) {}
  text_part(char x) : integer_(x), kind_(kind::letter) {}
  text_part(double x) : real_(x), kind_(kind::real) {}
  template <std::integral T>
  text_part(T x) : integer_(static_cast<std::int64_t>(x)),
                   kind_(std::is_signed_v<T> ? kind::integer : kind::natural) {}
  template <class T>
    requires std::is_enum_v<T>
  text_part(T x) : text_part(name_of(x)) {}
  template <class T>
    requires requires(T const& x) {
      { to_string(x) } -> std::same_as<std::string>;
    }
  text_part(T const& x)
      : object_(&x),
        write_([](void const* object) { return to_string(*static_cast<T const*>(object)); }),
        kind_(kind::object) {}

  NEAP_ONCE void append_to(std::string& s) const {
    switch (kind_) {
      case kind::none: break;
      case kind::text: s.append(text_, size_); break;
      case kind::letter: s += static_cast<char>(integer_); break;
      case kind::integer: s += std::to_string(integer_); break;
      case kind::natural: s += std::to_string(static_cast<std::uint64_t>(integer_)); break;
      case kind::real: s += std::to_string(real_); break;
      case kind::object: s += write_(object_); break;
    }
  }

 private:
  enum class kind : std::uint8_t { none, text, letter, integer, natural, real, object };
  union {
    char const* text_;
    std::int64_t integer_ = 0;
    double real_;
    void const* object_;
  };
  union {
    std::size_t size_ = 0;
    std::string (*write_)(void const*);
  };
  kind kind_ = kind::none;
};

/// The parts, one after the other.
NEAP_ONCE std::string text_of(std::initializer_list<text_part> parts) {
  std::string text;
  for (auto const& x : parts) x.append_to(text);
  return text;
}

}  // namespace neap::inline v0::detail
