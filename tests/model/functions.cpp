#include <neap/model/functions.hpp>

#include <neap/train/grad.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace neap;
using neap::testing::message_of;

namespace {
using v = std::vector<float>;
using ints = std::vector<int>;
constexpr float NaN = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

tensor of(v const& x) { return tensor::from(x, {static_cast<std::int64_t>(x.size())}); }
tensor of(std::vector<bool> const& x) { return tensor::from(x, {static_cast<std::int64_t>(x.size())}); }
tensor of(std::vector<std::int64_t> const& x) { return tensor::from(x, {static_cast<std::int64_t>(x.size())}); }

void told(int line, std::string const& what, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("functions.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}
/// The gradient of the sum of f(x) at x.
template <class F>
v slope(F const& f, tensor const& x) {
  tensor const leaf = x.with_gradient();
  return grad(sum(f(leaf)), {leaf})[0].template values<float>();
}
}  // namespace

TEST_CASE("comparisons of tensors and numbers") {
  tensor const x = of(v{1, 2, 4, NaN}), y = of(v{2, 2, 2, NaN});
  CHECK(greater(x, y).element() == dtype::boolean);
  CHECK(greater(x, y).values<int>() == ints{0, 0, 1, 0});
  CHECK(greater_equal(x, y).values<int>() == ints{0, 1, 1, 0});
  CHECK(less(x, y).values<int>() == ints{1, 0, 0, 0});
  CHECK(less_equal(x, y).values<int>() == ints{1, 1, 0, 0});
  CHECK(equal(x, y).values<int>() == ints{0, 1, 0, 0});
  CHECK(not_equal(x, y).values<int>() == ints{1, 0, 1, 1});
  CHECK(greater(x, 1.5).values<int>() == ints{0, 1, 1, 0});
  CHECK(greater(1.5, x).values<int>() == ints{1, 0, 0, 0});
  CHECK(less(cast(x, dtype::f64), 2).values<int>() == ints{1, 0, 0, 0});
  CHECK(equal(of(std::vector<std::int64_t>{1, 2}), 2).values<int>() == ints{0, 1});
  CHECK(equal(of(std::vector<bool>{true, false}), true).values<int>() == ints{1, 0});
  CHECK(greater(reshape(x, {4, 1}), y).shape() == shape{4, 4});
  CHECK(maximum(x, 1.5).values<float>()[0] == 1.5f);
  CHECK(minimum(3, x).values<float>()[2] == 3);
  CHECK(std::isnan(maximum(x, 1.5).values<float>()[3]));
  CHECK(where(greater(x, 1.5), x, 0).values<float>() == v{0, 2, 4, 0});
  CHECK(where(greater(x, 1.5), -1, x).values<float>()[1] == -1);
  CHECK(slope([](tensor const& t) { return where(greater(t, 1.5), t * 3, 0); }, x) == v{0, 3, 3, 0});
  CHECK(slope([](tensor const& t) { return maximum(t, 2); }, of(v{1, 3})) == v{0, 1});

  told(__LINE__, message_of([&] { equal(of(std::vector<std::int64_t>{1}), 0.5); }),
       "equal: 0.5 is no i64, but the tensor is i64[1]: cast it first");
  told(__LINE__, message_of([&] { less(cast(x, dtype::u8), 256); }), "less: 256 is no u8");
  told(__LINE__, message_of([&] { greater(1, 2); }), "greater: one of both must be a tensor");
  told(__LINE__, message_of([&] { greater(x, cast(y, dtype::f64)); }), "greater: element types differ");
  told(__LINE__, message_of([&] { greater(x, of(v{1, 2})); }), "greater: shapes do not broadcast, [4] and [2]");
  told(__LINE__, message_of([&] { greater(tensor(), 1); }), "empty");
  told(__LINE__, message_of([&] { where(x, x, 0); }), "where: the condition must be of booleans");
}

TEST_CASE("logical functions") {
  tensor const a = of(std::vector<bool>{false, false, true, true}), b = of(std::vector<bool>{false, true, false, true});
  CHECK(logical_and(a, b).values<int>() == ints{0, 0, 0, 1});
  CHECK(logical_or(a, b).values<int>() == ints{0, 1, 1, 1});
  CHECK(logical_xor(a, b).values<int>() == ints{0, 1, 1, 0});
  CHECK(logical_not(b).values<int>() == ints{1, 0, 1, 0});
  CHECK(logical_xor(a, b).element() == dtype::boolean);
  tensor const m = reshape(concat({a, b}), {2, 2, 2});
  CHECK(any(m, {1}).values<int>() == ints{1, 1, 0, 1});
  CHECK(all(m, {-1}).values<int>() == ints{0, 1, 0, 0});
  CHECK(any(m).values<int>() == ints{1});
  CHECK(all(m, {0, 2}, true).shape() == shape{1, 2, 1});
  CHECK(all(transpose(m), {1}).values<int>() == all(m, {2}).values<int>());
  tensor const none = tensor::zeros({3, 0}, dtype::boolean);
  CHECK(any(none, {1}).values<int>() == ints{0, 0, 0});
  CHECK(all(none, {1}).values<int>() == ints{1, 1, 1});
  tensor const floats = of(v{1, 2, 3, 4}), two = of(std::vector<bool>{true, true});
  told(__LINE__, message_of([&] { logical_and(a, floats); }),
       "logical_and: needs booleans, got f32[4]: compare it first");
  told(__LINE__, message_of([&] { logical_or(a, two); }), "logical_or: shapes do not broadcast, [4] and [2]");
  told(__LINE__, message_of([&] { any(of(v{1})); }), "any: needs booleans");
  told(__LINE__, message_of([&] { logical_not(of(v{1})); }), "logical_not: needs booleans");
}

TEST_CASE("bounds, signs and whole numbers") {
  tensor const x = of(v{-2.5f, -0.5f, 0, 0.5f, 1.5f, 2.5f, NaN, inf});
  auto const same = [](v const& a, v const& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK((a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])));
  };
  same(clamp(x, -1, 1).values<float>(), {-1, -0.5f, 0, 0.5f, 1, 1, NaN, 1});
  same(clamp(x, {.low = 0}).values<float>(), {0, 0, 0, 0.5f, 1.5f, 2.5f, NaN, inf});
  same(clamp(x, {.high = 0}).values<float>(), {-2.5f, -0.5f, 0, 0, 0, 0, NaN, 0});
  same(sign(x).values<float>(), {-1, -1, 0, 1, 1, 1, NaN, 1});
  same(floor(x).values<float>(), {-3, -1, 0, 0, 1, 2, NaN, inf});
  same(ceil(x).values<float>(), {-2, 0, 0, 1, 2, 3, NaN, inf});
  same(round(x).values<float>(), {-2, 0, 0, 0, 2, 2, NaN, inf});
  same(slope([](tensor const& t) { return clamp(t, -1, 1); }, x), {0, 1, 1, 1, 0, 0, 0, 0});
  same(slope([](tensor const& t) { return sign(t) + floor(t) + ceil(t) + round(t); }, of(v{-0.25f, 3})), {0, 0});
  // beyond what a fraction is left of, and just below it, in both types
  for (double big : {8388607.5, 8388609.0, 4503599627370495.5, 1e300, 0.49999999999999994}) {
    CHECK(floor(tensor::full({}, big, dtype::f64)).item<double>() == std::floor(big));
    CHECK(round(tensor::full({}, -big, dtype::f64)).item<double>() == std::nearbyint(-big));
    float const less = static_cast<float>(std::min(big, 1e30));
    CHECK(floor(tensor::full({}, -less)).item<float>() == std::floor(-less));
    CHECK(round(tensor::full({}, less)).item<float>() == std::nearbyint(less));
  }
  for (double big : {1.0, 1e5, 1e15}) {
    CHECK(sin(tensor::full({}, big, dtype::f64)).item<double>() == std::sin(big));
    CHECK(cos(tensor::full({}, big)).item<float>() == std::cos(static_cast<float>(big)));
  }
}

TEST_CASE("variance and standard deviation") {
  tensor const x = tensor::randn({4, 5, 6}, 3, dtype::f64);
  auto const values = x.values<double>();
  for (std::int64_t correction : {0, 1}) {
    auto const got = var(x, {0, -1}, {.correction = correction}).values<double>(),
               root = stddev(x, {2, 0}, {correction}).values<double>();
    for (std::size_t j = 0; j < 5; ++j) {
      double mean = 0, squares = 0;
      for (std::size_t i = 0; i < 24; ++i) mean += values[i / 6 * 30 + j * 6 + i % 6] / 24;
      for (std::size_t i = 0; i < 24; ++i) squares += std::pow(values[i / 6 * 30 + j * 6 + i % 6] - mean, 2);
      CHECK(got[j] == doctest::Approx(squares / static_cast<double>(24 - correction)));
      CHECK(root[j] == doctest::Approx(std::sqrt(got[j])));
    }
  }
  CHECK(var(x).shape() == shape{});
  CHECK(var(x, {1}, {.keepdim = true}).shape() == shape{4, 1, 6});
  auto const turned = var(transpose(x), {1}).values<double>(), straight = var(x, {2}).values<double>();
  for (std::size_t i = 0; i < straight.size(); ++i) CHECK(turned[i] == doctest::Approx(straight[i]));
  // a small spread around a large mean keeps its digits, where the mean of squares would have none
  CHECK(var(of(v{4096, 4097, 4098, 4099})).item<float>() == doctest::Approx(5.0 / 3));
  CHECK(var(of(v{1e6f, 1e6f + 1, 1e6f + 2}), {}, {.correction = 0}).item<float>() == doctest::Approx(2.0 / 3));
  CHECK(std::isnan(var(of(v{3})).item<float>()));
  CHECK(var(of(v{3}), {}, {.correction = 0}).item<float>() == 0);
  CHECK(std::isnan(var(tensor::zeros({0})).item<float>()));
  CHECK(std::isnan(stddev(of(v{1, NaN})).item<float>()));

  tensor const leaf = x.with_gradient();
  auto const g = grad(sum(stddev(leaf, {1})), {leaf})[0].values<double>();
  for (std::size_t i : {0u, 17u, 119u}) {
    auto const moved = [&](double h) {
      auto copy = values;
      copy[i] += h;
      return sum(stddev(tensor::from(copy, {4, 5, 6}), {1})).item<double>();
    };
    CHECK(g[i] == doctest::Approx((moved(1e-5) - moved(-1e-5)) / 2e-5));
  }
  CHECK(slope([](tensor const& t) { return stddev(t); }, of(v{2, 2, 2})) == v{0, 0, 0});
  CHECK(stddev(of(v{2, 2, 2})).item<float>() == 0);
  told(__LINE__, message_of([&] { var(x, {3}); }), "var: no axis 3 in f64[4,5,6]");
}

TEST_CASE("tensors stacked along a new axis") {
  tensor const a = tensor::from({0, 1, 2, 3, 4, 5}, {2, 3}), b = tensor::from({6, 7, 8, 9, 10, 11}, {2, 3});
  CHECK(stack({a, b}).values<int>() == ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(stack({a, b}, 1).values<int>() == ints{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11});
  for (std::int64_t axis : {2, -1})
    CHECK(stack({a, b}, axis).values<int>() == ints{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11});
  CHECK(stack({a, b}, -3).shape() == shape{2, 2, 3});
  CHECK(stack({transpose(a), transpose(b)}, 1).values<int>() == ints{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  CHECK(stack({sum(a), sum(b)}).values<int>() == ints{15, 51});
  CHECK(stack({a}).shape() == shape{1, 2, 3});
  CHECK(stack({tensor::zeros({0, 2}), tensor::zeros({0, 2})}, 1).shape() == shape{0, 2, 2});
  for (std::int64_t axis : {0, 1, 2})
    CHECK(slope([&](tensor const& t) { return stack({t, t * 2, t}, axis) * 3; }, tensor::ones({2, 2})) == v(4, 12));
  told(__LINE__, message_of([&] { stack({a, transpose(b)}); }), "stack: shapes differ, [2,3] and [3,2]");
  told(__LINE__, message_of([&] { stack({a, b}, 3); }), "stack: no place 3 for a new axis in i32[2,3]");
  told(__LINE__, message_of([&] { stack({}); }), "stack: needs at least one tensor");
  told(__LINE__, message_of([&] { stack({a, tensor()}); }), "empty");
}

TEST_CASE("places by number and in order") {
  tensor const ids = of(std::vector<std::int64_t>{2, 0, 2});
  CHECK(one_hot(ids, 3).values<float>() == v{0, 0, 1, 1, 0, 0, 0, 0, 1});
  CHECK(one_hot(ids, 3, dtype::boolean).element() == dtype::boolean);
  CHECK(one_hot(transpose(stack({ids, ids}, 1)), 3).shape() == shape{2, 3, 3});
  tensor const m = tensor::from({0.f, 1.f, 2.f, 3.f, 4.f, 5.f}, {3, 2});
  CHECK(index_select(m, ids).values<float>() == v{4, 5, 0, 1, 4, 5});
  CHECK(index_select(transpose(m), ids, -1).values<float>() == v{4, 0, 4, 5, 1, 5});
  CHECK(index_add(m, ids, tensor::ones({3, 2})).values<float>() == v{1, 2, 2, 3, 6, 7});
  CHECK(slope([&](tensor const& t) { return index_select(t, ids) * index_select(m, ids); }, m) == v{0, 1, 0, 0, 8, 10});
  told(__LINE__, message_of([&] { one_hot(ids, 2); }), "one_hot: id 2 at place 0 is not a class below 2");
  told(__LINE__, message_of([&] { index_select(m, ids, 1); }), "index_select: number 2 at place 0 is not below 2");

  tensor const x = tensor::from({3.f, NaN, 1.f, 3.f, -0.f, 0.f, -inf, 7.f}, {2, 4});
  auto const best = topk(x, 2);
  CHECK(best.places.element() == dtype::i64);
  CHECK(best.places.values<int>() == ints{1, 0, 3, 0});
  CHECK(std::isnan(best.values.values<float>()[0]));
  CHECK(topk(x, 3, {.largest = false}).places.values<int>() == ints{2, 0, 3, 2, 0, 1});
  CHECK(topk(x, 1, {.axis = 0}).values.shape() == shape{1, 4});
  CHECK(sort(x).places.values<int>() == ints{2, 0, 3, 1, 2, 0, 1, 3});
  CHECK(arg_sort(x, 1, true).values<int>() == ints{1, 0, 3, 2, 3, 0, 1, 2});
  CHECK(std::signbit(sort(x).values.values<float>()[5]));  // elements are moved, not computed
  CHECK(sort(transpose(x), 0).places.values<int>() == ints{2, 2, 0, 0, 3, 1, 1, 3});
  CHECK(slope([](tensor const& t) { return topk(t, 2).values * of(v{10, 1}); }, of(v{1, 5, 3})) == v{0, 10, 1});
  told(__LINE__, message_of([&] { topk(x, 5); }), "topk: axis 1 of f32[2,4] has no 5 elements");
  told(__LINE__, message_of([&] { sort(x, 2); }), "sort: no axis 2 in f32[2,4]");
}

TEST_CASE("running sums and triangles") {
  tensor const m = tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(cumsum(m).values<int>() == ints{1, 3, 6, 4, 9, 15});
  CHECK(cumsum(m, 0).values<int>() == ints{1, 2, 3, 5, 7, 9});
  CHECK(cumsum(m, -1, true).values<int>() == ints{6, 5, 3, 15, 11, 6});
  CHECK(cumsum(transpose(m), 0).values<int>() == ints{1, 4, 3, 9, 6, 15});
  CHECK(cumsum(greater(m, 2)).element() == dtype::i64);
  // a million steps of 0.1: added in f32 they would be off by hundreds
  CHECK(select(cumsum(tensor::full({1000000}, 0.1)), 0, -1).item<float>() == doctest::Approx(100000.0).epsilon(1e-6));
  CHECK(slope([](tensor const& t) { return cumsum(t); }, of(v{1, 1, 1})) == v{3, 2, 1});
  CHECK(tril(m).values<int>() == ints{1, 0, 0, 4, 5, 0});
  CHECK(tril(m, 1).values<int>() == ints{1, 2, 0, 4, 5, 6});
  CHECK(triu(m).values<int>() == ints{1, 2, 3, 0, 5, 6});
  CHECK(triu(m, -1).values<int>() == ints{1, 2, 3, 4, 5, 6});
  CHECK(triu(transpose(m), 1).values<int>() == ints{0, 4, 0, 0, 0, 0});
  CHECK(tril(tensor::from({1.f, NaN, 2.f, 3.f}, {2, 2})).values<float>() == v{1, 0, 2, 3});
  CHECK(slope([](tensor const& t) { return tril(t) * 2; }, tensor::ones({2, 2})) == v{2, 0, 2, 2});
  told(__LINE__, message_of([&] { cumsum(m, 2); }), "cumsum: no axis 2 in i32[2,3]");
  told(__LINE__, message_of([&] { tril(of(v{1})); }), "tril: x needs at least 2 axes");
}

TEST_CASE("losses of single elements") {
  tensor const x = of(v{50, -50, 200, -200, 0}), t = of(v{1, 0, 0, 1, 0.5f});
  auto const each = binary_cross_entropy_with_logits_loss(x, t, loss_reduction::none).values<float>();
  CHECK(each[0] == doctest::Approx(std::exp(-50)).epsilon(1e-5));  // not lost beside 50
  CHECK(each[1] == doctest::Approx(std::exp(-50)).epsilon(1e-5));
  CHECK(each[2] == 200);
  CHECK(each[3] == 200);
  CHECK(each[4] == doctest::Approx(std::log(2)));
  CHECK(binary_cross_entropy_with_logits_loss(x, t).item<float>() == doctest::Approx((400 + std::log(2)) / 5));
  CHECK(binary_cross_entropy_with_logits_loss(x, t, loss_reduction::sum).item<float>() ==
        doctest::Approx(400 + std::log(2)));
  // labels may be booleans and whole numbers
  tensor const labels = of(std::vector<bool>{true, false, true, false, true});
  CHECK(binary_cross_entropy_with_logits_loss(x, labels).item<float>() ==
        binary_cross_entropy_with_logits_loss(x, cast(labels, dtype::i64)).item<float>());
  auto const slopes =
      slope([&](tensor const& l) { return binary_cross_entropy_with_logits_loss(l, t, loss_reduction::sum); }, x);
  CHECK(slopes[1] == doctest::Approx(std::exp(-50)).epsilon(1e-5));
  CHECK(v{slopes[0], slopes[2], slopes[3], slopes[4]} == v{0, 1, -1, 0});

  tensor const p = of(v{0, 1, 1, 0, 1e-9f, 2}), hard = of(v{0, 1, 0, 1, 0, 1});
  auto const of_p = binary_cross_entropy_loss(p, hard, loss_reduction::none).values<float>();
  CHECK(of_p[0] == 0);
  CHECK(of_p[1] == 0);
  CHECK(of_p[2] == 100);
  CHECK(of_p[3] == 100);
  CHECK(of_p[4] == doctest::Approx(1e-9));
  CHECK(std::isnan(of_p[5]));
  for (float g :
       slope([&](tensor const& q) { return binary_cross_entropy_loss(q, slice(hard, 0, 0, 5)); }, slice(p, 0, 0, 5)))
    CHECK(std::isfinite(g));

  tensor const a = of(v{0, 0, 0, 0}), b = of(v{0.5f, -1, 3, -3});
  CHECK(huber_loss(a, b, 1, loss_reduction::none).values<float>() == v{0.125f, 0.5f, 2.5f, 2.5f});
  CHECK(huber_loss(a, b).item<float>() == doctest::Approx(5.625 / 4));
  CHECK(smooth_l1_loss(a, b, 2, loss_reduction::none).values<float>() == v{0.0625f, 0.25f, 2, 2});
  CHECK(smooth_l1_loss(a, b, 0, loss_reduction::none).values<float>() == v{0.5f, 1, 3, 3});
  CHECK(slope([&](tensor const& y) { return huber_loss(a, y, 2, loss_reduction::sum); }, b) == v{0.5f, -1, 2, -2});
  tensor const column = reshape(b, {4, 1});
  CHECK(std::isnan(huber_loss(tensor::zeros({0}), tensor::zeros({0})).item<float>()));
  CHECK(std::isnan(huber_loss(of(v{NaN}), of(v{0})).item<float>()));
  told(__LINE__, message_of([&] { huber_loss(a, column); }), "huber: types differ, f32[4] and f32[4,1]");
  told(__LINE__, message_of([&] { smooth_l1_loss(a, column, 0); }), "smooth_l1: shapes differ, [4] and [4,1]");
  told(__LINE__, message_of([&] { binary_cross_entropy_with_logits_loss(x, of(v{1})); }),
       "binary_cross_entropy_with_logits: types differ");

  tensor const logits = tensor::randn({3, 4}, 1), classes = of(std::vector<std::int64_t>{1, 0, 3});
  auto const smooth = cross_entropy_loss(logits, classes, -100, 0.2).item<float>();
  tensor const target = one_hot(classes, 4) * 0.8 + 0.05;
  CHECK(smooth == doctest::Approx(-sum(target * log_softmax(logits)).item<float>() / 3));
  CHECK(cross_entropy_loss(logits, classes, -100, 0).item<float>() ==
        cross_entropy_loss(logits, classes).item<float>());
}

TEST_CASE("a linear map of one row without a batch") {
  tensor const x = tensor::randn({4, 3}, 1), w = tensor::randn({2, 3}, 2), b = tensor::randn({2}, 3);
  for (tensor const& bias : {b, tensor()}) {
    tensor const all = linear(x, w, bias), one = linear(select(x, 0, 2), w, bias);
    CHECK(one.shape() == shape{2});
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(one.values<double>()[i] == doctest::Approx(select(all, 0, 2).values<double>()[i]));
  }
  CHECK(message_of([&] { linear(tensor::ones({4}), w, b); }).find("inner extents differ") != std::string::npos);
}
