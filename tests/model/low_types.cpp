// Functions of bf16 and f16: one rounding of the result, one of each gradient.
#include <neap/model/functions.hpp>

#include <neap/train/grad.hpp>

#include "../support/low_types.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

using namespace neap;
using namespace neap_test::low_types;

TEST_CASE("every function and its gradients in bf16 and f16 are within a rounding of f64's") {
  each_measured_row([](measured_row const& m) {
    auto const check = [&](char const* what, distance const& d, double most) {
      CHECK_MESSAGE(d.roundings <= most, std::string(m.of.name)
                                             << std::string(what) << " in " << name_of(m.type) << " times " << m.scale
                                             << ": " << d.got << ", not " << d.right);
    };
    check("", m.result, m.of.within.result);
    check(", gradient", m.slopes, m.of.within.slope);
  });
}

TEST_CASE("partial results of bf16 and f16 are beyond the type where the result is not") {
  auto const low = [](std::vector<double> const& v, shape const& s, dtype t) {
    return cast(tensor::from(v, s), t).detach().with_gradient();
  };
  auto const slope = [](tensor const& y, tensor const& x) {
    return grad(sum(cast(y, dtype::f32)), {x})[0].values<double>();
  };
  for (dtype t : {dtype::bf16, dtype::f16}) {
    auto const close = [&](double a, double b) {
      return std::abs(a - b) <= (t == dtype::bf16 ? 0x1p-8 : 0x1p-11) * std::abs(b) + 1e-7;
    };
    for (double size : {300., 3e-5}) {  // squares beyond f16, and below it
      auto const x = low({size, -4 * size / 3}, {2}, t);
      double const a = x.values<double>()[0], b = x.values<double>()[1], length = std::hypot(a, b);
      CHECK(close(norm(x).item<double>() / size, length / size));
      CHECK(close(slope(norm(x), x)[0], a / length));
      CHECK(close(slope(norm(x), x)[1], b / length));
      CHECK(close(stddev(x).item<double>() / size, (a - b) / std::sqrt(2) / size));
    }
    auto const equal = low(std::vector<double>(70000, 1), {70000}, t);  // 70,000 is no f16
    CHECK(close(slope(max(equal), equal)[0], 1 / 70000.));
    CHECK(close(logsumexp(equal).item<double>(), 1 + std::log(70000.)));
    auto const factors = low({300, 300, 0.01, 0.02}, {4}, t);
    CHECK(close(prod(factors).item<double>(), factors.values<double>()[2] * factors.values<double>()[3] * 9e4));
    auto const over = low({3000, 1000, 500}, {3}, t);
    CHECK(close(slope(1e5 / over, over)[1], -0.1));
    // Products of queries and keys, before they are scaled.
    std::vector<double> values(128, 1);
    for (std::size_t i = 64; i < 128; ++i) values[i] = 2;
    tensor const q = low(std::vector<double>(128, 40), {1, 1, 2, 64}, t), v = low(values, {1, 1, 2, 64}, t);
    CHECK(close(masked_attention(q, q, v, tensor::full({1, 2}, 1, dtype::boolean)).values<double>()[0], 1.5));
    CHECK(close(plain_attention(q, q, v).values<double>()[0], 1.5));
    for (auto g : slope(plain_attention(q, q, v), v)) CHECK(close(g, 1));
  }
}

TEST_CASE("slopes of clamp in bf16 and f16 are 0 outside of bounds that the type has not") {
  for (dtype t : {dtype::bf16, dtype::f16})
    for (double bound : {0.9, 0.8, 0.1, 1e6, 6.}) {
      std::vector<double> v, right;
      for (int i = -200; i <= 200; ++i) v.push_back(i / 100. * (bound > 1e5 ? 3e4 : bound));
      tensor const x = cast(tensor::from(v, {401}), t).detach().with_gradient();
      for (auto e : x.values<double>()) right.push_back(e > -bound && e < bound);
      CHECK(grad(sum(cast(clamp(x, -bound, bound), dtype::f32)), {x})[0].values<double>() == right);
    }
}

TEST_CASE("every function that has a gradient has a row") {
  std::set<std::string>
      rows{"any",     "all",      "logical_and", "logical_or",  "logical_xor", "logical_not",
           "arg_max", "one_hot",  "arg_sort",    "multinomial", "assign",      "arange",
           "eye",     "fill",     "linspace",    "quotient",    "remainder",   "isnan",
           "isinf",   "isfinite", "arg_min",     "randint",     "randperm"};  // booleans, whole numbers and constants have none
  for (auto const& r : all_rows()) rows.insert(r.name), rows.insert(std::string(r.name) + "_loss");
  std::size_t count = 0;
  for (auto const& file :
       std::filesystem::directory_iterator(std::string(NEAP_SOURCE_DIR) + "/include/neap/model/functions")) {
    if (file.path().extension() != ".hpp") continue;
    std::ifstream in(file.path());
    bool is_detail = false;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("namespace detail")) is_detail = true;
      if (line.starts_with("}  // namespace detail")) is_detail = false;
      if (is_detail || line.starts_with("#define")) continue;
      for (std::string const begin : {"tensor ", "ordered ", "std::vector<tensor> ", "NEAP_FUNCTION_OF_ONE("}) {
        auto const end = line.find_first_of("()", begin.size());
        if (!line.starts_with(begin) || end == line.npos) continue;
        auto const name = line.substr(begin.size(), end - begin.size());
        CHECK_MESSAGE(rows.contains(name), name << ": has no row in the table above");
        ++count;
      }
    }
  }
  CHECK(count > 100);
}
