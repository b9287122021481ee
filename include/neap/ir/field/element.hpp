// Elements of tensors in a prime field, and arithmetic with them. ir/field_values.hpp says what an element's figures are
// for.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/prime_field.hpp>
#include <neap/core/sip_hash.hpp>
#include <neap/core/tensor_type.hpp>

#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

/// What is drawn: a key, and a prime by it.
struct field_secret {
  hash_key key;
  prime_field field;
  explicit field_secret(hash_key k = hash_key::drawn()) : key(k), field(k) {}
};

namespace detail {

/// A formula without signs: what it is, and that of its terms without free variables.
struct unsigned_formula {
  field_number all, constant;
  friend bool operator==(unsigned_formula const&, unsigned_formula const&) = default;
};

/// The sign of a zero; unknown: it has none that is kept.
enum class zero_sign : std::uint8_t { unknown, plus, minus };
struct zero_signs {                                                   // where all free variables are 0, and -0
  zero_sign of_plus = zero_sign::minus, of_minus = zero_sign::minus;  // -0, to which a sum adds its terms
  friend bool operator==(zero_signs const&, zero_signs const&) = default;
};

inline constexpr zero_signs no_signs{zero_sign::unknown, zero_sign::unknown};
inline constexpr zero_signs signs_of_plus_zero{zero_sign::plus, zero_sign::plus};
inline constexpr zero_signs signs_of_variable{zero_sign::plus, zero_sign::minus};

struct field_element {
  field_number value;
  unsigned_formula strict;
  unsigned_formula masked;  // the strict value where zeros that an operator puts in are 1
  unsigned_formula kernel;  // the same where those that enlarge a convolution's kernel are still 0
  double magnitude = 0;     // where all free variables are 1 and nothing has a sign
  float degree = 0;
  zero_signs signs{};
};

/// Sums, products and functions of elements under one secret, and the range of the magnitudes that have come up.
class field_arithmetic {
 public:
  explicit field_arithmetic(field_secret const& secret) : secret_(secret), f_(secret.field) {}

  static constexpr float max_degree = 1024;

  sip_hash hash() const { return sip_hash(secret_.key); }
  field_element variable(digest d) const {
    auto const x = f_.from_bits(d.low);
    return with(x, {x, {}}, 1, 1);
  }
  /// An operator's 0.
  field_element zero() const {
    unsigned_formula const one{f_.one(), f_.one()};
    return {{}, {}, one, one, 0, 0, signs_of_plus_zero};
  }
  /// One that enlarges the kernel of a convolution.
  field_element kernel_zero() const {
    auto x = zero();
    x.kernel = {};
    return x;
  }
  field_element constant(double x) const;
  /// A constant that elements are multiplied with: 0 times what is infinite is not 0.
  field_element factor(double x) const;

  field_element sum(field_element const& a, field_element const& b) const;
  field_element negative(field_element a) const;
  field_element product(field_element const& a, field_element const& b);
  /// The same where the second one is a number.
  field_element scaled(field_element const& a, double by);
  field_element reciprocal(field_element const& x) const;
  /// A sum of so many terms as their mean.
  field_element mean(field_element sum, std::int64_t terms) const;
  /// x where `kept`, a variable, is 1, and an operator's 0 where it is 0.
  field_element masked(field_element const& x, field_element const& kept);
  /// As a factor of an image, in a convolution.
  static field_element in_kernel(field_element x) {
    x.masked = x.kernel;
    return x;
  }
  /// In another type: a hash, but for types that have all numbers of the old one and back.
  field_element in_type(dtype from, dtype to, field_element const& x) const;
  /// A function's result of several elements: a hash of them and of `key`, which the function has.
  field_element function_of(digest key, std::span<field_element const> arguments) const;

  bool are_same(field_element const& x, field_element const& y) const;
  /// Mixes in all figures in which elements that are not the same may differ.
  void mix_figures(sip_hash& h, field_element const& x) const {
    h.mix(x.value.n).mix(x.strict.all.n).mix(zeros(x).n), mix_signs(h, x);
  }
  /// Whether a type has all the numbers of another one.
  static bool has_all_of(dtype to, dtype from);

  /// Takes the magnitude of a result into the range.
  void see(dtype element_type, field_element const& x);
  /// Whether no result of a lies 1024 times above or below those of b; of type f16, whose range is small, 16 times.
  static bool within_magnitudes(field_arithmetic const& a, field_arithmetic const& b);

 private:
  field_element with(field_number value, unsigned_formula const& strict, double magnitude, float degree) const {
    return {value, strict, strict, strict, magnitude, degree, signs_of_variable};
  }
  /// The terms of the strict value that have an operator's 0 and a free variable as factors.
  field_number zeros(field_element const& x) const;
  unsigned_formula sum(unsigned_formula const& a, unsigned_formula const& b) const {
    return {f_.add(a.all, b.all), f_.add(a.constant, b.constant)};
  }
  unsigned_formula product(unsigned_formula const& a, unsigned_formula const& b) const {
    return {f_.mul(a.all, b.all), f_.mul(a.constant, b.constant)};
  }
  /// A function's result of one element: a hash of it, `h` being one of the function.
  field_element function(sip_hash h, field_element const& x) const;
  static void mix_signs(sip_hash& h, field_element const& x);
  bool is_as_strict(field_element const& x) const { return x.value == x.strict.all && zeros(x) == field_number{}; }
  field_element with_strict(field_element const& x, sip_hash h) const {
    return with(x.value, {f_.from_bits(h.word()), {}}, x.magnitude, x.degree);
  }

  struct range {
    double most = 1, least = 1;
  };
  field_secret const& secret_;
  prime_field const& f_;
  range range_, half_range_;  // magnitudes of results; of type f16
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/field/impl/element.ipp>
#endif
