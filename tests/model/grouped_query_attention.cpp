#include <neap/model/nn/grouped_query_attention.hpp>

#include <neap/model/model.hpp>
#include <neap/train/loss.hpp>

#include "../support/message.hpp"
#include "../support/quotients.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::check_quotients;
using neap::testing::message_of;

namespace {

using numbers = std::vector<double>;

void check_place(std::string const& what, int line, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("grouped_query_attention.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}

/// A head's elements of a token, turned as pairs (i, i + d / 2) by the angle t * base^(-2 i / d).
numbers turned(numbers const& v, std::int64_t t, double base) {
  numbers y = v;
  std::size_t const half = v.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    double const a =
        static_cast<double>(t) * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(v.size()));
    y[i] = v[i] * std::cos(a) - v[i + half] * std::sin(a);
    y[i + half] = v[i + half] * std::cos(a) + v[i] * std::sin(a);
  }
  return y;
}

/// The module's output of one sequence by plain loops: x[token] -> y[token].
std::vector<numbers> attended(nn::grouped_query_attention const& m, std::vector<numbers> const& x, double base) {
  auto const product = [](nn::linear const& l, numbers const& v) {
    auto const w = l.weight.values<double>();
    auto y = l.bias.is_empty() ? numbers(w.size() / v.size()) : l.bias.values<double>();
    for (std::size_t i = 0; i < w.size(); ++i) y[i / v.size()] += w[i] * v[i % v.size()];
    return y;
  };
  auto const head = [&](nn::linear const& l, std::size_t t, std::size_t k, std::size_t d) {
    auto const all = product(l, x[t]);
    return numbers(all.begin() + static_cast<std::ptrdiff_t>(k * d),
                   all.begin() + static_cast<std::ptrdiff_t>((k + 1) * d));
  };
  auto const heads = static_cast<std::size_t>(m.heads), group = heads / static_cast<std::size_t>(m.key_heads);
  std::size_t const d = x[0].size() / heads;
  std::vector<numbers> y;
  for (std::size_t t = 0; t < x.size(); ++t) {
    numbers joined;
    for (std::size_t h = 0; h < heads; ++h) {
      auto q = head(m.query, t, h, d);
      if (base > 0) q = turned(q, static_cast<std::int64_t>(t), base);
      numbers part(d);
      double total = 0;
      for (std::size_t s = 0; s < (m.options.causal ? t + 1 : x.size()); ++s) {
        auto k = head(m.key, s, h / group, d);
        if (base > 0) k = turned(k, static_cast<std::int64_t>(s), base);
        auto const v = head(m.value, s, h / group, d);
        double dot = 0;
        for (std::size_t i = 0; i < d; ++i) dot += q[i] * k[i];
        double const p = std::exp(dot / std::sqrt(static_cast<double>(d)));
        total += p;
        for (std::size_t i = 0; i < d; ++i) part[i] += p * v[i];
      }
      for (auto e : part) joined.push_back(e / total);
    }
    y.push_back(product(m.out, joined));
  }
  return y;
}

}  // namespace

TEST_CASE("grouped-query attention against plain loops") {
  std::int64_t const batch = 2, tokens = 5, width = 8, heads = 4;
  for (std::int64_t key_heads : {1, 2, 4})
    for (bool causal : {false, true})
      for (double base : {0.0, 10.0}) {
        CAPTURE(key_heads);
        CAPTURE(causal);
        CAPTURE(base);
        nn::grouped_query_attention m(width, heads, key_heads, {.causal = causal, .bias = key_heads == 2});
        initialise(m, 3);
        auto const x = tensor::randn({batch, tokens, width}, 1);
        auto const y = base > 0 ? m(x, nn::rotary(tokens + 3, width / heads, base)) : m(x);
        CHECK(y.shape() == x.shape());
        for (std::int64_t b = 0; b < batch; ++b) {
          std::vector<numbers> in;
          for (std::int64_t t = 0; t < tokens; ++t) in.push_back(select(select(x, 0, b), 0, t).values<double>());
          auto const expected = attended(m, in, base);
          for (std::int64_t t = 0; t < tokens; ++t) {
            auto const got = select(select(y, 0, b), 0, t).values<double>();
            for (std::size_t i = 0; i < got.size(); ++i)
              CHECK(got[i] == doctest::Approx(expected[static_cast<std::size_t>(t)][i]).epsilon(1e-4).scale(0.1));
          }
        }
      }
}

TEST_CASE("products of turned queries and keys depend on their distance alone") {
  nn::rotary const turn(16, 6);
  auto const q = tensor::randn({6}, 1), k = tensor::randn({6}, 2);
  auto const everywhere = [&](tensor const& v) { return turn(broadcast_to(v, {1, 1, 16, 6})); };
  auto const products = matmul(everywhere(q), everywhere(k), {.transpose_b = true}).values<double>();
  for (std::size_t i = 0; i < 15; ++i)
    for (std::size_t j = 0; j < 15; ++j)
      CHECK(products[i * 16 + j] == doctest::Approx(products[(i + 1) * 16 + j + 1]).epsilon(1e-4).scale(1));
  CHECK(products[0] != doctest::Approx(products[1]).epsilon(1e-2));
}

TEST_CASE("gradients of grouped-query attention are the difference quotients") {
  struct {
    nn::grouped_query_attention a{8, 4, 2, {.causal = true, .bias = true}};
    parameter x{{2, 5, 8}, initialiser::normal(0, 1)};
  } m;
  check_quotients(m, [&] { return sum(square(m.a(m.x))); });
  struct {
    nn::rotary turn{5, 4};
    parameter x{{1, 2, 5, 4}, initialiser::normal(0, 1)};
  } r;
  check_quotients(r, [&] { return sum(exp(r.turn(r.x))); });
}

TEST_CASE("what grouped-query attention and rotary positions cannot take is told with the line") {
  for (std::int64_t heads : {0, 3, 4})
    check_place(message_of([&] { nn::grouped_query_attention(16, heads, 3); }), __LINE__,
                "width must divide into heads, and heads into heads of keys, not 16 into " + std::to_string(heads));
  nn::grouped_query_attention const m(8, 2, 1);
  tensor const flat = tensor::ones({4, 8}), five = tensor::ones({1, 5, 8}), broad = tensor::ones({1, 1, 4, 6});
  check_place(message_of([&] { m(flat); }), __LINE__, "takes (batch, tokens, width), got f32[4,8]");
  nn::rotary const turn(4, 4);
  check_place(message_of([&] { m(five, turn); }), __LINE__,
              "rotary: has angles for [4,4] tokens and widths, got f32[1,2,5,4]");
  check_place(message_of([&] { turn(broad); }), __LINE__, "rotary: has angles for [4,4]");
  check_place(message_of([&] { nn::rotary(4, 3); }), __LINE__, "the width of a head must be even, not 3");
}
