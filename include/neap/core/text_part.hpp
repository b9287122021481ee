// Texts for people, written from parts: what an error says. A text that is a sum of strings makes and frees one at every
// sign, in the middle of code that does something else; parts are borrowed, and put together by one function.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

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

  void append_to(std::string& s) const;

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
std::string text_of(std::initializer_list<text_part> parts);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/text_part.ipp>
#endif
