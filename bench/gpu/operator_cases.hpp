// One small graph for each standard operator: what bench/gpu/check.cpp computes on the host, writes down, and compares with
// a GPU's results.
#pragma once

#include <neap/cuda/executable.hpp>
#include <neap/execute/executable.hpp>
#include <neap/execute/plan_like.hpp>

#include <neap/backend/kernels/conv2d.hpp>
#include <neap/core/byte_block.hpp>
#include <neap/core/philox.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include "../../tests/support/fused_products.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace neap::bench {

/// An input: uniform in [low, high); of whole numbers rounded down.
struct operand {
  shape dims;
  double low = -1, high = 1;
  dtype element = dtype::f32;
};

struct operator_case {
  std::string name;
  graph program;
  std::vector<operand> in;
};

/// A graph of one op whose outputs are all kept.
template <class Op>
void add_case(std::vector<operator_case>& to, Op const& op, std::vector<operand> const& in,
              std::string const& variant = "") {
  graph_editor e{operator_table(standard_operators::facets)};
  std::vector<value_id> sources;
  for (std::size_t i = 0; i < in.size(); ++i)
    sources.push_back(e.add_source(role::weight, {in[i].element, in[i].dims}, "in" + std::to_string(i)));
  auto const outputs = e.add(op, std::span<value_id const>(sources));
  for (auto v : outputs) e.keep(v, role::output);
  to.push_back({std::string(Op::name) + variant, graph(std::move(e).finish()), in});
}

/// Extents are odd where an operator allows it, so that rows do not fill packs and warps.
inline std::vector<operator_case> operator_cases() {
  std::vector<operator_case> all;
  auto const add = [&](auto const& op, std::vector<operand> const& in, std::string const& variant = "") {
    add_case(all, op, in, variant);
  };
  shape const x{37, 129}, rows{37}, n{129};
  operand const step{{}, 3, 4, dtype::i64}, labels{rows, 0, 129, dtype::i64};
  // movement
  add(op::copy{}, {{x}});
  add(op::cast{dtype::f64}, {{x}});
  add(op::fill{extents{7, 9}, dtype::f32, 2.5}, {});
  add(op::pad{1, 2, 3, 0.5}, {{x}});
  add(op::concat{1}, {{x}, {x}});
  add(op::sum_to{extents{37, 1}}, {{x}});
  add(op::triangle{}, {{x}});
  // scalar functions
  add(op::neg{}, {{x}}), add(op::exp{}, {{x}}), add(op::log{}, {{x, 0.1, 3}}), add(op::sqrt{}, {{x, 0.1, 3}});
  add(op::rsqrt{}, {{x, 0.1, 3}}), add(op::reciprocal{}, {{x, 0.5, 3}}), add(op::abs{}, {{x}}),
      add(op::square{}, {{x}});
  add(op::tanh{}, {{x}}), add(op::sigmoid{}, {{x}}), add(op::relu{}, {{x}}), add(op::gelu{}, {{x, -3, 3}});
  add(op::silu{}, {{x, -3, 3}}), add(op::erf{}, {{x}}), add(op::softplus{}, {{x, -3, 3}}), add(op::sin{}, {{x}});
  add(op::cos{}, {{x}}), add(op::add_scalar{0.3}, {{x}}), add(op::mul_scalar{0.3}, {{x}}), add(op::sign{}, {{x}});
  add(op::floor{}, {{x, -3, 3}}), add(op::round{}, {{x, -3, 3}}), add(op::clamp{-0.5, 0.5}, {{x}});
  add(op::gelu_grad{}, {{x}, {x, -3, 3}}), add(op::relu_grad{}, {{x}, {x}}), add(op::silu_grad{}, {{x}, {x, -3, 3}});
  add(op::tanh_grad{}, {{x}, {x}}), add(op::sigmoid_grad{}, {{x}, {x, 0.1, 0.9}});
  // arithmetic, comparison, choice
  add(op::add{}, {{x}, {x}}), add(op::add{}, {{x}, {n}}, " of a row"), add(op::sub{}, {{x}, {x}});
  add(op::mul{}, {{x}, {x}}), add(op::div{}, {{x}, {x, 0.5, 2}}), add(op::maximum{}, {{x}, {x}});
  add(op::minimum{}, {{x}, {x}}), add(op::greater{}, {{x}, {x}}),
      add(op::equal{}, {{x, 0, 2, dtype::i64}, {x, 0, 2, dtype::i64}});
  add(op::where{}, {{x, 0, 2, dtype::boolean}, {x}, {x}});
  // products and reductions
  add(op::matmul{}, {{{37, 65}}, {{65, 129}}}),
      add(op::matmul{true, false}, {{{65, 37}}, {{65, 129}}}, " a transposed");
  add(op::matmul{false, true}, {{{37, 65}}, {{129, 65}}}, " b transposed");
  add(op::matmul{}, {{{3, 37, 65}}, {{3, 65, 129}}}, " of a batch");
  using testing::product_kind, testing::product_of_kind;
  for (auto const kind : {product_kind::bias, product_kind::bias_relu, product_kind::bias_gelu})
    for (bool const keeps : {false, true})
      if (!keeps || kind != product_kind::bias)
        add(product_of_kind({false, true}, kind, dtype::f32, keeps), {{{37, 64}}, {{128, 64}}, {{128}}},
            " " + std::to_string(static_cast<int>(kind)) + (keeps ? " keeps" : ""));
  add(product_of_kind({}, product_kind::gelu_grad, dtype::f32), {{{37, 64}}, {{64, 128}}, {{37, 128}, -3, 3}},
      " of gelu");
  add(product_of_kind({}, product_kind::gelu_grad_sums, dtype::f32), {{{37, 64}}, {{64, 128}}, {{37, 128}, -3, 3}},
      " of gelu with sums");
  add(product_of_kind({true, false}, product_kind::sums_of_a, dtype::f32), {{{65, 37}}, {{65, 129}}}, " sums of a");
  add(product_of_kind({true, false}, product_kind::sums_of_b, dtype::f32), {{{65, 37}}, {{65, 129}}}, " sums of b");
  add(op::sum{{1}, false}, {{x}}), add(op::sum{{0}, false}, {{x}}, " of columns"), add(op::mean{{0, 1}, false}, {{x}});
  add(op::max_reduce{{1}, false}, {{x}}), add(op::min_reduce{{1}, false}, {{x}}), add(op::arg_max{1}, {{x}});
  add(op::cumsum{1}, {{x}});
  // chains of elementwise operators
  for (dtype const t : {dtype::f32, dtype::bf16}) {
    element_program chain(3);  // gelu((a + b) * c) - a
    int const sum = *chain.add(op::add{}, t, {0, 1}), product = *chain.add(op::mul{}, t, {sum, 2}),
              bent = *chain.add(op::gelu{true}, t, {product});
    chain.add(op::sub{}, t, {bent, 0});
    add(op::fused{chain}, {{x, -1, 1, t}, {x, -1, 1, t}, {n, -1, 1, t}}, std::string(" of ") + std::string(name_of(t)));
  }
  // rows
  add(op::softmax{}, {{x}}), add(op::softmax_grad{}, {{x}, {x, 0, 1}}), add(op::log_softmax{}, {{x}});
  add(op::log_softmax_grad{}, {{x}, {x, -3, 0}}), add(op::layer_norm{}, {{x}, {n}, {n}});
  add(op::layer_norm_grad{}, {{x}, {x}, {rows}, {rows, 0.5, 2}, {n}}), add(op::rms_norm{}, {{x}, {n}});
  add(op::rms_norm_grad{}, {{x}, {x}, {rows, 0.5, 2}, {n}}), add(op::cross_entropy{-100, false}, {{x, -2, 2}, labels});
  add(op::cross_entropy{-100, true}, {{x, -2, 2}, labels}, " of each row"), add(op::mse{}, {{x}, {x}});
  add(op::mse_grad{}, {{{}}, {x}, {x}}), add(op::binary_cross_entropy{}, {{x, -3, 3}, {x, 0, 1}});
  add(op::binary_cross_entropy_grad{}, {{x}, {x, -3, 3}, {x, 0, 1}});
  // rows with elementwise work beside them
  for (dtype const t : {dtype::f32, dtype::bf16}) {
    auto const of = [t](shape const& dims) { return operand{dims, -1, 1, t}; };
    auto const of_type = [t](char const* what) { return std::string(what) + std::string(name_of(t)); };
    element_program sum(2), half(1), scaled(2);
    sum.add(op::add{}, t, {0, 1}), half.add(op::mul_scalar{0.5}, t, {0}), scaled.add(op::mul{}, t, {0, 1});
    auto normed = op::fused::of(op::layer_norm{}), by_root = op::fused::of(op::rms_norm{}),
         gradient = op::fused::of(op::rms_norm_grad{}), scores = op::fused::of(op::softmax{});
    normed.prologue = sum, normed.keeps_x = true;
    by_root.prologue = sum, by_root.epilogue = sum;
    gradient.epilogue = sum;
    scores.prologue = half, scores.epilogue = scaled;
    add(normed, {of(x), of(x), of(n), of(n)}, of_type(" of a sum "));
    add(by_root, {of(x), of(x), of(n), of(x)}, of_type(" between sums "));
    add(gradient, {of(x), of(x), {rows, 0.5, 2}, of(n), of(x)}, of_type(" and a sum "));
    add(scores, {of(x), of(n)}, of_type(" of scores "));
    // reductions of elementwise work
    auto masked = op::fused::of(op::sum{{1}, false}), bias = op::fused::of(op::sum_to{n});
    masked.prologue = scaled;
    bias.prologue = scaled, bias.keeps_x = true;
    add(masked, {of(x), of(n)}, of_type(" of products "));
    add(bias, {of(x), of(x)}, of_type(" of products "));
  }
  // networks
  op::dropout d;
  d.p = 0.25, d.key = 7;
  add(d, {{x}, step});
  add(op::conv2d{}, {{{2, 3, 9, 11}}, {{5, 3, 3, 3}}});
  for (dtype const t : {dtype::f32, dtype::bf16}) {
    auto const of = [&](shape const& dims) { return operand{dims, -1, 1, t}; };
    auto const variant = [&](char const* what) { return std::string(what) + std::string(name_of(t)); };
    auto const convolutions = [&](op::conv2d const& o, shape const& image, shape const& filter, char const* what) {
      shape const result = conv2d_shape(image, filter, op::detail::options_of(o));
      add(o, {of(image), of(filter), of({filter[0]})}, variant(what));
      add(op::conv2d_grad_input{image, o.stride, o.padding, o.dilation, o.groups}, {of(result), of(filter)},
          variant(what));
      add(op::conv2d_grad_weight{filter, o.stride, o.padding, o.dilation, o.groups}, {of(image), of(result)},
          variant(what));
    };
    convolutions({}, {2, 8, 9, 11}, {16, 8, 3, 3}, " ");
    convolutions({{2, 2}, {1, 1}}, {2, 8, 9, 12}, {16, 8, 3, 3}, " of stride 2 ");
    convolutions({{1, 1}, {1, 1}, {2, 2}, 2}, {2, 8, 9, 12}, {16, 4, 3, 3}, " dilated of groups ");
    shape const heads{2, 3, 40, 16};
    operand const lse{{2, 3, 40}, 2, 4};
    for (bool const causal : {false, true}) {
      auto const way = variant(causal ? " causal " : " ");
      add(op::attention{causal}, {of(heads), of(heads), of(heads)}, way);
      add(op::attention_grad{causal}, {of(heads), of(heads), of(heads), of(heads), of(heads), lse}, way);
    }
  }
  add(op::batch_norm{}, {{{4, 5, 6, 7}}, {{5}}, {{5}}}), add(op::group_norm{2}, {{{4, 6, 5, 7}}});
  add(op::batch_norm_grad{}, {{{4, 5, 6, 7}}, {{4, 5, 6, 7}}, {{5}}, {{5}, 0.5, 2}, {{5}}});
  add(op::adaptive_avg_pool2d{}, {{{2, 3, 9, 11}}}), add(op::interpolate{18, 22}, {{{2, 3, 9, 11}}});
  // picking
  add(op::embedding{}, {{{50, 65}}, {{37}, 0, 50, dtype::i64}}),
      add(op::one_hot{50, dtype::f32}, {{{37}, 0, 50, dtype::i64}});
  // updates
  add(op::sgd{0.1, 0.01}, {{x}, {x}}), add(op::momentum{0.1, 0.9, 0, 0.01, false}, {{x}, {x}, {x}});
  add(op::adam{}, {{x}, {x}, {x}, {x, 0, 1}, step}), add(op::adamw{}, {{x}, {x}, {x}, {x, 0, 1}, step});
  add(op::muon{}, {{{37, 29}}, {{37, 29}}, {{37, 29}}});
  add(op::matmul_update<op::sgd>{{0.1, 0.01}, false, true}, {{x}, {{37, 65}}, {{129, 65}}});
  add(op::matmul_update<op::momentum>{{}, true, false}, {{x}, {{65, 37}}, {{65, 129}}, {x}});
  add(op::matmul_update<op::adam>{}, {{x}, {{37, 65}}, {{65, 129}}, {x}, {x, 0, 1}, step});
  add(op::matmul_update<op::adamw>{{}, false, false, 3}, {{x}, {{37, 65}}, {{65, 129}}, {x}, {x, 0, 1}, step});
  add(op::matmul_update<op::lion>{}, {{x}, {{37, 65}}, {{65, 129}}, {x}});
  add(op::lion{}, {{x}, {x}, {x}}), add(op::increment{}, {step}), add(op::accumulate{}, {{x}, {x}});
  add(op::assign{}, {{x}, {x}}), add(op::sum_squares{}, {{x}}), add(op::scale_by{}, {{x}, {{}}});
  return all;
}

/// The bytes of a case's inputs, the same on every machine.
inline std::vector<std::vector<std::byte>> operands_of(operator_case const& c) {
  std::uint64_t seed = 1469598103934665603u;
  for (char const letter : c.name) seed = (seed ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  random_stream draw(seed);
  std::vector<std::vector<std::byte>> all;
  for (auto const& x : c.in) {
    tensor_type const t{x.element, x.dims};
    std::vector<std::byte> bytes(static_cast<std::size_t>(t.bytes()));
    for (std::int64_t i = 0; i < t.count(); ++i) {
      double const number = x.low + (x.high - x.low) * static_cast<double>(draw.uniform());
      auto const put = [&](auto y) {
        std::memcpy(bytes.data() + i * static_cast<std::int64_t>(sizeof y), &y, sizeof y);
      };
      if (x.element == dtype::i64) put(static_cast<std::int64_t>(number));
      else if (x.element == dtype::boolean) put(static_cast<std::uint8_t>(number));
      else if (x.element == dtype::f64) put(number);
      else if (x.element == dtype::bf16) put(bf16(static_cast<float>(number)));
      else if (x.element == dtype::f16) put(f16(static_cast<float>(number)));
      else put(static_cast<float>(number));
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

using bytes_list = std::vector<std::vector<std::byte>>;

/// The outputs of a case on a backend.
template <class Backend>
bytes_list run_case(operator_case const& c, Backend& backend) {
  auto in = operands_of(c);
  std::vector<byte_block> memory;
  std::vector<source_binding> bound;
  auto const plan = plan_in_order(c.program);
  for (std::size_t i = 0; i < in.size(); ++i) {
    memory.emplace_back(std::max<std::size_t>(in[i].size(), 1), 64);
    std::memcpy(memory.back().data(), in[i].data(), in[i].size());
    bound.push_back({plan.graph.sources()[i], memory.back().data()});
  }
  executable<Backend> run(plan, bound, backend, {.graph = false});
  run();
  bytes_list out;
  for (auto v : plan.graph.kept()) {
    auto const t = run.value(v);
    auto const size = static_cast<std::size_t>(size_of(t.element));
    auto& bytes = out.emplace_back(static_cast<std::size_t>(t.count()) * size);
    for (std::int64_t i = 0; i < t.count(); ++i) {  // in the order of indices, whatever the layout
      std::int64_t at = 0, rest = i;
      for (int k = t.rank(); k-- > 0;) at += rest % t.dims[k] * t.strides[k], rest /= t.dims[k];
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size,
                  static_cast<std::byte const*>(t.data) + at * static_cast<std::int64_t>(size), size);
    }
  }
  return out;
}

/// How far results may be apart: f32 by the order of sums, 16 bits by their rounding, also of values between products.
inline double tolerance(dtype t) { return t == dtype::bf16 ? 2e-2 : t == dtype::f16 ? 3e-3 : 1e-5; }

/// The largest difference, as a part of the largest element; of whole numbers 0 or infinite.
inline double difference(std::vector<std::byte> const& a, std::vector<std::byte> const& b, dtype t) {
  if (a.size() != b.size()) return INFINITY;
  if (!is_floating(t)) return a == b ? 0 : INFINITY;
  double largest = 1e-30, worst = 0;
  with_floating(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
      T x, y;
      std::memcpy(&x, a.data() + i, sizeof x), std::memcpy(&y, b.data() + i, sizeof y);
      auto const p = static_cast<double>(x), q = static_cast<double>(y);
      if (std::isnan(p) != std::isnan(q)) worst = INFINITY;
      else if (!std::isnan(p) && p != q) worst = std::max(worst, std::abs(p - q));
      if (std::isfinite(p)) largest = std::max(largest, std::abs(p));
    }
  });
  return worst / largest;
}

}  // namespace neap::bench
