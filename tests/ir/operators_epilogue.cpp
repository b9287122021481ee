#include <neap/ir/operators/matmul_epilogue.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
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
std::vector<testing::operand> operands(op::matmul_epilogue const& op, std::int64_t batches, std::int64_t m,
                                       std::int64_t n, std::int64_t k) {
  shape a = op.transpose_a ? shape{k, m} : shape{m, k};
  shape const b = op.transpose_b ? shape{n, k} : shape{k, n};
  shape y{m, n};
  if (batches > 0) a.insert(0, batches), y.insert(0, batches);
  std::vector<testing::operand> all{{a}, {b}};
  if (op.is_gelu_gradient()) all.push_back({y, -3, 3});
  else if (op.summed() < 0) all.push_back({{n}});
  return all;
}
numbers expected(op::matmul_epilogue const& op, arrays const& in, std::int64_t batches, std::int64_t m, std::int64_t n,
                 std::int64_t k) {
  numbers out(op.keeps || op.has_sums() ? 2 : 1);
  auto const &a = in[0], &b = in[1];
  for (std::int64_t p = 0; p < batches; ++p)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double x = 0;
        for (std::int64_t l = 0; l < k; ++l)
          x += a[p * m * k + (op.transpose_a ? l * m + i : i * k + l)] * b[op.transpose_b ? j * k + l : l * n + j];
        switch (op.follows()) {
          case epilogue::gelu_grad:
          case epilogue::gelu_grad_sums: x *= slope_of(in[2][(p * m + i) * n + j]); break;
          case epilogue::sums_of_a:
          case epilogue::sums_of_b: break;
          default:
            x += in[2][j];
            if (op.keeps) out[1].push_back(x);
            if (op.follows() == epilogue::bias_relu) x = std::max(x, 0.0);
            if (op.follows() == epilogue::bias_gelu) x = gelu_of(x);
        }
        out[0].push_back(x);
      }
  if (int const sums = op.summed(); sums >= 0)
    for (std::int64_t j = 0; j < (sums == 0 ? m : n); ++j) {
      double x = 0;
      for (std::int64_t l = 0; l < k; ++l) x += in[static_cast<std::size_t>(sums)][l * (sums == 0 ? m : n) + j];
      out[1].push_back(x);
    }
  if (op.follows() == epilogue::gelu_grad_sums)
    for (std::int64_t j = 0; j < n; ++j) {
      double x = 0;
      for (std::int64_t i = 0; i < batches * m; ++i) x += out[0][static_cast<std::size_t>(i * n + j)];
      out[1].push_back(x);
    }
  return out;
}

std::string text_of(op::matmul_epilogue const& op) {
  return "epilogue " + std::to_string(op.kind) + (op.transpose_a ? ", a transposed" : "") +
         (op.transpose_b ? ", b transposed" : "") + (op.keeps ? ", keeps" : "");
}
std::vector<op::matmul_epilogue> all_kinds() {
  std::vector<op::matmul_epilogue> all;
  for (std::int64_t kind = 0; kind <= static_cast<std::int64_t>(epilogue::gelu_grad_sums); ++kind)
    for (bool const ta : {false, true})
      for (bool const tb : {false, true})
        for (bool const keeps : {false, true}) {
          op::matmul_epilogue const op{ta, tb, kind, keeps};
          if ((keeps && !op.has_activation()) || (op.summed() == 0 && !ta) || (op.summed() == 1 && tb)) continue;
          all.push_back(op);
        }
  return all;
}

/// What the operators give one after another.
std::vector<testing::array> by_operators(op::matmul_epilogue const& op, std::vector<testing::array> const& in) {
  auto const run = [](auto const& one, std::vector<testing::array> of) {
    return testing::detail::run(view_of(one), host_kernel(facets_of<std::decay_t<decltype(one)>>), std::move(of))[0];
  };
  auto const y = run(op.product(), {in[0], in[1]});
  switch (op.follows()) {
    case epilogue::bias: return {run(op::add{}, {y, in[2]})};
    case epilogue::gelu_grad: return {run(op::gelu_grad{true}, {y, in[2]})};
    case epilogue::gelu_grad_sums: {
      auto const slope = run(op::gelu_grad{true}, {y, in[2]});
      return {slope, run(op::sum_to{{slope.layout.type.dims.back()}}, {slope})};
    }
    case epilogue::sums_of_a: return {y, run(op::sum_to{{in[0].layout.type.dims[1]}}, {in[0]})};
    case epilogue::sums_of_b: return {y, run(op::sum_to{{in[1].layout.type.dims[1]}}, {in[1]})};
    default: break;
  }
  auto const sum = run(op::add{}, {y, in[2]});
  auto const bent = op.follows() == epilogue::bias_relu ? run(op::relu{}, {sum}) : run(op::gelu{true}, {sum});
  return op.keeps ? std::vector{bent, sum} : std::vector{bent};
}

bool equal_bits(testing::array const& a, testing::array const& b) {
  return std::memcmp(a.ref().data, b.ref().data, static_cast<std::size_t>(a.layout.type.bytes())) == 0;
}

std::string refusal(op::matmul_epilogue const& op, std::vector<tensor_type> const& types) {
  std::vector<tensor_layout> in;
  for (auto const& t : types) in.push_back(tensor_layout::dense(t));
  return message_of([&] {
    shape_context c("matmul_epilogue", in);
    op.infer(c);
  });
}

}  // namespace

TEST_CASE("products with an epilogue: values, views, parts") {
  for (auto const& op : all_kinds()) {
    CAPTURE(text_of(op));
    for (std::int64_t const batches : {0, 2}) {
      if (batches > 0 && op.summed() >= 0) continue;
      int const cuts = check_operator(op, operands(op, batches, 4, 6, 8), [&](arrays const& in) {
        return expected(op, in, std::max<std::int64_t>(batches, 1), 4, 6, 8);
      });
      CHECK(cuts >= 2);  // rows and columns; of sums, one of these and the inner axis
    }
  }
  op::matmul_epilogue const empty{};
  check_operator(empty, operands(empty, 0, 3, 2, 0), [&](arrays const& in) { return expected(empty, in, 1, 3, 2, 0); });
  check_operator(empty, operands(empty, 0, 0, 2, 3), [&](arrays const& in) { return expected(empty, in, 1, 0, 2, 3); });
}

TEST_CASE("a product with an epilogue has the bits of the operators one after another") {
  random_stream draw(3);
  for (auto const& op : all_kinds())
    for (auto const t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
      for (auto const& [m, n, k] : {std::array<std::int64_t, 3>{5, 7, 9}, {130, 70, 33}, {1, 1100, 3}}) {
        CAPTURE(text_of(op));
        CAPTURE(name_of(t));
        CAPTURE(n);
        std::vector<testing::array> in;
        for (auto const& o : operands(op, 0, m, n, k)) {
          in.emplace_back(tensor_layout::dense({t, o.dims}));
          for (std::int64_t i = 0; i < in.back().count(); ++i)
            in.back().set(i, 4 * static_cast<double>(draw.uniform()) - 2);
        }
        auto const got = testing::detail::run(view_of(op), host_kernel(facets_of<op::matmul_epilogue>), in);
        auto const one_by_one = by_operators(op, in);
        REQUIRE(got.size() == one_by_one.size());
        for (std::size_t j = 0; j < got.size(); ++j) CHECK(equal_bits(got[j], one_by_one[j]));
      }
}

TEST_CASE("what does not fit a product with an epilogue is refused") {
  auto const f32 = [](shape const& s) { return tensor_type{dtype::f32, s}; };
  op::matmul_epilogue op;
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) == "no error");
  CHECK(refusal(op, {f32({2, 3}), f32({5, 4}), f32({4})}) == "matmul_epilogue: inner extents differ, [2,3] x [5,4]");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({2, 4})}) ==
        "matmul_epilogue: the bias must have shape [4], got f32[2,4]");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4})}) == "matmul_epilogue: takes 3 inputs, got 2");
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), {dtype::bf16, {4}}}).starts_with("matmul_epilogue: "));
  op.keeps = true;
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) ==
        "matmul_epilogue: keeps what its activation reads, and has none");
  op = op::matmul_epilogue::of({}, epilogue::gelu_grad);
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4}), f32({4})}) == "matmul_epilogue: types differ, f32[4] and f32[2,4]");
  op = op::matmul_epilogue::of({}, epilogue::sums_of_a);
  CHECK(refusal(op, {f32({2, 3}), f32({3, 4})}) ==
        "matmul_epilogue: sums are over the first axis, which of input 0 is not the inner one");
  op = op::matmul_epilogue::of({true, false}, epilogue::sums_of_a);
  CHECK(refusal(op, {f32({2, 3, 2}), f32({3, 4})}) ==
        "matmul_epilogue: sums need operands of two axes, got [2,3,2] x [3,4]");
  op.kind = 17;
  CHECK(refusal(op, {f32({3, 2}), f32({3, 4})}) == "matmul_epilogue: there is no epilogue 17");
  op.kind = -1;
  CHECK(refusal(op, {f32({3, 2}), f32({3, 4})}) == "matmul_epilogue: there is no epilogue -1");
}
