#include <neap/backend/kernels/elementwise.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

namespace {

struct fused {  // products that a compiler may or may not contract into multiply-adds
  template <class C>
  C operator()(C a, C b, C c) const {
    return a * b + c * math::tanh(a);
  }
};
struct less {
  template <class C>
  bool operator()(C a, C b) const {
    return a < b;
  }
};
struct add {
  static constexpr bool integral = true;
  template <class C>
  C operator()(C a, C b) const {
    return a + b;
  }
};
struct both {
  template <class C>
  std::array<C, 2> operator()(C a, C b) const {
    return {a + b, a - b};
  }
};

}  // namespace

TEST_CASE("map agrees with plain loops on random views, and layouts give the same bits") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 400; ++round) {
    dtype const t = floating_types[round % 4];
    shape const s = round % 20 == 0 ? shape{37, 1003} : random_shape(r);
    auto a = random_view(t, s, r), b = random_view(t, s, r), c = random_view(t, s, r);
    owned y{t, s}, z{t, s};
    map(one, fused{}, y, a, b, c);
    map(many, fused{}, z, a, b, c);
    CHECK(same_bits(y, z));
    auto const av = values(a), bv = values(b), cv = values(c);
    std::vector<double> expected;
    for (std::size_t i = 0; i < av.size(); ++i) expected.push_back(av[i] * bv[i] + cv[i] * std::tanh(av[i]));
    CHECK(near(y, expected, tolerance(t)));
    // Dense copies of the inputs, and in place on the first.
    owned ad{t, s}, bd{t, s}, cd{t, s}, w{t, s};
    assign(ad, av), assign(bd, bv), assign(cd, cv);
    map(many, fused{}, w, ad, bd, cd);
    CHECK(same_bits(w, y));
    map(one, fused{}, ad, ad, bd, cd);
    CHECK(same_bits(ad, y));
    // Element by element.
    owned e{t, s};
    std::int64_t const size = size_of(t);
    for (std::int64_t i = 0, n = y.ref.count(); i < n && n < 500; ++i) {
      auto at = [&](owned const& x) { return tensor_ref{x.base() + i * size, t, {}, {}}; };
      owned ad2{t, s};
      assign(ad2, av);
      map(one, fused{}, at(e), at(ad2), at(bd), at(cd));
      if (i + 1 == n) CHECK(same_bits(e, y));
    }
    // An output with strides.
    auto strided_out = random_view(t, s, r, false, false);
    map(one, fused{}, strided_out, a, b, c);
    CHECK(values(strided_out) == values(y));
  }
}

TEST_CASE("map broadcasts inputs of smaller shape") {
  random_stream r{2};
  host_backend b{2};
  auto x = random_dense(dtype::f32, {5, 7, 70}, r), bias = random_dense(dtype::f32, {70}, r);
  auto column = random_dense(dtype::f32, {7, 1}, r), scalar = random_dense(dtype::f32, {}, r);
  owned y{dtype::f32, {5, 7, 70}};
  auto const xv = values(x), bv = values(bias), cv = values(column), sv = values(scalar);
  for (int which = 0; which < 3; ++which) {
    tensor_ref const second = which == 0 ? bias.ref : which == 1 ? column.ref : scalar.ref;
    map(b, add{}, y, x, second);
    std::vector<double> expected;
    for (std::size_t i = 0; i < xv.size(); ++i)
      expected.push_back(xv[i] + (which == 0 ? bv[i % 70] : which == 1 ? cv[i / 70 % 7] : sv[0]));
    CHECK(near(y, expected, 1e-6));
  }
  CHECK_THROWS_AS(map(b, add{}, y, x, random_dense(dtype::f32, {7}, r)), error);
}

TEST_CASE("map of mixed types, comparisons, several outputs") {
  random_stream r{3};
  host_backend b{2};
  for (dtype t : all_types)
    for (dtype u : all_types) {
      auto x = random_dense(t, {99}, r, 0, 100), y = random_dense(u, {99}, r, 0, 100);
      owned flag{dtype::boolean, {99}};
      map(b, less{}, flag, x, y);
      auto const xv = values(x), yv = values(y), fv = values(flag);
      for (std::size_t i = 0; i < 99; ++i) CHECK(fv[i] == (xv[i] < yv[i]));
      owned sum{dtype::f64, {99}};
      map(b, add{}, sum, x, y);
      std::vector<double> expected;
      for (std::size_t i = 0; i < 99; ++i) expected.push_back(xv[i] + yv[i]);
      CHECK(near(sum, expected, 1e-6));
      owned chosen{dtype::f64, {99}};
      where(b, chosen, flag, x, y);
      for (std::size_t i = 0; i < 99; ++i) CHECK(values(chosen)[i] == (fv[i] != 0 ? xv[i] : yv[i]));
    }
  std::int64_t big[2]{(std::int64_t{1} << 60) + 1, 2}, out[2];
  tensor_ref const i{big, dtype::i64, {2}, {1}}, o{out, dtype::i64, {2}, {1}};
  map(b, add{}, o, i, i);
  CHECK(out[0] == (std::int64_t{1} << 61) + 2);
  auto x = random_dense(dtype::f32, {1000}, r), y = random_dense(dtype::f32, {1000}, r);
  auto const xv = values(x), yv = values(y);
  map(b, both{}, std::array<tensor_ref, 2>{x, y}, x, y);
  std::vector<double> plus, minus;
  for (std::size_t k = 0; k < 1000; ++k) plus.push_back(xv[k] + yv[k]), minus.push_back(xv[k] - yv[k]);
  CHECK(near(x, plus, 1e-6));
  CHECK(near(y, minus, 1e-6));
}

TEST_CASE("cast between all types") {
  random_stream r{4};
  host_backend b{1};
  for (dtype t : all_types)
    for (dtype u : all_types) {
      auto x = random_view(t, {7, 45}, r, false, true, 0, 100);
      owned y{u, {7, 45}};
      cast(b, y, x);
      auto const xv = values(x), yv = values(y);
      for (std::size_t i = 0; i < xv.size(); ++i) {
        double expected = xv[i];
        if (u == dtype::boolean) expected = xv[i] != 0;
        else if (!is_floating(u)) expected = std::trunc(xv[i]);
        CHECK(yv[i] == doctest::Approx(expected).epsilon(tolerance(u) + 1e-12));
      }
    }
}
