// The bodies of <neap/ir/field/element.hpp>.
#pragma once

#include <neap/ir/field/element.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace neap { inline namespace v0 { namespace detail {

inline zero_sign sum_sign(zero_sign a, zero_sign b) {
  if (a == zero_sign::unknown || b == zero_sign::unknown) return zero_sign::unknown;
  return a == b ? a : zero_sign::plus;
}
inline zero_sign opposite(zero_sign a) {
  return a == zero_sign::unknown ? a : a == zero_sign::plus ? zero_sign::minus : zero_sign::plus;
}

NEAP_FUNC field_number field_arithmetic::zeros(field_element const& x) const {
  if (x.masked == x.strict) return {};
  return f_.sub(f_.sub(x.masked.all, x.masked.constant), f_.sub(x.strict.all, x.strict.constant));
}

NEAP_FUNC bool field_arithmetic::are_same(field_element const& x, field_element const& y) const {
  auto const differ = [](zero_sign a, zero_sign b) {
    return a != b && a != zero_sign::unknown && b != zero_sign::unknown;
  };
  return x.value == y.value && x.strict.all == y.strict.all && zeros(x) == zeros(y) &&
         !differ(x.signs.of_plus, y.signs.of_plus) && !differ(x.signs.of_minus, y.signs.of_minus);
}

NEAP_FUNC field_element field_arithmetic::constant(double x) const {
  if (!std::isfinite(x)) {
    auto const sign = hash().mix(0x636f6e7374).mix(std::bit_cast<std::uint64_t>(x)).finish();
    auto const plain = hash().mix(0x636f6e7374).mix(std::bit_cast<std::uint64_t>(std::abs(x))).finish();
    return with(f_.from_bits(sign.low), {f_.from_bits(plain.low), {}}, 1, 1);
  }
  auto const size = f_.of(std::abs(x));
  auto y = with(f_.of(x), {size, size}, std::abs(x), x == 0 ? 0.0f : 1.0f);
  y.signs = x != 0 ? no_signs : std::signbit(x) ? zero_signs{} : signs_of_plus_zero;
  return y;
}

NEAP_FUNC field_element field_arithmetic::factor(double x) const {
  if (x != 0) return constant(x);
  auto y = with({}, {f_.from_bits(hash().mix(0x7a65726f).word()), {}}, 0, 1);
  y.signs = std::signbit(x) ? zero_signs{} : signs_of_plus_zero;
  return y;
}

NEAP_FUNC field_element field_arithmetic::sum(field_element const& a, field_element const& b) const {
  return {f_.add(a.value, b.value),
          sum(a.strict, b.strict),
          sum(a.masked, b.masked),
          sum(a.kernel, b.kernel),
          a.magnitude + b.magnitude,
          std::max(a.degree, b.degree),
          {sum_sign(a.signs.of_plus, b.signs.of_plus), sum_sign(a.signs.of_minus, b.signs.of_minus)}};
}

NEAP_FUNC field_element field_arithmetic::negative(field_element a) const {
  a.value = f_.neg(a.value), a.signs = {opposite(a.signs.of_plus), opposite(a.signs.of_minus)};
  return a;
}

NEAP_FUNC field_element field_arithmetic::product(field_element const& a, field_element const& b) {
  auto x = with(f_.mul(a.value, b.value), product(a.strict, b.strict), a.magnitude * b.magnitude, a.degree + b.degree);
  x.signs = no_signs;
  if (!(a.masked == a.strict && b.masked == b.strict)) x.masked = x.kernel = product(a.masked, b.masked);
  if (x.magnitude == 0 && a.magnitude != 0 && b.magnitude != 0) range_.least = half_range_.least = 0;
  return x;
}

NEAP_FUNC field_element field_arithmetic::scaled(field_element const& a, double by) {
  auto const b = factor(by);
  auto x = product(a, b);
  x.kernel = product(a.kernel, b.kernel);
  if (by == 1) x.signs = a.signs;
  return x;
}

NEAP_FUNC field_element field_arithmetic::reciprocal(field_element const& x) const {
  auto y = function(hash().mix(0x696e7665727365), x);
  y.magnitude = x.magnitude == 0 ? 1 : 1 / x.magnitude;
  return y;
}

NEAP_FUNC field_element field_arithmetic::mean(field_element s, std::int64_t terms) const {
  auto const share = f_.inverse(f_.of(static_cast<std::uint64_t>(terms)));
  s.value = f_.mul(s.value, share);
  for (auto* f : {&s.strict, &s.masked, &s.kernel})
    f->all = f_.mul(f->all, share), f->constant = f_.mul(f->constant, share);
  s.magnitude /= static_cast<double>(std::max<std::int64_t>(terms, 1)), s.degree += 1;
  return s;
}

NEAP_FUNC field_element field_arithmetic::masked(field_element const& x, field_element const& mask) {
  auto y = product(x, mask);
  auto const kept = mask.value, left_out = f_.sub(f_.one(), kept);
  auto const masked = [&](field_number n) { return f_.add(f_.mul(n, kept), left_out); };
  y.strict.constant = f_.mul(x.strict.constant, kept);
  y.masked = y.kernel = {masked(x.masked.all), masked(x.masked.constant)};
  return y;
}

NEAP_FUNC field_element field_arithmetic::function(sip_hash h, field_element const& x) const {
  mix_signs(h, x);
  auto y = variable(h.mix(x.value.n).finish());
  return is_as_strict(x) ? y : with_strict(y, h.mix(x.strict.all.n).mix(zeros(x).n));
}

NEAP_FUNC void field_arithmetic::mix_signs(sip_hash& h, field_element const& x) {
  if (x.signs != signs_of_variable && x.signs != no_signs)
    h.mix(0x7a65726f + 4 * static_cast<std::uint64_t>(x.signs.of_plus) + static_cast<std::uint64_t>(x.signs.of_minus));
}

NEAP_FUNC field_element field_arithmetic::function_of(digest key, std::span<field_element const> arguments) const {
  auto value = hash().mix(key), strict = value;
  bool differ = false;
  for (auto const& x : arguments) {
    mix_signs(value, x), mix_signs(strict, x);
    value.mix(x.value.n), strict.mix(x.value.n).mix(x.strict.all.n).mix(zeros(x).n);
    differ = differ || !is_as_strict(x);
  }
  auto const x = variable(value.finish());
  return differ ? with_strict(x, strict) : x;
}

NEAP_FUNC bool field_arithmetic::has_all_of(dtype to, dtype from) {
  if (to == from || to == dtype::f64) return is_floating(from) || to == from;
  return to == dtype::f32 && (from == dtype::f16 || from == dtype::bf16);
}

NEAP_FUNC field_element field_arithmetic::in_type(dtype from, dtype to, field_element const& x) const {
  if (to == from) return x;
  // What is widened is a function of the old type alone: it comes back as it was, and through other such types.
  auto h = has_all_of(to, from) ? hash().mix(0x776964656e) : hash().mix(0x63617374);
  h.mix(static_cast<std::uint64_t>(from));
  if (!has_all_of(to, from)) h.mix(static_cast<std::uint64_t>(to));
  auto y = function(h, x);
  y.magnitude = x.magnitude, y.signs = x.signs;
  return y;
}

NEAP_FUNC void field_arithmetic::see(dtype element_type, field_element const& x) {
  auto& r = element_type == dtype::f16 ? half_range_ : range_;
  r.most = std::max(r.most, x.magnitude);
  if (x.magnitude > 0) r.least = std::min(r.least, x.magnitude);
}

NEAP_FUNC bool field_arithmetic::within_magnitudes(field_arithmetic const& a, field_arithmetic const& b) {
  auto const within = [](range const& x, range const& y, double factor) {
    return x.most <= factor * y.most && x.least * factor >= y.least;
  };
  return within(a.range_, b.range_, 1024) && within(a.half_range_, b.half_range_, 16);
}

}  // namespace detail
}}  // namespace neap::v0
