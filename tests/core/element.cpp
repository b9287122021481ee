#include <neap/core/element.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

using namespace neap;

static_assert(sizeof(bf16) == 2 && sizeof(f16) == 2);
static_assert(float(bf16(1.f)) == 1 && float(f16(1.f)) == 1 && float(f16(-65504.f)) == -65504);
static_assert(std::is_same_v<compute_t<bf16>, float> && std::is_same_v<compute_t<double>, double>);

namespace {

// The value of 16 bits with an exponent field of `exponent_bits`, from the definition.
double decode(std::uint16_t bits, int exponent_bits) {
  int const fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int const exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  double const sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

// All 16-bit values, the points half-way between neighbours, and the floats next to those.
template <class H>
void check_all(int exponent_bits) {
  for (int i = 0; i < 0x10000; ++i) {
    H h;
    h.bits = static_cast<std::uint16_t>(i);
    double const exact = decode(h.bits, exponent_bits);
    float const f = h;
    if (std::isnan(exact)) {
      CHECK(std::isnan(f));
      CHECK(std::isnan(float(H(f))));
      continue;
    }
    CHECK(static_cast<double>(f) == exact);
    CHECK(H(f).bits == h.bits);
    if (i & 0x8000) continue;
    std::uint16_t const next = static_cast<std::uint16_t>(i + 1);
    double const above = decode(next, exponent_bits);
    if (std::isinf(exact) || std::isinf(above)) continue;
    auto const middle = static_cast<float>((exact + above) / 2);
    if (static_cast<double>(middle) != (exact + above) / 2) continue;
    CHECK(H(middle).bits == (i & 1 ? next : h.bits));
    CHECK(H(-middle).bits == ((i & 1 ? next : h.bits) | 0x8000));
    CHECK(H(std::nextafter(middle, 0.f)).bits == h.bits);
    CHECK(H(std::nextafter(middle, INFINITY)).bits == next);
  }
}

}  // namespace

TEST_CASE("bf16 and f16 convert exactly and round to nearest even") {
  check_all<bf16>(8);
  check_all<f16>(5);
  CHECK(std::isinf(float(f16(65520.f))));
  CHECK(float(f16(65519.9f)) == 65504);
  CHECK(std::isinf(float(bf16(3.4e38f))));
  CHECK(float(f16(1e-9f)) == 0);
}

TEST_CASE("a dtype leads to its type, or to a message") {
  for (dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16, dtype::i64, dtype::i32, dtype::u8, dtype::boolean}) {
    with_type(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      CHECK(static_cast<bytes_t>(sizeof(T)) == size_of(t));
      CHECK(dtype_of<T> == t);
    });
    if (is_floating(t)) CHECK(with_floating(t, [](auto tag) { return dtype_of<typename decltype(tag)::type>; }) == t);
    else CHECK_THROWS_AS(with_floating(t, [](auto) {}), error);
  }
  CHECK_THROWS_WITH_AS(with_type(dtype::u64, [](auto) {}), "no kernel computes in u64", error);
}
