#include <neap/ir/operators/fused.hpp>

#include "../support/fused_products.hpp"
#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

double gelu_of(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double slope_of(double x) {
  double const t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/// The operands of a case: a and b as stored, and the third input.
std::vector<testing::operand> operands(product_case const& c, std::int64_t batches, std::int64_t m, std::int64_t n,
                                       std::int64_t k) {
  shape a = c.op.transpose_a ? shape{k, m} : shape{m, k};
  shape const b = c.op.transpose_b ? shape{n, k} : shape{k, n};
  shape y{m, n};
  if (batches > 0) a.insert(0, batches), y.insert(0, batches);
  std::vector<testing::operand> all{{a}, {b}};
  if (c.kind == product_kind::gelu_grad || c.kind == product_kind::gelu_grad_sums) all.push_back({y, -3, 3});
  else if (c.op.summed() < 0) all.push_back({{n}});
  return all;
}
numbers expected(product_case const& c, arrays const& in, std::int64_t batches, std::int64_t m, std::int64_t n,
                 std::int64_t k) {
  numbers out(c.keeps || c.op.sums != product_sums::none ? 2 : 1);
  auto const &a = in[0], &b = in[1];
  for (std::int64_t p = 0; p < batches; ++p)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double x = 0;
        for (std::int64_t l = 0; l < k; ++l)
          x += a[p * m * k + (c.op.transpose_a ? l * m + i : i * k + l)] * b[c.op.transpose_b ? j * k + l : l * n + j];
        switch (c.kind) {
          case product_kind::gelu_grad:
          case product_kind::gelu_grad_sums: x *= slope_of(in[2][(p * m + i) * n + j]); break;
          case product_kind::sums_of_a:
          case product_kind::sums_of_b: break;
          default:
            x += in[2][j];
            if (c.keeps) out[1].push_back(x);
            if (c.kind == product_kind::bias_relu) x = std::max(x, 0.0);
            if (c.kind == product_kind::bias_gelu) x = gelu_of(x);
        }
        out[0].push_back(x);
      }
  if (int const sums = c.op.summed(); sums >= 0)
    for (std::int64_t j = 0; j < (sums == 0 ? m : n); ++j) {
      double x = 0;
      for (std::int64_t l = 0; l < k; ++l) x += in[static_cast<std::size_t>(sums)][l * (sums == 0 ? m : n) + j];
      out[1].push_back(x);
    }
  if (c.kind == product_kind::gelu_grad_sums)
    for (std::int64_t j = 0; j < n; ++j) {
      double x = 0;
      for (std::int64_t i = 0; i < batches * m; ++i) x += out[0][static_cast<std::size_t>(i * n + j)];
      out[1].push_back(x);
    }
  return out;
}

std::string text_of(product_case const& c) {
  return "kind " + std::to_string(static_cast<int>(c.kind)) + (c.op.transpose_a ? ", a transposed" : "") +
         (c.op.transpose_b ? ", b transposed" : "") + (c.keeps ? ", keeps" : "");
}

/// What the operators give one after another.
std::vector<testing::array> by_operators(product_case const& c, std::vector<testing::array> const& in) {
  auto const run = [](auto const& one, std::vector<testing::array> of) {
    return testing::detail::run(view_of(one), host_kernel(facets_of<std::decay_t<decltype(one)>>), std::move(of))[0];
  };
  auto const y = run(op::matmul{c.op.transpose_a, c.op.transpose_b}, {in[0], in[1]});
  switch (c.kind) {
    case product_kind::bias: return {run(op::add{}, {y, in[2]})};
    case product_kind::gelu_grad: return {run(op::gelu_grad{true}, {y, in[2]})};
    case product_kind::gelu_grad_sums: {
      auto const slope = run(op::gelu_grad{true}, {y, in[2]});
      return {slope, run(op::sum_to{{slope.layout.type.dims.back()}}, {slope})};
    }
    case product_kind::sums_of_a: return {y, run(op::sum_to{{in[0].layout.type.dims[1]}}, {in[0]})};
    case product_kind::sums_of_b: return {y, run(op::sum_to{{in[1].layout.type.dims[1]}}, {in[1]})};
    default: break;
  }
  auto const sum = run(op::add{}, {y, in[2]});
  auto const bent = c.kind == product_kind::bias_relu ? run(op::relu{}, {sum}) : run(op::gelu{true}, {sum});
  return c.keeps ? std::vector{bent, sum} : std::vector{bent};
}

bool equal_bits(testing::array const& a, testing::array const& b) {
  return std::memcmp(a.ref().data, b.ref().data, static_cast<std::size_t>(a.layout.type.bytes())) == 0;
}

std::string refusal(op::fused const& op, std::vector<tensor_type> const& types) {
  std::vector<tensor_layout> in;
  for (auto const& t : types) in.push_back(tensor_layout::dense(t));
  return message_of([&] {
    shape_context c("fused", in);
    op.infer(c);
  });
}

}  // namespace

TEST_CASE("products with an epilogue: values, views, parts") {
  for (auto const& c : all_products(dtype::f64)) {
    CAPTURE(text_of(c));
    for (std::int64_t const batches : {0, 2}) {
      if (batches > 0 && c.op.summed() >= 0) continue;
      int const cuts =
          check_operator(c.op, operands(c, batches, 4, 6, 8),
                         [&](arrays const& in) { return expected(c, in, std::max<std::int64_t>(batches, 1), 4, 6, 8); },
                         {.f32 = false});
      CHECK(cuts >= 2);  // rows and columns; of sums, one of these and the inner axis
    }
  }
  auto const biased = all_products(dtype::f64)[0];
  for (auto const& [m, k] : {std::pair<std::int64_t, std::int64_t>{3, 0}, {0, 3}})
    check_operator(biased.op, operands(biased, 0, m, 2, k),
                   [&](arrays const& in) { return expected(biased, in, 1, m, 2, k); }, {.f32 = false});
}

TEST_CASE("a product with an epilogue has the bits of the operators one after another") {
  random_stream draw(3);
  for (auto const t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
    for (auto const& c : all_products(t))
      for (auto const& [m, n, k] : {std::array<std::int64_t, 3>{5, 7, 9}, {130, 70, 33}, {1, 1100, 3}}) {
        CAPTURE(text_of(c));
        CAPTURE(name_of(t));
        CAPTURE(n);
        std::vector<testing::array> in;
        for (auto const& o : operands(c, 0, m, n, k)) {
          in.emplace_back(tensor_layout::dense({t, o.dims}));
          for (std::int64_t i = 0; i < in.back().count(); ++i)
            in.back().set(i, 4 * static_cast<double>(draw.uniform()) - 2);
        }
        auto const got = testing::detail::run(view_of(c.op), host_kernel(facets_of<op::fused>), in);
        auto const one_by_one = by_operators(c, in);
        REQUIRE(got.size() == one_by_one.size());
        for (std::size_t j = 0; j < got.size(); ++j) CHECK(equal_bits(got[j], one_by_one[j]));
      }
}

TEST_CASE("what does not fit a product with an epilogue is refused") {
  auto const f32 = [](shape const& s) { return tensor_type{dtype::f32, s}; };
  auto op = product_of_kind({}, product_kind::bias, dtype::f32);
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) == "no error");
  CHECK(refusal(op, {f32({2, 3}), f32({5, 4}), f32({4})}) == "fused: matmul: inner extents differ, [2,3] x [5,4]");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({2, 2, 4})}) == "fused: its epilogue makes f32[2,2,4] of f32[2,4]");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({5})}).starts_with("fused: step 0: add: "));
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4})}) == "fused: matmul: takes 2 inputs, got 1");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), {dtype::bf16, {4}}}).starts_with("fused: "));
  op.keeps_step = true;
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) == "fused: it keeps what its activation reads, and has none");
  op = product_of_kind({}, product_kind::sums_of_a, dtype::f32);
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4})}) ==
        "fused: sums are over the first axis, which of input 0 is not the inner one");
  op = product_of_kind({true, false}, product_kind::sums_of_a, dtype::f32);
  CHECK(refusal(op, {f32({2, 3, 2}), f32({3, 4})}) == "fused: sums need operands of two axes, got [2,3,2] x [3,4]");
  op.epilogue = product_of_kind({}, product_kind::bias, dtype::f32).epilogue;
  CHECK(refusal(op, {f32({3, 2}), f32({3, 4}), f32({4})}) ==
        "fused: a product has steps after it, or sums of an operand");
  op = op::fused::of(op::matmul{});
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4})}) == "fused: a product has steps after it, or sums of an operand");
  op.sums = static_cast<product_sums>(17);
  CHECK(refusal(op, {f32({3, 2}), f32({3, 4})}) == "fused: it has sums of no product");
  op = op::fused::of(op::sum{}), op.sums = product_sums::of_result;
  CHECK(refusal(op, {f32({3, 2})}) == "fused: it has sums of no product");
  op = product_of_kind({}, product_kind::bias, dtype::f32), op.middle = static_cast<anchor>(-1);
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) == "fused: there is no anchor -1");
}
