#include <neap/core/math.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

using namespace neap;

namespace {

// Distance from the exact value in units of the last place of a T; results that are both NaN or equal are at 0.
template <class T>
double units(T got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e30;
  if (static_cast<T>(exact) == got) return 0;
  if (!std::isfinite(got)) return 1e30;
  auto const rounded = static_cast<T>(exact);
  if (!std::isfinite(rounded)) return 1e30;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  long double const unit = std::fmax(std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits),
                                     static_cast<long double>(std::numeric_limits<T>::denorm_min()));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

// The worst error over numbers of all magnitudes in [low, high].
template <class T, class F, class G>
double worst(T low, T high, F f, G exact) {
  double most = 0;
  auto look = [&](T x) {
    if (!(x >= low && x <= high)) return;
    double const e = units(f(x), exact(static_cast<long double>(x)));
    if (e > most) most = e;
  };
  int const steps = 60000;
  for (int i = 0; i <= steps; ++i) look(low + (high - low) * (static_cast<T>(i) / steps));
  for (int exponent = -160; exponent < 128; ++exponent)
    for (int i = 0; i < 50; ++i) {
      T const x = std::ldexp(T(1) + static_cast<T>(i) / 50, exponent);
      look(x), look(-x);
    }
  return most;
}

using wide = long double;

template <class T>
void special_values() {
  T const inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  CHECK(math::exp(inf) == inf);
  CHECK(math::exp(-inf) == 0);
  CHECK(math::exp(T(0)) == 1);
  CHECK(math::exp(-T(0)) == 1);
  CHECK(math::exp(T(1000)) == inf);
  CHECK(math::exp(T(-1000)) == 0);
  CHECK(math::log(T(0)) == -inf);
  CHECK(math::log(inf) == inf);
  CHECK(math::log(T(1)) == 0);
  CHECK(std::isnan(math::log(T(-1))));
  CHECK(std::isnan(math::log(-inf)));
  CHECK(math::log1p(inf) == inf);
  CHECK(math::expm1(-inf) == -1);
  CHECK(math::expm1(inf) == inf);
  CHECK(math::tanh(inf) == 1);
  CHECK(math::tanh(-inf) == -1);
  CHECK(std::signbit(math::tanh(-T(0))));
  CHECK(math::erf(inf) == 1);
  CHECK(math::erf(-inf) == -1);
  CHECK(math::sqrt(inf) == inf);
  CHECK(math::sqrt(T(0)) == 0);
  CHECK(std::signbit(math::sqrt(-T(0))));
  CHECK(std::isnan(math::sqrt(T(-1))));
  CHECK(math::sqrt(T(49)) == 7);
  CHECK(math::sqrt(std::numeric_limits<T>::max()) > 0);
  CHECK(math::sigmoid(inf) == 1);
  CHECK(math::sigmoid(-inf) == 0);
  CHECK(math::sigmoid(T(0)) == T(0.5));
  CHECK(math::softplus(inf) == inf);
  CHECK(math::softplus(-inf) == 0);
  for (T x : {math::exp(nan), math::log(nan), math::tanh(nan), math::erf(nan), math::sqrt(nan), math::sigmoid(nan),
              math::softplus(nan), math::expm1(nan), math::log1p(nan), math::max(nan, T(1)), math::max(T(1), nan),
              math::min(nan, T(1)), math::min(T(1), nan)})
    CHECK(std::isnan(x));
}

}  // namespace

TEST_CASE("special values are those of <cmath>") {
  special_values<float>();
  special_values<double>();
}

TEST_CASE("float functions are within 3 units in the last place") {
  auto const exp = [](float x) { return math::exp(x); };
  CHECK(worst<float>(-110, 95, exp, [](wide x) { return std::exp(x); }) < 1.5);
  CHECK(worst<float>(
            -20, 80, [](float x) { return math::expm1(x); }, [](wide x) { return std::expm1(x); }) < 3);
  CHECK(worst<float>(
            0, 3e38f, [](float x) { return math::log(x); }, [](wide x) { return std::log(x); }) < 1.5);
  CHECK(worst<float>(
            0, 4, [](float x) { return math::log(x); }, [](wide x) { return std::log(x); }) < 1.5);
  CHECK(worst<float>(
            -0.99f, 50, [](float x) { return math::log1p(x); }, [](wide x) { return std::log1p(x); }) < 3);
  CHECK(worst<float>(
            -20, 20, [](float x) { return math::tanh(x); }, [](wide x) { return std::tanh(x); }) < 2);
  CHECK(worst<float>(
            -6, 6, [](float x) { return math::erf(x); }, [](wide x) { return std::erf(x); }) < 2);
  CHECK(worst<float>(
            0, 3e38f, [](float x) { return math::sqrt(x); }, [](wide x) { return std::sqrt(x); }) < 1.5);
  CHECK(worst<float>(
            -110, 110, [](float x) { return math::sigmoid(x); }, [](wide x) { return 1 / (1 + std::exp(-x)); }) < 3);
  CHECK(worst<float>(
            -80, 100, [](float x) { return math::softplus(x); }, [](wide x) { return std::log1p(std::exp(x)); }) < 3);
}

TEST_CASE("double functions are within 4 units in the last place") {
  CHECK(worst<double>(
            -750, 720, [](double x) { return math::exp(x); }, [](wide x) { return std::exp(x); }) < 2);
  CHECK(worst<double>(
            -20, 80, [](double x) { return math::expm1(x); }, [](wide x) { return std::expm1(x); }) < 4);
  CHECK(worst<double>(
            0, 1e300, [](double x) { return math::log(x); }, [](wide x) { return std::log(x); }) < 2);
  CHECK(worst<double>(
            0, 4, [](double x) { return math::log(x); }, [](wide x) { return std::log(x); }) < 2);
  CHECK(worst<double>(
            -0.99, 50, [](double x) { return math::log1p(x); }, [](wide x) { return std::log1p(x); }) < 4);
  CHECK(worst<double>(
            -20, 20, [](double x) { return math::tanh(x); }, [](wide x) { return std::tanh(x); }) < 2);
  CHECK(worst<double>(
            0, 1e300, [](double x) { return math::sqrt(x); }, [](wide x) { return std::sqrt(x); }) < 2);
  CHECK(worst<double>(
            -700, 700, [](double x) { return math::sigmoid(x); }, [](wide x) { return 1 / (1 + std::exp(-x)); }) < 4);
}

TEST_CASE("activations and their slopes agree") {
  for (double x = -6; x < 6; x += 0.01) {
    double const h = 1e-5;
    auto slope = [&](auto f) { return (f(x + h) - f(x - h)) / (2 * h); };
    CHECK(math::gelu_slope(x) == doctest::Approx(slope([](double t) { return math::gelu(t); })).epsilon(1e-6));
    CHECK(math::gelu_tanh_slope(x) ==
          doctest::Approx(slope([](double t) { return math::gelu_tanh(t); })).epsilon(1e-6));
    CHECK(math::silu_slope(x) == doctest::Approx(slope([](double t) { return math::silu(t); })).epsilon(1e-6));
    CHECK(math::gelu(static_cast<float>(x)) == doctest::Approx(math::gelu(x)).epsilon(1e-5));
    CHECK(math::gelu_tanh(x) == doctest::Approx(math::gelu(x)).epsilon(2e-3));
  }
}

TEST_CASE("whole numbers") {
  auto const same = [](auto x) {
    CHECK(units(math::floor(x), std::floor(static_cast<long double>(x))) == 0);
    CHECK(units(math::round(x), std::nearbyint(static_cast<long double>(x))) == 0);
    CHECK(std::signbit(math::round(x)) == std::signbit(x));
    CHECK(math::sin(x) == std::sin(x));
    CHECK(math::cos(x) == std::cos(x));
  };
  for (double x :
       {0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 0.49999999999999994, 4503599627370495.5, 4503599627370497.0, 1e300})
    same(x), same(-x);
  for (float x : {0.f, 0.5f, 1.5f, 2.5f, 0.49999997f, 4194303.5f, 4194304.5f, 8388607.5f, 8388609.f, 1e38f})
    same(x), same(-x);
  float const infinite = std::numeric_limits<float>::infinity();
  CHECK(math::floor(infinite) == infinite);
  CHECK(math::round(-infinite) == -infinite);
  CHECK(std::isnan(math::floor(std::numeric_limits<double>::quiet_NaN())));
}
