// Functions that are made of others: einsum, norms, products, three-dimensional convolutions, masks. Each beside plain loops
// over the elements, and its gradients beside difference quotients.
#include <neap/model/model.hpp>

#include <neap/core/philox.hpp>
#include <neap/train/grad.hpp>
#include <neap/train/loss.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

using namespace neap;
using neap::testing::message_of;

namespace {
using d = std::vector<double>;
using ints = std::vector<int>;
constexpr double inf = std::numeric_limits<double>::infinity();

d values_of(tensor const& x) { return x.values<double>(); }
tensor random(shape const& s, std::uint64_t seed, dtype t = dtype::f64) { return tensor::randn(s, seed, t); }
tensor mask_of(shape const& s, std::uint64_t seed) { return greater(tensor::randn(s, seed), 0); }

void told(int line, std::string const& what, std::string_view text) {
  CAPTURE(what);
  bool near = false;  // a call may go over some lines
  for (int more = 0; more < 4; ++more)
    near = near || what.starts_with("more_functions.cpp:" + std::to_string(line + more) + ": ");
  CHECK(near);
  CHECK(what.find(text) != std::string::npos);
  CHECK(what.find('\n') == std::string::npos);
}
void same(d const& a, d const& b, double tolerance = 1e-12) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK((a[i] == b[i] || a[i] == doctest::Approx(b[i]).epsilon(tolerance).scale(1)));
}
/// The gradients of a weighted sum of f(in...) against difference quotients, and in f32 beside f64's; then those of a
/// function of the gradients (in a trace), if `twice`.
template <class F>
void check_gradients(F const& f, std::vector<tensor> in) {
  tensor const y = f(in);
  tensor const weights = y.rank() ? random(y.shape(), 99) : tensor::ones({}, dtype::f64);
  auto const loss = [&](std::vector<tensor> const& x) { return sum(f(x) * cast(weights, x[0].element())); };
  std::vector<tensor> leaves, floats;
  for (auto const& x : in) leaves.push_back(x.with_gradient()), floats.push_back(cast(x, dtype::f32).with_gradient());
  auto const g = grad(loss(leaves), leaves), g32 = grad(loss(floats), floats);
  CHECK(f(floats).element() == dtype::f32);
  for (std::size_t k = 0; k < in.size(); ++k) {
    CAPTURE(k);
    REQUIRE(g[k].type() == in[k].type());
    auto const gk = values_of(g[k]), near = values_of(g32[k]);
    auto* const x = contiguous(in[k]).data<double>();
    if (x != in[k].data<double>()) continue;
    for (std::size_t i = 0; i < gk.size(); ++i) {
      double const before = x[i], h = 1e-5;
      x[i] = before + h;
      double const up = loss(in).template item<double>();
      x[i] = before - h;
      double const down = loss(in).template item<double>();
      x[i] = before;
      CHECK(gk[i] == doctest::Approx((up - down) / (2 * h)).epsilon(1e-5).scale(1));
      CHECK(near[i] == doctest::Approx(gk[i]).epsilon(1e-3).scale(1));
    }
  }
}
/// What f gives of copies whose axes lie in another order in memory.
template <class F>
void check_views(F const& f, std::vector<tensor> const& in) {
  std::vector<tensor> views;
  for (auto const& x : in) {
    extents back;
    for (int k = x.rank(); k-- > 0;) back.push_back(k);
    views.push_back(permute(contiguous(permute(x, back)), back));
  }
  same(f(in).template values<double>(), f(views).template values<double>());
}

/// einsum by loops over all labels.
d plain_einsum(std::string const& left, std::string const& right, std::vector<tensor> const& in) {
  std::map<char, std::int64_t> size;
  std::vector<std::string> labels(1);
  for (char c : left)
    if (c == ',') labels.emplace_back();
    else labels.back() += c;
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t k = 0; k < labels[i].size(); ++k) {
      auto const n = in[i].size(static_cast<std::int64_t>(k));
      if (!size.contains(labels[i][k]) || n > 1) size[labels[i][k]] = n;
    }
  std::string order = right;
  for (auto const& [c, n] : size)
    if (right.find(c) == right.npos) order += c;
  std::int64_t results = 1, all = 1;
  for (char c : right) results *= size[c];
  for (char c : order) all *= size[c];
  d out(static_cast<std::size_t>(results));
  std::vector<d> values;
  for (auto const& x : in) values.push_back(x.values<double>());
  for (std::int64_t n = 0; n < all; ++n) {
    std::map<char, std::int64_t> at;
    auto rest = n;
    for (std::size_t k = order.size(); k-- > 0;) at[order[k]] = rest % size[order[k]], rest /= size[order[k]];
    double product = 1;
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::int64_t place = 0;
      for (std::size_t k = 0; k < labels[i].size(); ++k) {
        auto const extent = in[i].size(static_cast<std::int64_t>(k));
        place = place * extent + (extent == 1 ? 0 : at[labels[i][k]]);
      }
      product *= values[i][static_cast<std::size_t>(place)];
    }
    std::int64_t to = 0;
    for (char c : right) to = to * size[c] + at[c];
    out[static_cast<std::size_t>(to)] += product;
  }
  return out;
}
}  // namespace

TEST_CASE("einsum: random equations beside loops, their gradients beside quotients") {
  random_stream draw(3, 1);
  for (int trial = 0; trial < 150; ++trial) {
    std::string const letters = "abcdeF";
    std::map<char, std::int64_t> size, seen;
    for (char c : letters) size[c] = 1 + draw.below(3);
    auto const operands = 1 + draw.below(3);
    std::string left, used;
    std::vector<tensor> in;
    for (std::uint32_t i = 0; i < operands; ++i) {
      shape s;
      std::string own;
      for (auto rank = draw.below(5); rank > 0; --rank) own += letters[draw.below(6)];
      for (char c : own) {  // an extent of 1 stretches, but on a diagonal
        bool const stretches = std::count(own.begin(), own.end(), c) == 1 && draw.below(6) == 0;
        s.push_back(stretches ? 1 : size[c]);
        seen[c] = std::max(seen[c], s[s.rank() - 1]);
      }
      used += own;
      left += (i ? "," : "") + own;
      in.push_back(random(s, static_cast<std::uint64_t>(trial * 10) + i));
    }
    std::string right;
    for (char c : letters)
      if (used.find(c) != used.npos && draw.below(2))
        right.insert(draw.below(static_cast<std::uint32_t>(right.size() + 1)), 1, c);
    CAPTURE(left);
    CAPTURE(right);
    auto const f = [&](std::vector<tensor> const& x) { return einsum(left + " -> " + right, x); };
    same(f(in).values<double>(), plain_einsum(left, right, in), 1e-10);
    shape dims;
    for (char c : right) dims.push_back(seen[c]);
    CHECK(f(in).shape() == dims);
    check_views(f, in);
    if (trial % 5 == 0) check_gradients(f, in);
  }
}

TEST_CASE("einsum: known equations") {
  tensor const a = random({2, 3, 4}, 1), b = random({2, 4, 5}, 2), m = random({4, 4}, 3), v = random({4}, 4),
               w = random({3}, 5);
  auto const equal_to = [](tensor const& x, tensor const& y) {
    CHECK(x.shape() == y.shape());
    same(x.values<double>(), y.values<double>(), 1e-10);
  };
  equal_to(einsum("bij,bjk->bik", {a, b}), matmul(a, b));
  equal_to(einsum("bij,bjk", {a, b}), sum(matmul(a, b), {0}));  // b and j stand twice
  equal_to(einsum("...ij,...jk->...ik", a, b), matmul(a, b));
  equal_to(einsum("bij->bji", a), permute(a, {0, 2, 1}));
  equal_to(einsum("bij,bjk,b->bik", a, b, tensor::ones({a.size(0)}, dtype::f64)), matmul(a, b));
  equal_to(einsum("...ij, jk", {a, m}), matmul(a, m));
  equal_to(einsum("ba", {m}), transpose(m));  // the alphabet's order
  equal_to(einsum("i,j", {v, w}), reshape(v, {4, 1}) * w);
  equal_to(einsum("ii", {m}), sum(m * eye(4, 4, dtype::f64)));
  equal_to(einsum("ii->i", {m}), sum(m * eye(4, 4, dtype::f64), {0}));
  equal_to(einsum("...i->...", {a}), sum(a, {-1}));
  equal_to(einsum("i,i->", {v, v}), sum(v * v));
  equal_to(einsum("bhqd,bhkd->bhqk", {random({2, 3, 4, 5}, 6), random({2, 3, 6, 5}, 7)}),
           matmul(random({2, 3, 4, 5}, 6), random({2, 3, 6, 5}, 7), {.transpose_b = true}));
  equal_to(einsum("ij,ij->ij", {m, random({1, 4}, 8)}), m * random({1, 4}, 8));  // 1 stretches
  equal_to(einsum("ij,jk->ik", {m, random({1, 3}, 8)}), sum(m, {1}, true) * random({1, 3}, 8));
  equal_to(einsum("...,...", {a, random({4}, 9)}), a * random({4}, 9));
  CHECK(einsum("i,i->", {tensor::from<std::int64_t>({1, 2, 3}, {3}), tensor::from<std::int64_t>({4, 5, 6}, {3})})
            .item<int>() == 32);
  told(__LINE__, message_of([&] { einsum("ij,jk->ik", {m}); }),
       "2 operands in the equation, and 1 tensors, in \"ij,jk->ik\"");
  told(__LINE__, message_of([&] {
         einsum("ij,jk->ik", {m, w});
       }),
       "operand 1 has 1 axes, f64[3], and the equation names 2");
  told(__LINE__, message_of([&] { einsum("ij,jk->ik", {m, random({3, 4}, 1)}); }), "axis j is 4 and, in operand 1, 3");
  told(__LINE__, message_of([&] { einsum("ij->ik", {m}); }), "no operand has the result's axis k");
  told(__LINE__, message_of([&] { einsum("ij->ii", {m}); }), "the result has axis i twice");
  told(__LINE__, message_of([&] { einsum("i1", {m}); }), "axes are letters or ..., not '1'");
  told(__LINE__, message_of([&] { einsum("i.j", {m}); }), "not '.'");
  told(__LINE__, message_of([&] { einsum("ij->i->j", {m}); }), "not '-'");
  told(__LINE__, message_of([&] { einsum("ii", {random({3, 4}, 1)}); }), "in operand 0, 4");
  told(__LINE__, message_of([&] { einsum("ij,j", {m, tensor::ones({4})}); }), "element types differ");
  told(__LINE__, message_of([&] { einsum("", {}); }), "no operands");
  told(__LINE__, message_of([&] { einsum("i", {tensor()}); }), "empty");
}

TEST_CASE("one axis is a number") {
  tensor const x = random({3, 4, 5}, 1);
  auto const equal_to = [](tensor const& a, tensor const& b) {
    CHECK(a.shape() == b.shape());
    CHECK(a.values<double>() == b.values<double>());
  };
  equal_to(sum(x, 1), sum(x, {1}));
  equal_to(mean(x, -1, true), mean(x, {-1}, true));
  equal_to(max(x, 0), max(x, {0}));
  equal_to(min(x, std::size_t{2}), min(x, {2}));
  equal_to(var(x, 1), var(x, {1}));
  equal_to(stddev(x, 1, {.correction = 0}), stddev(x, {1}, {.correction = 0}));
  equal_to(logsumexp(x, 1), logsumexp(x, {1}));
  equal_to(norm(x, 2, 1), norm(x, 2, {1}));
  equal_to(prod(x, 1), prod(x, {1}));
  equal_to(flip(x, 1), flip(x, {1}));
  equal_to(roll(x, 1, 0), roll(x, {1}, {0}));
  equal_to(roll(x, 2), roll(x, {2}));
  equal_to(sum(x, extents{0, 2}), sum(x, {0, 2}));
  equal_to(sum(x, {}, true), reshape(sum(x), {1, 1, 1}));
  static_assert(!std::is_convertible_v<double, axis_list>);
}
TEST_CASE("logsumexp, norms, products, similarity") {
  tensor const x = random({3, 1, 4}, 1), y = random({3, 1, 4}, 2);
  for (auto const& axes : {extents{}, extents{0}, extents{-1, 0}, extents{1}})
    for (bool keep : {false, true}) {
      CAPTURE(axes.rank());
      tensor const direct = log(sum(exp(x), axes, keep));
      CHECK(logsumexp(x, axes, keep).shape() == direct.shape());
      same(logsumexp(x, axes, keep).values<double>(), direct.values<double>(), 1e-10);
      check_gradients([&](auto const& in) { return logsumexp(in[0], axes, keep); }, {random({3, 1, 4}, 1)});
      for (double p : {0.5, 1., 2., 3., -1., -2.}) {
        tensor const plain = pow(sum(pow(abs(x), p), axes, keep), 1 / p);
        CHECK(norm(x, p, axes, keep).shape() == plain.shape());
        same(norm(x, p, axes, keep).values<double>(), plain.values<double>(), 1e-10);
        check_gradients([&](auto const& in) { return norm(in[0], p, axes, keep); }, {random({3, 1, 4}, 1)});
      }
      same(norm(x, inf, axes, keep).values<double>(), max(abs(x), axes, keep).values<double>());
      same(norm(x, -inf, axes, keep).values<double>(), min(abs(x), axes, keep).values<double>());
      same(prod(abs(x), axes, keep).values<double>(), exp(sum(log(abs(x)), axes, keep)).values<double>(), 1e-10);
      CHECK(prod(x, axes, keep).shape() == direct.shape());
      check_gradients([&](auto const& in) { return prod(in[0], axes, keep); }, {random({3, 1, 4}, 1)});
    }
  // far out, and where there is nothing
  same(logsumexp(tensor::from<double>({1000, 1000, -inf, -inf, inf, 1}, {3, 2}), {1}).values<double>(),
       {1000 + std::log(2.), -inf, inf});
  CHECK(logsumexp(tensor::zeros({2, 0}), {1}).values<double>() == d{-inf, -inf});
  tensor const zeros = tensor::zeros({2, 3}, dtype::f64).with_gradient();
  for (double p : {0.5, 1., 2., 3., 0., inf}) {
    auto const g = grad(sum(norm(zeros, p, {1})), {zeros}).front().values<double>();
    CHECK(norm(zeros, p, {1}).values<double>() == d{0, 0});
    if (p != inf) CHECK(g == d(6, 0.));
    for (double e : g) CHECK(std::isfinite(e));
  }
  CHECK(norm(tensor::from<double>({0, 3, -4, 0}, {4}), 0).item<double>() == 2);
  CHECK(norm(tensor::from<double>({3, 0}, {2}), -1).item<double>() == 0);

  tensor const hole = tensor::from<double>({2, 0, 5, 3, 4, 1, 1}, {7}).with_gradient();
  CHECK(grad(prod(hole), {hole}).front().values<double>() == d{0, 120, 0, 0, 0, 0, 0});
  CHECK(prod(tensor::zeros({2, 0, 3}), {1}).values<double>() == d(6, 1.));
  CHECK(prod(tensor::from<std::int32_t>({2, 3, 4}, {3})).element() == dtype::i64);
  CHECK(prod(tensor::from<std::int32_t>({2, 3, 4}, {3})).item<int>() == 24);
  CHECK(prod(tensor::from(std::vector<bool>{true, false}, {2})).item<int>() == 0);

  for (std::int64_t axis : {0, 2, -1}) {
    check_gradients([&](auto const& in) { return cosine_similarity(in[0], in[1], axis); },
                    {random({3, 1, 4}, 1), random({3, 1, 4}, 2)});
    same(cosine_similarity(x, y, axis).values<double>(),
         (sum(x * y, {axis}) / (norm(x, 2, {axis}) * norm(y, 2, {axis}))).values<double>(), 1e-10);
  }
  same(cosine_similarity(random({3, 4}, 1), random({4}, 2)).values<double>(),
       cosine_similarity(random({3, 4}, 1), broadcast_to(random({4}, 2), {3, 4})).values<double>(), 1e-10);
  tensor const none = tensor::zeros({1, 3}, dtype::f64).with_gradient(), ones = tensor::ones({1, 3}, dtype::f64);
  CHECK(cosine_similarity(none, ones).values<double>() == d{0});
  for (double g : grad(sum(cosine_similarity(none, ones)), {none}).front().values<double>()) CHECK(std::isfinite(g));
  CHECK(cosine_similarity(tensor::ones({1, 3}, dtype::f16), tensor::ones({1, 3}, dtype::f16)).values<double>()[0] ==
        doctest::Approx(1).epsilon(1e-3));

  told(__LINE__, message_of([&] { norm(tensor::ones({2}, dtype::i64)); }), "norm: needs a floating type, got i64[2]");
  told(__LINE__, message_of([&] { prod(x, {0, -3}); }), "prod: axis -3 is named twice");
  told(__LINE__, message_of([&] { prod(x, {3}); }), "prod: no axis 3");
  told(__LINE__, message_of([&] { cosine_similarity(x, y, 3); }), "cosine_similarity: no axis 3");
  told(__LINE__, message_of([&] { logsumexp(x, {7}); }), "logsumexp: no axis 7");
  told(__LINE__, message_of([&] { norm(x, 2, {7}); }), "norm: no axis 7");
  told(__LINE__, message_of([&] { norm(x, INFINITY, {-8}); }), "norm: no axis -8");
  told(__LINE__, message_of([&] { stddev(x, {7}); }), "stddev: no axis 7");
  told(__LINE__, message_of([&] {
         cosine_similarity(tensor::ones({2, 3}), tensor::ones({2, 4}));
       }),
       "cosine_similarity: shapes do not broadcast, [2,3] and [2,4]");
  told(__LINE__, message_of([&] {
         linear(tensor::ones({2, 3}), tensor::ones({4, 3}), tensor::ones({5}));
       }),
       "linear: result and bias: shapes do not broadcast, [2,4] and [5]");
  told(__LINE__, message_of([&] { smooth_l1_loss(tensor::ones({2}), tensor::ones({3})); }), "smooth_l1: shapes differ");
}

TEST_CASE("flip and roll, arange and eye, masked_fill") {
  tensor const x = cast(arange(6), dtype::f64), m = reshape(x, {2, 3});
  CHECK(flip(m).values<int>() == ints{5, 4, 3, 2, 1, 0});
  CHECK(flip(m, {0}).values<int>() == ints{3, 4, 5, 0, 1, 2});
  CHECK(flip(m, {-1}).values<int>() == ints{2, 1, 0, 5, 4, 3});
  CHECK(flip(arange(3)).values<int>() == ints{2, 1, 0});
  check_gradients([](auto const& in) { return flip(in[0], {1}); }, {random({2, 3, 2}, 1)});
  CHECK(roll(m, {1}).values<int>() == ints{5, 0, 1, 2, 3, 4});
  CHECK(roll(m, {-1}, {1}).values<int>() == ints{1, 2, 0, 4, 5, 3});
  CHECK(roll(m, {4, 1}, {-1, 0}).values<int>() == ints{5, 3, 4, 2, 0, 1});
  CHECK(roll(m, {3}, {1}).values<int>() == m.values<int>());
  CHECK(roll(tensor::zeros({0, 2}), {1}, {0}).shape() == shape{0, 2});
  check_gradients([](auto const& in) { return roll(in[0], {2, -1}, {0, 1}); }, {random({3, 4}, 1)});
  told(__LINE__, message_of([&] { flip(m, {0, 0}); }), "flip: axis 0 is named twice");
  told(__LINE__, message_of([&] { flip(m, {2}); }), "flip: no axis 2");
  told(__LINE__, message_of([&] { roll(m, {1, 2}, {0}); }), "roll: takes as many shifts as axes");
  told(__LINE__, message_of([&] { roll(m, {1, 2}); }), "roll: takes as many shifts as axes");

  CHECK(arange(4).element() == dtype::i64);
  CHECK(arange(2, 9, 3).values<int>() == ints{2, 5, 8});
  CHECK(arange(3, 0, -1).values<int>() == ints{3, 2, 1});
  CHECK(arange(0).shape() == shape{0});
  CHECK(arange(1, 2.5, 0.5, dtype::f32).values<double>() == d{1, 1.5, 2});
  CHECK(arange(0, 1, 0.1, dtype::f64).size(0) == 10);
  CHECK(arange(3, dtype::f32).element() == dtype::f32);
  told(__LINE__, message_of([&] { arange(0, 1, -1); }), "arange: the step must lead from start to stop");
  told(__LINE__, message_of([&] { arange(0, 1, 0); }), "arange: the step must lead");
  told(__LINE__, message_of([&] { arange(0, 1, 0.5); }), "name a floating type");

  CHECK(eye(2, 3).values<int>() == ints{1, 0, 0, 0, 1, 0});
  CHECK(eye(2, -1, dtype::i64).values<int>() == ints{1, 0, 0, 1});
  CHECK(eye(3, 1).values<int>() == ints{1, 0, 0});
  CHECK(eye(0).shape() == shape{0, 0});
  CHECK(eye(2, 2, dtype::boolean).values<int>() == ints{1, 0, 0, 1});

  tensor const mask = tensor::from(std::vector<bool>{true, false, true}, {3});
  CHECK(masked_fill(m, mask, -1).values<int>() == ints{-1, 1, -1, -1, 4, -1});
  CHECK(masked_fill(arange(3), mask, 7).values<int>() == ints{7, 1, 7});
  CHECK(masked_fill(x, greater(x, 2), -inf).values<double>()[5] == -inf);
  check_gradients([&](auto const& in) { return masked_fill(in[0], mask, 3); }, {random({2, 3}, 1)});
  told(__LINE__, message_of([&] { masked_fill(x, x, 0); }), "masked_fill: needs booleans");
  told(__LINE__, message_of([&] {
         masked_fill(x, mask_of({2, 6}, 1), 0);
       }),
       "a mask of shape [2,6] does not broadcast to f64[6]");
  told(__LINE__, message_of([&] { masked_fill(x, mask_of({5}, 1), 0); }), "masked_fill: shapes do not broadcast");
  told(__LINE__, message_of([&] { eye(2, -3); }), "eye: numbers of rows and columns, got 2 and -3");
  told(__LINE__, message_of([&] { eye(-2); }), "eye: numbers of rows and columns, got -2 and -1");
  told(__LINE__, message_of([&] { select(tensor::ones({2, 3}), 1, 3); }), "select: no place 3 on axis 1 of f32[2,3]");
  told(__LINE__, message_of([&] { select(tensor::ones({2, 3}), 1, -4); }), "select: no place -4 on axis 1");
}

TEST_CASE("elu and the divergence of distributions") {
  tensor const x = tensor::from<double>({-30, -1, -1e-9, 0, 2, 800}, {6});
  same(elu(x, 0.5).values<double>(), {0.5 * std::expm1(-30), 0.5 * std::expm1(-1), 0.5 * -1e-9, 0, 2, 800});
  CHECK(elu(cast(x, dtype::f32)).values<double>()[2] == doctest::Approx(-1e-9).epsilon(1e-4));
  check_gradients([](auto const& in) { return elu(in[0], 0.7); }, {random({5, 3}, 1)});
  tensor const far = tensor::from<double>({800, -800}, {2}).with_gradient();
  CHECK(grad(sum(elu(far)), {far}).front().values<double>() == d{1, 0});
  CHECK(nn::elu{0.5}(x).values<double>() == elu(x, 0.5).values<double>());
  told(__LINE__, message_of([&] { elu(x, -1); }), "elu: alpha must not be negative");
  told(__LINE__, message_of([&] { elu(arange(3)); }), "elu:");

  tensor const q = log_softmax(random({3, 4}, 1)), t = softmax(random({3, 4}, 2));
  auto const losses = [&] {
    d all;
    auto const a = q.values<double>(), b = t.values<double>();
    for (std::size_t i = 0; i < a.size(); ++i) all.push_back(b[i] * (std::log(b[i]) - a[i]));
    return all;
  }();
  double total = 0;
  for (double l : losses) total += l;
  same(kl_divergence_loss(q, t, {.reduction = loss_reduction::none}).values<double>(), losses);
  CHECK(kl_divergence_loss(q, t).item<double>() == doctest::Approx(total / 3));
  CHECK(kl_divergence_loss(q, t, {.reduction = loss_reduction::sum}).item<double>() == doctest::Approx(total));
  CHECK(kl_divergence_loss(q, t, {.mean_of_rows = false}).item<double>() == doctest::Approx(total / 12));
  CHECK(kl_divergence_loss(q, log(t), {.log_target = true}).item<double>() == doctest::Approx(total / 3));
  CHECK(kl_divergence{}(q, t).item<double>() == doctest::Approx(total / 3));
  CHECK(kl_divergence{.log_target = true}(q, log(t)).item<double>() == doctest::Approx(total / 3));
  tensor const sure = tensor::from<double>({0, 1}, {1, 2}).with_gradient();
  CHECK(kl_divergence_loss(log(tensor::from<double>({0.5, 0.5}, {1, 2})), sure).item<double>() ==
        doctest::Approx(std::log(2.)));
  check_gradients([](auto const& in) { return kl_divergence_loss(log_softmax(in[0]), softmax(in[1])); },
                  {random({3, 4}, 1), random({3, 4}, 2)});
  check_gradients(
      [](auto const& in) { return kl_divergence_loss(log_softmax(in[0]), log_softmax(in[1]), {.log_target = true}); },
      {random({3, 4}, 1), random({3, 4}, 2)});
  told(__LINE__, message_of([&] { kl_divergence_loss(q, random({4}, 1)); }),
       "kl_divergence: shapes differ, [3,4] and [4]");
}

TEST_CASE("gradients of gradients") {
  auto const check = [](auto const& f, tensor const& start) {
    // d/dx of sum(grad^2), traced, beside the quotient of eager gradients
    auto const squares = [&](tensor const& at) {
      tensor const leaf = at.with_gradient();
      return sum(square(grad(sum(f(leaf)), {leaf}).front())).template item<double>();
    };
    parameter w = parameter::holding(start);
    auto const program = trace(
        [&](tensor const& one) {
          tensor const g = grad(sum(f(w)), {w}).front();
          return grad(sum(square(g)) * one, {w}).front();
        },
        tensor::ones({}, dtype::f64));
    CHECK(program.program.op_count() > 0);
    // run it op by op
    std::vector<std::vector<double>> memory;
    auto const& g = program.program;
    for (auto s : g.storages()) memory.emplace_back(static_cast<std::size_t>(g.bytes(s)) / 8 + 1);
    auto const ref = [&](value_id v) { return tensor_ref::place(memory[index(g.storage(v))].data(), g.layout(v)); };
    for (auto const& r : program.residents)
      std::memcpy(memory[index(g.storage(r.value))].data(), r.memory(),
                  static_cast<std::size_t>(g.bytes(g.storage(r.value))));
    memory[index(g.storage(program.inputs[0]))][0] = 1;
    for (auto o : g.ops()) {
      std::vector<tensor_ref> refs;
      std::vector<tensor_layout> layouts;
      bool computes = false;
      for (auto v : g.inputs(o)) refs.push_back(ref(v)), layouts.push_back(g.layout(v));
      auto const arity = refs.size();
      for (auto v : g.outputs(o)) {
        refs.push_back(ref(v)), layouts.push_back(g.layout(v));
        computes |= g.record(v).alias != alias_kind::view;
      }
      if (!computes) continue;
      std::span<tensor_ref const> const all(refs);
      std::span<tensor_layout const> const l(layouts);
      std::vector<double> scratch;
      if (auto const& facets = g.facets(o); facets.workspace)
        scratch.resize(
            static_cast<std::size_t>(facets.workspace(g.attributes(o), {l.first(arity), l.subspan(arity)})) / 8 + 9);
      host_kernel(g.facets(o))(eager_context::current().backend(), g.attributes(o),
                               {all.first(arity), all.subspan(arity), scratch.data()});
    }
    tensor const found = tensor::borrow(static_cast<double*>(ref(program.outputs[0]).data), start.shape());
    REQUIRE(g.layout(program.outputs[0]).is_dense());
    auto const curve = found.values<double>();
    auto* const x = start.data<double>();
    for (std::size_t i = 0; i < curve.size(); ++i) {
      double const before = x[i], h = 1e-5;
      x[i] = before + h;
      double const up = squares(start);
      x[i] = before - h;
      double const down = squares(start);
      x[i] = before;
      CHECK(curve[i] == doctest::Approx((up - down) / (2 * h)).epsilon(1e-4).scale(1));
    }
  };
  check([](tensor const& x) { return elu(x, 0.7) * x; }, random({2, 3}, 1));
  check([](tensor const& x) { return logsumexp(x, {1}); }, random({2, 3}, 1));
  check([](tensor const& x) { return norm(x, 2, {1}); }, random({2, 3}, 1));
  check([](tensor const& x) { return norm(x, 3, {1}); }, random({2, 3}, 1));
  check([](tensor const& x) { return prod(x, {1}); }, random({2, 3}, 1));
  check([](tensor const& x) { return cosine_similarity(x, x * x); }, random({2, 3}, 1));
  check([](tensor const& x) { return einsum("ij,kj->ik", {x, x * x}); }, random({2, 3}, 1));
  check([](tensor const& x) { return flip(x * x * x, {1}) * roll(x, {1}, {0}); }, random({2, 3}, 1));
  check(
      [](tensor const& x) {
        return conv3d(reshape(x, {1, 1, 3, 2, 2}), reshape(slice(x, 0, 0, 8) * slice(x, 0, 0, 8), {1, 1, 2, 2, 2}), {});
      },
      random({12}, 1));
}

namespace {
d plain_conv3d(tensor const& x, tensor const& w, tensor const& b, conv3d_form const& how, shape& dims) {
  auto const n = x.size(0), c = x.size(1), o = w.size(0), cg = w.size(1), og = o / how.groups;
  std::int64_t in[3], k[3], out[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = x.size(2 + i), k[i] = w.size(2 + i);
    out[i] = (in[i] + 2 * how.padding[i] - how.dilation[i] * (k[i] - 1) - 1) / how.stride[i] + 1;
  }
  dims = {n, o, out[0], out[1], out[2]};
  auto const xv = x.values<double>(), wv = w.values<double>();
  auto const bv = b.is_empty() ? d(static_cast<std::size_t>(o)) : b.values<double>();
  d y;
  for (std::int64_t s = 0; s < n; ++s)
    for (std::int64_t f = 0; f < o; ++f)
      for (std::int64_t a = 0; a < out[0]; ++a)
        for (std::int64_t r = 0; r < out[1]; ++r)
          for (std::int64_t q = 0; q < out[2]; ++q) {
            double sum = bv[static_cast<std::size_t>(f)];
            for (std::int64_t ch = 0; ch < cg; ++ch)
              for (std::int64_t i = 0; i < k[0]; ++i)
                for (std::int64_t j = 0; j < k[1]; ++j)
                  for (std::int64_t l = 0; l < k[2]; ++l) {
                    auto const z = a * how.stride[0] + i * how.dilation[0] - how.padding[0],
                               v = r * how.stride[1] + j * how.dilation[1] - how.padding[1],
                               u = q * how.stride[2] + l * how.dilation[2] - how.padding[2];
                    if (z < 0 || v < 0 || u < 0 || z >= in[0] || v >= in[1] || u >= in[2]) continue;
                    auto const channel = f / og * cg + ch;
                    sum += xv[static_cast<std::size_t>((((s * c + channel) * in[0] + z) * in[1] + v) * in[2] + u)] *
                           wv[static_cast<std::size_t>((((f * cg + ch) * k[0] + i) * k[1] + j) * k[2] + l)];
                  }
            y.push_back(sum);
          }
  return y;
}
}  // namespace

TEST_CASE("conv3d beside seven loops") {
  random_stream draw(7, 1);
  for (int trial = 0; trial < 60; ++trial) {
    conv3d_form how;
    how.groups = 1 + draw.below(2);
    shape x{1 + draw.below(2), how.groups * (1 + draw.below(2))},
        w{how.groups * (1 + draw.below(2)), x[1] / how.groups};
    for (int i = 0; i < 3; ++i) {
      auto const k = std::int64_t{1} + draw.below(3);
      how.stride[i] = 1 + draw.below(3), how.padding[i] = draw.below(3), how.dilation[i] = 1 + draw.below(2);
      auto const least = std::max<std::int64_t>(1, how.dilation[i] * (k - 1) + 1 - 2 * how.padding[i]);
      x.push_back(least + draw.below(4)), w.push_back(k);
    }
    tensor const image = random(x, 1), filter = random(w, 2), bias = draw.below(2) ? random({w[0]}, 3) : tensor();
    shape dims;
    auto const expected = plain_conv3d(image, filter, bias, how, dims);
    tensor const y = conv3d(image, filter, bias, how);
    CHECK(y.shape() == dims);
    same(y.values<double>(), expected, 1e-9);
    same(conv3d(cast(image, dtype::f32), cast(filter, dtype::f32), bias.is_empty() ? bias : cast(bias, dtype::f32), how)
             .values<double>(),
         expected, 1e-4);
    if (trial % 6 == 0)
      check_gradients([&](auto const& in) { return conv3d(in[0], in[1], in[2], how); },
                      {image, filter, random({w[0]}, 3)});
  }
  tensor const x = random({1, 2, 3, 4, 5}, 1);
  told(__LINE__, message_of([&] {
         conv3d(x, random({2, 3, 1, 1, 1}, 1), {});
       }),
       "conv3d: channels do not fit the groups");
  told(__LINE__, message_of([&] {
         conv3d(x, random({2, 2, 4, 1, 1}, 1), {});
       }),
       "the filter is larger than the padded input");
  told(__LINE__, message_of([&] {
         conv3d(select(x, 0, 0), random({2, 2, 1, 1, 1}, 1), {});
       }),
       "conv3d: takes (batch, channels, planes");
  told(__LINE__, message_of([&] {
         conv3d(x, random({2, 2, 1, 1, 1}, 1), {}, {.stride = {2, 2}});
       }),
       "three numbers each");
  told(__LINE__, message_of([&] {
         conv3d(x, random({2, 2, 1, 1, 1}, 1), {}, {.stride = {0, 1, 1}});
       }),
       "stride and dilation must be positive");
  nn::conv3d const module(2, 4, 3, {.stride = 2, .padding = 1});
  CHECK(module(cast(x, dtype::f32)).shape() == shape{1, 4, 2, 2, 3});
}

TEST_CASE("batch norm of rows and sequences") {
  nn::batch_norm1d norm(3);
  CHECK(named_tensors(norm, role::weight).size() == 2);
  CHECK(named_tensors(norm, role::buffer)[0].name == "running_mean");
  tensor const rows = random({5, 3}, 1, dtype::f32), sequences = random({2, 3, 4}, 2, dtype::f32);
  nn::batch_norm2d images(3);
  CHECK(norm(rows).values<double>() == images(reshape(rows, {5, 3, 1, 1})).values<double>());
  CHECK(norm(sequences).values<double>() == images(reshape(sequences, {2, 3, 1, 4})).values<double>());
  CHECK(norm.running_variance.values<double>() == images.running_variance.values<double>());
  {
    evaluation const here;
    CHECK(norm(rows).values<double>() == images(reshape(rows, {5, 3, 1, 1})).values<double>());
  }
  told(__LINE__, message_of([&] {
         norm(random({2, 3, 4, 5}, 1, dtype::f32));
       }),
       "batch_norm1d: takes (batch, channels)");
}

TEST_CASE("causal attention of the last queries to a cache of keys") {
  auto const close = [](tensor const& a, tensor const& b) {
    CHECK(a.shape() == b.shape());
    same(a.values<double>(), b.values<double>(), 1e-10);
  };
  op::attention const causal{.causal = true};
  for (std::int64_t heads : {2, 6})  // of queries; 2 of keys
    for (std::int64_t last : {1, 2, 4, 5}) {
      tensor const q = random({3, heads, 5, 4}, 1), k = random({3, 2, 5, 4}, 2), v = random({3, 2, 5, 3}, 3);
      tensor const all = attention(q, k, v, causal), ends = slice(q, 2, 5 - last, 5);
      close(attention(ends, k, v, causal), slice(all, 2, 5 - last, 5));
      if (heads != 2) continue;
      close(plain_attention(ends, k, v, causal), slice(all, 2, 5 - last, 5));
      tensor const everything = tensor::from(std::vector<bool>(15, true), {3, 5});
      close(masked_attention(ends, k, v, everything, causal), slice(all, 2, 5 - last, 5));
    }
  check_gradients([&](auto const& in) { return attention(in[0], in[1], in[2], causal); },
                  {random({1, 4, 2, 3}, 1), random({1, 2, 5, 3}, 2), random({1, 2, 5, 2}, 3)});
  tensor const many = random({1, 2, 5, 4}, 1), few = random({1, 2, 3, 4}, 2);
  for (auto const &f : {+[](tensor const& a, tensor const& b) { return attention(a, b, b, {.causal = true}); },
                        +[](tensor const& a, tensor const& b) { return plain_attention(a, b, b, {.causal = true}); }})
    CHECK(message_of([&] { f(many, few); }).find("causal: there are 5 queries, and 3 keys") != std::string::npos);
}

TEST_CASE("attention under masks, and to another sequence") {
  tensor const q = random({2, 2, 3, 4}, 1), k = random({2, 2, 5, 4}, 2), v = random({2, 2, 5, 4}, 3);
  tensor const everything = tensor::from(std::vector<bool>(10, true), {2, 5});
  same(masked_attention(q, k, v, everything).values<double>(), plain_attention(q, k, v).values<double>(), 1e-10);
  same(masked_attention(q, k, v, everything, {.causal = true}).values<double>(),
       plain_attention(q, k, v, {.causal = true}).values<double>(), 1e-10);
  // what is masked might as well not be there
  tensor const first = tensor::from({true, true, true, false, false, true, true, true, false, false}, {2, 5});
  same(masked_attention(q, k, v, first).values<double>(),
       plain_attention(q, slice(k, 2, 0, 3), slice(v, 2, 0, 3)).values<double>(), 1e-10);
  tensor const nan = where(unsqueeze(unsqueeze(first, 1), 3), k, 1e300);
  CHECK(masked_attention(q, nan, v, first).shape() == q.shape());
  tensor const mask = mask_of({2, 3, 5}, 4);
  check_gradients([&](auto const& in) { return masked_attention(in[0], in[1], in[2], mask); },
                  {random({2, 2, 3, 4}, 1), random({2, 2, 5, 4}, 2), random({2, 2, 5, 4}, 3)});
  tensor const nothing = tensor::from(std::vector<bool>(5, false), {1, 5});
  tensor const leaf = q.with_gradient();
  CHECK(masked_attention(leaf, k, v, nothing).values<double>() == d(48, 0.));
  CHECK(grad(sum(masked_attention(leaf, k, v, nothing)), {leaf}).front().values<double>() == d(48, 0.));
  told(__LINE__, message_of([&] { masked_attention(q, k, v, mask_of({3, 5}, 1)); }), "a mask bool[3,5] does not fit");
  told(__LINE__, message_of([&] { masked_attention(q, k, v, q); }), "masked_attention: needs booleans");

  nn::cross_attention cross(8, 2, 6);
  tensor const x = random({2, 3, 8}, 1, dtype::f32), memory = random({2, 5, 6}, 2, dtype::f32);
  CHECK(cross(x, memory).shape() == shape{2, 3, 8});
  auto plain = cross;
  plain.options.fused = false;
  same(cross(x, memory).values<double>(), plain(x, memory).values<double>(), 1e-5);
  same(cross(x, memory, first).values<double>(), cross(x, slice(memory, 1, 0, 3)).values<double>(), 1e-5);
  told(__LINE__, message_of([&] { cross(x, x); }),
       "cross_attention: the memory: takes inputs of width 6, got f32[2,3,8]");
  told(__LINE__, message_of([&] { cross(memory, memory); }),
       "cross_attention: takes inputs of width 8, got f32[2,5,6]");
  told(__LINE__, message_of([&] { cross(x, random({3, 5, 6}, 1, dtype::f32)); }), "batches differ");
  nn::multi_head_attention self(8, 2);
  tensor const all = tensor::from(std::vector<bool>(6, true), {2, 3});
  same(self(x, all).values<double>(), self(x).values<double>(), 1e-5);
  tensor const two = tensor::from({true, true, false, true, true, false}, {2, 3});
  same(slice(self(x, two), 1, 0, 2).values<double>(), self(slice(x, 1, 0, 2)).values<double>(), 1e-5);
  told(__LINE__, message_of([&] { self(memory); }), "multi_head_attention: takes inputs of width 8, got f32[2,5,6]");
}

TEST_CASE("sampling by weights") {
  tensor const w = tensor::from<float>({1, 0, 3, 4, 0, 0, 0, 5}, {2, 4});
  eager_context const context{{.seed = 7}};
  std::vector<int> counts(8);
  tensor const drawn = multinomial(w, 8000, {.replacement = true});
  CHECK(drawn.type() == tensor_type{dtype::i64, {2, 8000}});
  auto const places = drawn.values<int>();
  for (std::size_t i = 0; i < places.size(); ++i) ++counts[static_cast<std::size_t>(places[i]) + (i < 8000 ? 0 : 4)];
  CHECK(counts[1] == 0);
  CHECK(counts[7] == 8000);
  for (auto [k, share] : {std::pair{0, 1 / 8.}, {2, 3 / 8.}, {3, 4 / 8.}})
    CHECK(std::abs(counts[static_cast<std::size_t>(k)] - 8000 * share) < 5 * std::sqrt(8000 * share * (1 - share)));
  // without replacement: each once, the first in proportion, the second of those that are left
  std::vector<int> first(4), pairs(16);
  tensor const rows = broadcast_to(tensor::from<float>({1, 0, 3, 4}, {4}), {6000, 4});
  auto const both = multinomial(rows, 2).values<int>();
  for (std::size_t i = 0; i < both.size(); i += 2) {
    CHECK(both[i] != both[i + 1]);
    ++first[static_cast<std::size_t>(both[i])], ++pairs[static_cast<std::size_t>(both[i] * 4 + both[i + 1])];
  }
  auto const near = [](int found, double share) {
    return std::abs(found - 6000 * share) < 5 * std::sqrt(6000 * share * (1 - share));
  };
  CHECK(near(first[0], 1 / 8.));
  CHECK(near(first[3], 4 / 8.));
  CHECK(near(pairs[3 * 4 + 2], 4 / 8. * 3 / 4.));
  CHECK(near(pairs[2 * 4 + 0], 3 / 8. * 1 / 5.));
  CHECK(multinomial(tensor::ones({5}), 5).shape() == shape{5});
  CHECK(sort(multinomial(tensor::ones({50}, dtype::f64), 50)).values.values<int>() == arange(50).values<int>());
  // the same seed draws the same, the next call others
  auto const again = [&](std::uint64_t seed) {
    eager_context const own{{.seed = seed}};
    auto const a = multinomial(tensor::ones({100}), 100).values<int>(),
               b = multinomial(tensor::ones({100}), 100).values<int>();
    CHECK(a != b);
    return a;
  };
  CHECK(again(1) == again(1));
  CHECK(again(1) != again(2));
  told(__LINE__, message_of([&] {
         multinomial(tensor::from<float>({1, -1}, {2}));
       }),
       "multinomial: weight 1 of row 0 is -1");
  told(__LINE__, message_of([&] { multinomial(tensor::from<float>({1, NAN}, {2})); }), "weight 1 of row 0 is nan");
  told(__LINE__, message_of([&] { multinomial(tensor::zeros({2, 3})); }), "no weight of row 0 is above 0");
  told(__LINE__, message_of([&] { multinomial(w, 3); }), "3 places are drawn without replacement, row 1 has 1");
  told(__LINE__, message_of([&] { multinomial(w, 5); }), "5 places cannot be drawn of 4 without replacement");
  told(__LINE__, message_of([&] { multinomial(w, 0); }), "needs a number of places to draw");
  told(__LINE__, message_of([&] { multinomial(arange(3)); }), "multinomial:");
  told(__LINE__, message_of([&] { multinomial(tensor::ones({})); }), "no weights to draw by");
}

// Values are those of exact arithmetic on the elements.
TEST_CASE("what all logits have in common changes neither losses nor gradients") {
  for (dtype t : {dtype::f32, dtype::f64})
    for (double offset : {0., -1e4, 1e6, 1.6e7, -1e8, 1e30}) {
      CAPTURE(offset);
      tensor const target = tensor::from<std::int64_t>({0, 2}, {2});
      tensor const x = tensor::full({2, 4}, offset, t).with_gradient();
      double const log4 = std::log(4.);
      d const slope{-0.375, 0.125, 0.125, 0.125, 0.125, 0.125, -0.375, 0.125};
      tensor const loss = cross_entropy_loss(x, target);
      same(values_of(loss), {log4}, 1e-6);
      same(values_of(grad(loss, {x})[0]), slope, 1e-6);
      tensor const smooth = cross_entropy_loss(x, target, -100, 0.2);
      same(values_of(smooth), {log4}, 1e-6);
      same(values_of(grad(smooth, {x})[0]), {-0.3, 0.1, 0.1, 0.1, 0.1, 0.1, -0.3, 0.1}, 1e-6);
      tensor const logs = log_softmax(x);
      same(values_of(logs), d(8, -log4), 1e-6);
      same(values_of(grad(-sum(logs * cast(tensor::from<double>({0.5, 0, 0, 0, 0, 0, 0.5, 0}, {2, 4}), t)), {x})[0]),
           slope, 1e-6);
    }
  // One logit far above the others: its probability is 1, whatever the target.
  tensor const x = tensor::from<float>({0, 3e6F, 3e6F, 0}, {1, 4}).with_gradient();
  tensor const loss = cross_entropy_loss(x, tensor::from<std::int64_t>({0}, {1}));
  same(values_of(loss), {3e6 + std::log(2.)}, 1e-7);
  same(values_of(grad(loss, {x})[0]), {-1, 0.5, 0.5, 0}, 1e-6);
}

TEST_CASE("quotients by numbers whose inverse is not a normal number") {
  struct row {
    dtype t;
    double s;
    d x, quotients;
    double slope;
  };
  for (row const& r : {row{dtype::f32, 1e-39, {1e-38, 0, -2e-39, 1}, {10, 0, -2, inf}, inf},
                       row{dtype::f32, -1e-41, {1e-40, 0, 3e-3, 1e3}, {-10, 0, -3e38, -inf}, -inf},
                       row{dtype::f32, 1e-300, {1, 0, -1, 1e-38}, {inf, 0, -inf, inf}, inf},
                       row{dtype::f32, 3e38, {3e38, 0, 1e38, 3}, {1, 0, 1 / 3., 1e-38}, 1 / 3e38},
                       row{dtype::f32, 1e300, {3e38, 0, -1, 1}, {0, 0, 0, 0}, 0},
                       row{dtype::bf16, 1e-39, {1e-38, 0, -2e-39, 1}, {10, 0, -2, inf}, inf},
                       row{dtype::f16, 1e-39, {1, 0, -1, 1e-7}, {inf, 0, -inf, inf}, inf},
                       row{dtype::f16, 1e-7, {1e-3, 0, -1e-4, 6e-8}, {1e4, 0, -1e3, 0.6}, 1e7},
                       row{dtype::f64, 1e-309, {1e-308, 0, -2e-309, 1}, {10, 0, -2, inf}, inf},
                       row{dtype::f64, 1.5e308, {3e307, 0, 1.5, 1e308}, {0.2, 0, 1e-308, 2 / 3.}, 1 / 1.5e308}}) {
    CAPTURE(r.s);
    CAPTURE(static_cast<int>(r.t));
    tensor const x = cast(tensor::from(r.x, {4}), r.t).with_gradient();
    bool const low = r.t == dtype::bf16 || r.t == dtype::f16;
    auto const exact = [&](d of, double tolerance) {
      d const got = values_of(x / r.s), in = values_of(x);
      for (std::size_t i = 0; i < of.size(); ++i) {
        CAPTURE(i);
        double const right = of[i] == 0 || std::isinf(of[i]) ? of[i] : in[i] / r.s;
        CHECK((got[i] == right || std::abs(got[i] - right) <= tolerance * std::abs(right)));
      }
    };
    exact(r.quotients, r.t == dtype::f64 ? 4e-16 : r.t == dtype::bf16 ? 4e-3 : low ? 5e-4 : 2e-7);
    if (std::isfinite(r.slope) && !low) {
      double const slope = values_of(grad(sum(x / r.s), {x})[0])[0];
      CHECK(std::abs(slope - r.slope) <= (r.t == dtype::f64 ? 1e-323 + 3e-16 * r.slope : 2e-45 + 2e-7 * r.slope));
    }
  }
  CHECK(std::isnan(values_of(tensor::zeros({1}) / 0.)[0]));  // as everywhere
  CHECK(values_of(tensor::ones({1}) / -0.)[0] == -inf);
  CHECK(values_of(tensor::ones({1}) / inf)[0] == 0);
}

TEST_CASE("whole quotients and remainders are those of Python, of all sizes of numbers") {
  std::vector<std::int64_t> const some{0,
                                       1,
                                       -1,
                                       2,
                                       -2,
                                       3,
                                       7,
                                       -7,
                                       10,
                                       127,
                                       -128,
                                       1000003,
                                       -1000003,
                                       (1ll << 53) + 1,
                                       -(1ll << 53) - 1,
                                       (1ll << 62) + 12345,
                                       -(1ll << 62) - 54321};
  std::vector<std::int64_t> a, b, q, r;
  for (auto x : some)
    for (auto y : some) {
      a.push_back(x), b.push_back(y);
      if (y == 0) {
        q.push_back(0), r.push_back(x);
        continue;
      }
      auto whole = x / y, left = x % y;  // towards zero
      if (left != 0 && (left < 0) != (y < 0)) --whole, left += y;
      q.push_back(whole), r.push_back(left);
    }
  auto const n = static_cast<std::int64_t>(a.size());
  auto const x = tensor::from(a, {n}), y = tensor::from(b, {n});
  CHECK(quotient(x, y).values<std::int64_t>() == q);
  CHECK(remainder(x, y).values<std::int64_t>() == r);
  auto const small = tensor::from(std::vector<std::int32_t>{7, -7, 8}, {3});
  CHECK(quotient(small, 3).type() == tensor_type{dtype::i32, {3}});
  CHECK(quotient(small, 3).values<int>() == ints{2, -3, 2});
  CHECK(remainder(small, -3).values<int>() == ints{-2, -1, -1});
  CHECK(remainder(100, small).values<int>() == ints{2, -5, 4});
  CHECK(quotient(tensor::from(std::vector<std::uint8_t>{255, 9}, {2}), 2).values<int>() == ints{127, 4});
  told(__LINE__, message_of([&] { quotient(x, tensor::ones({n})); }), "quotient: takes whole numbers, got f32[");
  told(__LINE__, message_of([&] { remainder(x, 0.5); }), "0.5");
  told(__LINE__, message_of([&] { remainder(small, y); }), "element types differ");
}

TEST_CASE("abs and square of whole numbers; what is finite; the place of the smallest") {
  for (dtype t : {dtype::i64, dtype::i32}) {
    auto const x = cast(tensor::from(d{-3, 0, 4}, {3}), t);
    CHECK(values_of(abs(x)) == d{3, 0, 4});
    CHECK(values_of(square(x)) == d{9, 0, 16});
    CHECK(square(x).element() == t);
    CHECK(values_of(arg_min(x)) == d{0});
    CHECK(values_of(cast(isfinite(x), dtype::f64)) == d{1, 1, 1});
    CHECK(values_of(cast(isnan(x), dtype::f64)) == d{0, 0, 0});
  }
  CHECK(values_of(abs(tensor::from(std::vector<std::uint8_t>{200, 3}, {2}))) == d{200, 3});
  auto const least = std::numeric_limits<std::int64_t>::min();
  CHECK(values_of(arg_min(tensor::from(std::vector<std::int64_t>{5, least, least + 1, 7}, {4}))) == d{1});
  CHECK(values_of(arg_min(tensor::from(std::vector<std::uint8_t>{5, 200, 0, 7}, {4}))) == d{2});
  double const none = std::nan("");
  for (dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16}) {
    auto const x = cast(tensor::from(d{1, none, inf, -inf, -0.0, 60000}, {2, 3}), t);
    auto const is = [](tensor const& y) { return values_of(cast(y, dtype::f64)); };
    CHECK(is(isnan(x)) == d{0, 1, 0, 0, 0, 0});
    CHECK(is(isinf(x)) == d{0, 0, 1, 1, 0, 0});
    CHECK(is(isfinite(x)) == d{1, 0, 0, 0, 1, 1});
    CHECK(values_of(arg_min(x)) == d{1, 0});  // a NaN counts as it does in arg_max
    CHECK(values_of(arg_min(x, 0)) == d{1, 0, 1});
  }
}

TEST_CASE("scatter, repeat, linspace, pools of sequences: beside loops, with gradients") {
  auto const x = random({4, 3}, 1), source = random({2, 3}, 2);
  auto const places = tensor::from(std::vector<std::int64_t>{3, 0, 1, 0, 2, 2}, {2, 3});
  auto right = values_of(x);
  for (std::size_t k = 0; k < 6; ++k)
    right[static_cast<std::size_t>(places.values<std::int64_t>()[k]) * 3 + k % 3] = values_of(source)[k];
  CHECK(values_of(scatter(x, places, source)) == right);
  CHECK(values_of(transpose(scatter(transpose(x), transpose(places), transpose(source), 1))) == right);
  check_gradients([&](auto const& in) { return scatter(in[0], places, in[1]); }, {x, source});
  for (dtype t : {dtype::bf16, dtype::f16}) {
    auto const low = scatter(cast(x, t), places, cast(source, t));
    CHECK(values_of(low) == values_of(cast(tensor::from(right, {4, 3}), t)));
  }
  told(__LINE__, message_of([&] { scatter(x, places, random({3, 2}, 1)); }), "must have one shape");
  told(__LINE__, message_of([&] {
         scatter(tensor::ones({2, 3}), tensor::zeros({1, 1}, dtype::i64), tensor::ones({1, 1}), 1);
       }),
       "must agree in all axes but 1");
  told(__LINE__, message_of([&] {
         scatter(tensor::ones({1, 3}), tensor::zeros({4, 1}, dtype::i64), tensor::ones({4, 1}), 1);
       }),
       "must agree in all axes but 1");

  CHECK(repeat(x, {2, 1, 3}).shape() == shape{2, 4, 9});
  auto const many = values_of(repeat(x, {2, 1, 3}));
  for (std::size_t i = 0; i < many.size(); ++i) CHECK(many[i] == values_of(x)[i / 9 % 4 * 3 + i % 3]);
  CHECK(values_of(repeat(tensor::from(d{1, 2}, {2}), {2})) == d{1, 2, 1, 2});
  check_gradients([](auto const& in) { return repeat(in[0], {2, 3}); }, {x});
  for (shape const& of :
       {shape{2, 1, 3, 1, 2}, shape{1, 2, 1, 1, 2, 1, 1, 3}}) {  // more axes than a tensor has, taken apart
    d numbers(static_cast<std::size_t>(elements(of)));
    std::iota(numbers.begin(), numbers.end(), 0);
    extents times;
    shape whole;
    for (int i = 0; i < of.rank(); ++i) times.push_back(2 + i % 2), whole.push_back(of[i] * times[i]);
    auto const all = values_of(repeat(tensor::from(numbers, of), times));
    bool same = all.size() == static_cast<std::size_t>(elements(whole));
    for (std::int64_t e = 0; same && e < elements(whole); ++e) {
      std::int64_t from = 0, step = 1, left = e;
      for (int i = of.rank(); i-- > 0; step *= of[i], left /= whole[i]) from += left % whole[i] % of[i] * step;
      same = all[static_cast<std::size_t>(e)] == static_cast<double>(from);
    }
    CHECK(same);
  }
  told(__LINE__, message_of([&] { repeat(x, {2}); }), "has more axes than");

  CHECK(values_of(linspace(0, 1, 5, dtype::f64)) == d{0, 0.25, 0.5, 0.75, 1});
  auto const steps = values_of(linspace(-1.1, 2.3, 1001, dtype::f64));
  for (std::size_t i = 0; i < steps.size(); ++i)
    CHECK(std::abs(steps[i] - (-1.1 + 3.4 * static_cast<double>(i) / 1000)) < 1e-15);
  CHECK((steps.front() == -1.1 && steps.back() == 2.3));
  CHECK(linspace(5, 9, 1).values<float>() == std::vector<float>{5});
  CHECK(linspace(0, 1, 0).count() == 0);
  told(__LINE__, message_of([] { linspace(0, 1, -2); }), "got -2");

  auto const line = random({2, 3, 7}, 3);
  auto const pooled = values_of(max_pool1d(line, {.window = 3, .stride = 2}));
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    auto const* const from = line.data<double>() + i / 3 * 7 + i % 3 * 2;
    CHECK(pooled[i] == *std::max_element(from, from + 3));
  }
  CHECK(max_pool1d(line).shape() == shape{2, 3, 3});
  auto const means = values_of(avg_pool1d(line, {.window = 7}));
  for (std::size_t i = 0; i < means.size(); ++i) {
    double total = 0;
    for (std::size_t k = 0; k < 7; ++k) total += values_of(line)[i * 7 + k];
    CHECK(means[i] == doctest::Approx(total / 7).epsilon(1e-14));
  }
  check_gradients([](auto const& in) { return max_pool1d(in[0], {.window = 3, .stride = 1, .padding = 1}); }, {line});
  told(__LINE__, message_of([&] { max_pool1d(x); }), "max_pool1d: takes (n, c, l)");
}

TEST_CASE("losses by absolute differences and by log probabilities; numbers and orders by chance") {
  auto const x = random({5, 4}, 1), y = random({5, 4}, 2);
  double total = 0;
  for (std::size_t i = 0; i < 20; ++i) total += std::abs(values_of(x)[i] - values_of(y)[i]);
  CHECK(l1_loss(x, y).item<double>() == doctest::Approx(total / 20).epsilon(1e-14));
  CHECK(l1_loss(x, y, loss_reduction::sum).item<double>() == doctest::Approx(total).epsilon(1e-14));
  check_gradients([&](auto const& in) { return l1_loss(in[0], in[1]); }, {x, y});
  told(__LINE__, message_of([&] { l1_loss(x, transpose(y)); }), "l1: shapes differ");

  auto const classes = tensor::from(std::vector<std::int64_t>{2, -100, 0, 3, -100}, {5});
  auto const logs = log_softmax(x);
  double const mean = -(values_of(logs)[2] + values_of(logs)[8] + values_of(logs)[15]) / 3;
  CHECK(nll_loss(logs, classes).item<double>() == doctest::Approx(mean).epsilon(1e-14));
  CHECK(values_of(nll_loss(logs, classes, -100, loss_reduction::none))[1] == 0);
  CHECK(nll_loss(logs, classes, -100, loss_reduction::sum).item<double>() == doctest::Approx(3 * mean).epsilon(1e-14));
  CHECK(nll_loss(reshape(logs, {5, 1, 4}), reshape(classes, {5, 1})).item<double>() == doctest::Approx(mean));
  check_gradients([&](auto const& in) { return nll_loss(in[0], classes); }, {x});

  auto const draws = randint(-3, 4, {7000}, 5).values<std::int64_t>();
  std::map<std::int64_t, int> counts;
  for (auto k : draws) ++counts[k];
  CHECK(counts.size() == 7);
  CHECK((counts.begin()->first == -3 && counts.rbegin()->first == 3));
  for (auto const& [k, count] : counts) CHECK(std::abs(count - 1000) < 5 * std::sqrt(1000 * 6 / 7.));
  CHECK(randint(-3, 4, {7000}, 5).values<std::int64_t>() == draws);
  CHECK(randint(-3, 4, {7000}, 6).values<std::int64_t>() != draws);
  CHECK(randint(0, 2, {3, 3}, 1, dtype::u8).element() == dtype::u8);
  auto const wide =
      randint(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), {64}, 1);
  CHECK(wide.values<std::int64_t>()[0] != wide.values<std::int64_t>()[1]);
  std::map<std::vector<std::int64_t>, int> orders;
  for (std::uint64_t seed = 0; seed < 2400; ++seed) ++orders[randperm(4, seed).values<std::int64_t>()];
  CHECK(orders.size() == 24);
  for (auto const& [order, count] : orders) CHECK(std::abs(count - 100) < 50);
  CHECK(randperm(0, 1).count() == 0);
  told(__LINE__, message_of([] { randint(4, 4, {1}, 1); }), "got 4, 4");
  told(__LINE__, message_of([] { randint(0, std::int64_t{1} << 40, {1}, 1, dtype::i32); }),
       "-2147483648 to 2147483647");
  told(__LINE__, message_of([] { randint(-5, 5, {1}, 1, dtype::u8); }), "0 to 255");
  told(__LINE__, message_of([] { randperm(-1, 1); }), "got -1");
}
