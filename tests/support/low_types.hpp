// Every function in bf16 and f16, and its gradients, beside what f64 gives of the same numbers: a row each, with some thousand
// elements in several magnitudes, and the bound that it keeps. Without a remark that is one rounding. Gradients in f64 are
// checked against difference quotients in tests/ir (operator_check.hpp) and tests/model/functions.cpp.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/model/functions.hpp>
#include <neap/train/grad.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace neap_test::low_types {

using namespace neap;

/// An argument: numbers uniform in [low, high), times `scale`; or whole numbers in [0, below), or booleans (below = 2).
struct argument {
  shape dims;
  double low = -3, high = 3;
  std::int64_t below = 0;
};
using arguments = std::vector<tensor>;

/// How far results may be off.
struct bound {
  double result = 1, slope = 1;  // roundings of the result and of gradients
  bool of_largest = false;       // roundings are of the largest element, not of each
  bool sums = false;             // f32's own error is of the largest element: numbers are added up, or nearly cancel
};
inline bound const added{.sums = true};
inline bound const and_bias{.result = 2, .of_largest = true, .sums = true};  // the product, and the sum with the bias
// The scores are rounded, of which weights are the exponentials; so are weights, and what softmax's gradient reads.
inline bound const of_scores{.result = 4, .slope = 5, .of_largest = true, .sums = true};

struct row {
  char const* name;
  tensor (*f)(arguments const&);
  std::vector<argument> in;
  std::vector<double> scales{1};
  bound within{};
};

inline std::vector<double> const wide{1, 64, 0x1p-10};
inline tensor const step = tensor::full({}, 0, dtype::i64);
inline argument const heads{{2, 4, 40, 24}, -1, 1};
inline shape const flat{10000}, matrix{100, 128}, image{4, 8, 20, 20};

#define OF_ONE(NAME) #NAME, [](arguments const& x) { return NAME(x[0]); }
#define OF_TWO(NAME) #NAME, [](arguments const& x) { return NAME(x[0], x[1]); }
#define CALL(TEXT) [](arguments const& x) { return TEXT; }

// clang-format off
inline std::vector<row> const& all_rows() {
  static std::vector<row> const rows{
    {OF_ONE(neg), {{flat}}, wide}, {OF_ONE(abs), {{flat}}, wide}, {OF_ONE(square), {{flat}}, wide},
    {OF_ONE(relu), {{flat}}, wide}, {OF_ONE(silu), {{flat}}, wide}, {OF_ONE(erf), {{flat}}},
    {OF_ONE(softplus), {{flat}}, wide}, {OF_ONE(sin), {{flat}}, wide}, {OF_ONE(cos), {{flat}}, wide},
    {OF_ONE(sign), {{flat}}, wide}, {OF_ONE(floor), {{flat}}, wide}, {OF_ONE(ceil), {{flat}}, wide}, {OF_ONE(round), {{flat}}, wide},
    {OF_ONE(tanh), {{flat, -9, 9}}, {1, 0x1p-10}}, {OF_ONE(sigmoid), {{flat, -16, 16}}, {1, 0x1p-10}},
    {OF_ONE(log), {{flat, 0.1, 3}}, wide}, {OF_ONE(rsqrt), {{flat, 0.1, 3}}, wide},
    {OF_ONE(reciprocal), {{flat, 0.1, 3}}, wide},
    {OF_ONE(exp), {{flat}}}, {OF_ONE(sqrt), {{flat, 0.1, 3}}, wide},
    {"elu", CALL(elu(x[0], 1.3)), {{flat, -9, 9}}, {1, 0x1p-10}}, {"leaky_relu", CALL(leaky_relu(x[0], 0.03)), {{flat}}, wide},
    {"clamp", CALL(clamp(x[0], -0.9, 0.7)), {{flat}}}, {"clamp", CALL(clamp(x[0], op::clamp{.low = -1})), {{flat}}},
    {"gelu", CALL(gelu(x[0])), {{flat}}, {1}, added}, {"gelu", CALL(gelu(x[0], true)), {{flat}}, {1}, added},
    {"pow", CALL(pow(x[0], 2.5)), {{flat, 0.1, 3}}, {1, 16}}, {"pow", CALL(pow(x[0], -1.5)), {{flat, 0.1, 3}}, {1, 16}},
    {"pow", CALL(apply(op::pow_op{}, {x[0], x[1]})), {{flat, 0.1, 3}, {flat}}},
    {"scalar", CALL(1e5 / x[0]), {{flat, 100, 9000}}}, {"scalar", CALL(3 - x[0] * 0.3), {{flat}}, {1}, {.result = 2}},
    {"scalar", CALL(x[0] / 7), {{flat}}, wide},
    {OF_TWO(add), {{flat}, {flat}}, wide}, {OF_TWO(mul), {{flat}, {flat}}, wide},
    {"sub", CALL(x[0] - x[1]), {{flat}, {flat}}, wide}, {"div", CALL(x[0] / x[1]), {{flat}, {flat, 0.1, 3}}, wide},
    {OF_TWO(maximum), {{flat}, {flat}}, wide}, {OF_TWO(minimum), {{flat}, {flat}}, wide},
    {"where", CALL(where(x[0], x[1], x[2])), {{flat, 0, 0, 2}, {flat}, {flat}}},
    {"masked_fill", CALL(masked_fill(x[0], x[1], -3)), {{flat}, {flat, 0, 0, 2}}},
    // A gradient of what was broadcast: each of its terms is rounded.
    {"mul", CALL(x[0] * x[1]), {{matrix}, {{128}}}, {1}, {.slope = 2, .of_largest = true}},

    {"sum", CALL(sum(x[0])), {{flat}}, wide, added}, {"sum", CALL(sum(x[0], {0})), {{matrix}}, wide, added},
    {"mean", CALL(mean(x[0])), {{flat}}, wide, added}, {"cumsum", CALL(cumsum(x[0], 0)), {{matrix}}, {1}, added},
    {"max", CALL(max(x[0], {1})), {{{20, 5000}}}, wide}, {"min", CALL(min(x[0])), {{flat}}, wide},
    {"var", CALL(var(x[0], {1})), {{{9, 5000}}}, wide, added}, {"stddev", CALL(stddev(x[0], {1})), {{{9, 5000}}}, wide, added},
    {"logsumexp", CALL(logsumexp(x[0], {1})), {{{2, 70000}}}, {1, 8}},
    {"norm", CALL(norm(x[0])), {{flat}}, wide}, {"norm", CALL(norm(x[0], 3, {1})), {{{9, 5000}}}, wide},
    {"norm", CALL(norm(x[0], 1)), {{flat}}, {1}}, {"norm", CALL(norm(x[0], 0)), {{flat}}, {1}},
    {"norm", CALL(norm(x[0], 0.5, {1})), {{{100, 100}}}, {1}}, {"norm", CALL(norm(x[0], -2, {1})), {{matrix, 0.1, 3}}, wide},
    {"norm", CALL(norm(x[0], -INFINITY, {1})), {{matrix}}, wide}, {"norm", CALL(norm(x[0], INFINITY)), {{flat}}, wide},
    {"prod", CALL(prod(x[0], {1})), {{{8, 2000}, 0.9, 1.09}}, {1}, added},
    {"cosine_similarity", CALL(cosine_similarity(x[0], x[1])), {{{9, 2000}}, {{9, 2000}}}, wide, added},

    {"log_softmax", CALL(log_softmax(x[0])), {{matrix}}, {1, 8}, added},
    // y (g - sum(g y)) of rounded y, as PyTorch has it: what would read the argument keeps it besides.
    {"softmax", CALL(softmax(x[0])), {{matrix}}, {1, 8}, {.slope = 3, .of_largest = true}},
    {"layer_norm", CALL(layer_norm(x[0], x[1], x[2])), {{matrix}, {{128}}, {{128}}}, wide, added},
    {"rms_norm", CALL(rms_norm(x[0], x[1])), {{matrix}, {{128}}}, wide, added},
    {"cross_entropy", CALL(cross_entropy_loss(x[0], x[1])), {{matrix}, {{100}, 0, 0, 128}}, {1, 8}, added},
    {"mse", CALL(mse_loss(x[0], x[1])), {{flat}, {flat}}, wide},
    {"binary_cross_entropy_with_logits", CALL(binary_cross_entropy_with_logits_loss(x[0], x[1])), {{flat}, {flat, 0, 1}}, {1}, added},
    {"binary_cross_entropy", CALL(binary_cross_entropy_loss(x[0], x[1])), {{flat, 0.1, 0.9}, {flat, 0, 1}}},
    {"kl_divergence", CALL(kl_divergence_loss(x[0], x[1])), {{matrix, -3, 0}, {matrix, 0.1, 1}}, {1}, added},
    {"huber", CALL(huber_loss(x[0], x[1], 0.7)), {{flat}, {flat}}, wide},
    {"l1", CALL(l1_loss(x[0], x[1])), {{flat}, {flat}}},
    {"nll", CALL(nll_loss(x[0], x[1])), {{matrix}, {{100}, 0, 0, 128}}, {1}, added},
    {"smooth_l1", CALL(smooth_l1_loss(x[0], x[1], 0.01)), {{flat}, {flat}}, wide},

    {"embedding", CALL(embedding(x[0], x[1])), {{{7, 8}}, {flat, 0, 0, 7}}, {1}, added},
    {"gather", CALL(gather(x[0], x[1], 0)), {{{5, 3}}, {{4000, 3}, 0, 0, 5}}, {1}, added},
    {"index_select", CALL(index_select(x[0], x[1])), {{{5, 3}}, {{4000}, 0, 0, 5}}, {1}, added},
    {"index_add", CALL(index_add(x[0], x[1], x[2])), {{{5, 3}}, {{4000}, 0, 0, 5}, {{4000, 3}}}, {1}, added},
    {"index_add", CALL(index_add(x[0], x[1], x[2], 1)), {{{30, 5, 8}}, {{900}, 0, 0, 5}, {{30, 900, 8}}}, {1}, added},
    {"scatter", CALL(scatter(x[0], x[1], x[2])), {{{4000, 3}}, {{50, 3}, 0, 0, 4000}, {{50, 3}}}, {1}, added},
    {"repeat", CALL(repeat(x[0], {2, 1})), {{matrix}}, {1}, {.slope = 2, .of_largest = true}},
    {"flip", CALL(flip(x[0])), {{matrix}}}, {"roll", CALL(roll(x[0], {3}, {1})), {{matrix}}},
    {"topk", CALL(topk(x[0], 9).values), {{matrix}}}, {"sort", CALL(sort(x[0]).values), {{matrix}}},

    // A gradient of several uses of one tensor is rounded once a use besides.
    {"matmul", CALL(matmul(x[0], x[1])), {{matrix}, {{128, 90}}}, wide, added},
    {"linear", CALL(linear(x[0], x[1], x[2])), {{matrix}, {{90, 128}}, {{90}}}, {1}, and_bias},
    {"einsum", CALL(einsum("ij,kj->ik", x[0], x[1])), {{matrix}, {{90, 128}}}, {1}, added},
    {"conv2d", CALL(conv2d(x[0], x[1], x[2])), {{image}, {{6, 8, 3, 3}}, {{6}}}, {1}, added},
    {"conv1d", CALL(conv1d(x[0], x[1], x[2])), {{{4, 8, 400}}, {{6, 8, 3}}, {{6}}}, {1}, added},
    {"conv3d", CALL(conv3d(x[0], x[1], x[2])), {{{2, 3, 8, 16, 16}}, {{4, 3, 3, 3, 3}}, {{4}}}, {1}, {.result = 2, .slope = 2, .of_largest = true, .sums = true}},  // planes are added
    {"conv_transpose2d", CALL(conv_transpose2d(x[0], x[1], x[2])), {{image}, {{8, 6, 3, 3}}, {{6}}}, {1}, and_bias},
    {"conv_transpose1d", CALL(conv_transpose1d(x[0], x[1], x[2])), {{{4, 8, 400}}, {{8, 6, 3}}, {{6}}}, {1}, and_bias},
    {"max_pool2d", CALL(max_pool2d(x[0])), {{image}}}, {"avg_pool2d", CALL(avg_pool2d(x[0])), {{image}}},
    {"max_pool1d", CALL(max_pool1d(x[0])), {{{4, 8, 400}}}}, {"avg_pool1d", CALL(avg_pool1d(x[0])), {{{4, 8, 400}}}},
    {"adaptive_avg_pool2d", CALL(adaptive_avg_pool2d(x[0], 3, 3)), {{image}}},
    {"interpolate", CALL(interpolate(x[0], 33, 27, {.bilinear = true})), {{image}}, {1}, added},
    {"batch_norm", CALL(batch_norm(x[0], x[1], x[2], tensor::zeros({8}, computed_in(x[0].element())), tensor::ones({8}, computed_in(x[0].element())))),
     {{image}, {{8}}, {{8}}}, {1}, added},
    {"group_norm", CALL(group_norm(x[0], x[1], x[2], 4)), {{image}, {{8}}, {{8}}}, {1}, added},
    {"dropout", CALL(apply(op::dropout{0.4, 5}, {x[0], step})), {{flat}}, wide},

    {"attention", CALL(attention(x[0], x[1], x[2])), {heads, heads, heads}, {1}, {.slope = 1.5, .of_largest = true, .sums = true}},
    {"attention", CALL(attention(x[0], x[1], x[2], {.causal = true})), {{{2, 4, 8, 24}, -1, 1}, {{2, 2, 40, 24}, -1, 1}, {{2, 2, 40, 24}, -1, 1}}, {1}, added},
    {"plain_attention", CALL(plain_attention(x[0], x[1], x[2], {.causal = true})), {heads, heads, heads}, {1}, of_scores},
    {"masked_attention", CALL(masked_attention(x[0], x[1], x[2], x[3])), {heads, heads, heads, {{2, 40, 40}, 0, 0, 2}}, {1}, of_scores},

    {"contiguous", CALL(contiguous(transpose(x[0]))), {{matrix}}}, {"cast", CALL(cast(cast(x[0], dtype::f32), x[0].element())), {{matrix}}},
    {"copy", CALL(neap::copy(x[0])), {{matrix}}}, {"reshape", CALL(reshape(x[0], {-1})), {{matrix}}}, {"flatten", CALL(flatten(x[0])), {{matrix}}},
    {"permute", CALL(permute(x[0], {1, 0})), {{matrix}}}, {"transpose", CALL(transpose(x[0])), {{matrix}}},
    {"slice", CALL(slice(x[0], 1, 3, 50)), {{matrix}}}, {"select", CALL(select(x[0], 1, 3)), {{matrix}}},
    {"split", CALL(split(x[0], 2, 1)[1]), {{matrix}}}, {"unsqueeze", CALL(unsqueeze(x[0], 1)), {{matrix}}},
    {"squeeze", CALL(squeeze(unsqueeze(x[0], 1), 1)), {{matrix}}},
    {"broadcast_to", CALL(broadcast_to(x[0], {3000, 8})), {{{8}}}, {1}, added},
    {"concat", CALL(concat({x[0], x[1]})), {{matrix}, {matrix}}}, {"stack", CALL(stack({x[0], x[1]})), {{matrix}, {matrix}}},
    {"pad", CALL(pad(x[0], 0, 2, 3)), {{matrix}}}, {"tril", CALL(tril(x[0])), {{matrix}}}, {"triu", CALL(triu(x[0])), {{matrix}}},
  };
  return rows;
}
// clang-format on
#undef OF_ONE
#undef OF_TWO
#undef CALL

/// Half a unit in the last place of a type's numbers about x.
inline double half_unit(dtype t, double x) {
  int const digits = t == dtype::bf16 ? 8 : 11, least = t == dtype::bf16 ? -126 : -14;
  return std::ldexp(1, std::max(x == 0 ? least : std::ilogb(x), least) - digits);
}

/// How far numbers are from the right ones, in roundings: the element that is furthest.
struct distance {
  double roundings = 0, got = 0, right = 0;
};
inline distance furthest(dtype t, std::vector<double> const& got, std::vector<double> const& right, bound const& b) {
  distance worst;
  if (got.size() != right.size()) return {INFINITY, 0, 0};
  double largest = 0, most = t == dtype::bf16 ? 0x1.ffp127 : 65520;
  for (auto e : right) largest = std::max(largest, std::abs(e));
  for (std::size_t i = 0; i < got.size(); ++i) {
    double const e = right[i], unit = half_unit(t, b.of_largest ? largest : e);
    if (std::abs(e) >= most && got[i] == std::copysign(INFINITY, e)) continue;
    double const slack = 3e-6 * (b.of_largest || b.sums ? largest : std::abs(e)), off = std::abs(got[i] - e);
    double const n = off != off ? INFINITY : std::max(0., off - slack) / unit;
    if (n > worst.roundings) worst = {n, got[i], e};
  }
  return worst;
}

inline tensor draw(argument const& a, double scale, std::uint64_t seed) {
  random_stream random(seed, 8);
  std::vector<double> v(static_cast<std::size_t>(elements(a.dims)));
  for (auto& x : v)
    x = a.below ? random.below(static_cast<std::uint32_t>(a.below))
                : (a.low + (a.high - a.low) * static_cast<double>(random.uniform())) * scale;
  tensor const drawn = tensor::from(v, a.dims);
  return a.below ? cast(drawn, a.below == 2 ? dtype::boolean : dtype::i64) : drawn;
}

struct outcome {
  std::vector<double> result;
  std::vector<std::vector<double>> gradients;
};
/// f of arguments in this type, and the gradients of sum(f * g) to them.
inline outcome outcome_of(row const& r, std::vector<tensor> const& given, dtype t, std::uint64_t seed, tensor& g) {
  arguments x;
  std::vector<tensor> wanted;
  for (auto const& a : given) {
    x.push_back(is_floating(a.element()) ? cast(a, t).detach().with_gradient() : a);
    if (is_floating(a.element())) wanted.push_back(x.back());
  }
  tensor const y = r.f(x);
  if (g.is_empty()) g = cast(draw({y.shape(), -1, 1}, 1, seed), t).detach();
  outcome o{y.values<double>(), {}};
  if (!y.wants_gradient()) return o;
  for (auto const& d : grad(sum(cast(y, dtype::f64) * cast(g, dtype::f64)), wanted))
    o.gradients.push_back(d.values<double>());
  return o;
}

/// A row in a type and a magnitude of its arguments, with how far its result and its gradients are off.
struct measured_row {
  row const& of;
  dtype type;
  double scale;
  distance result, slopes;
};
/// f(measured_row) for all rows.
template <class F>
void each_measured_row(F const& f) {
  std::uint64_t seed = 1;
  for (auto const& r : all_rows())
    for (dtype t : {dtype::bf16, dtype::f16})
      for (double scale : r.scales) {
        ++seed;
        std::vector<tensor> given;
        for (std::size_t i = 0; i < r.in.size(); ++i) {
          tensor const x = draw(r.in[i], scale, seed * 16 + i);
          given.push_back(is_floating(x.element()) ? cast(x, t) : x);
        }
        tensor g;
        auto const low = outcome_of(r, given, t, seed, g), right = outcome_of(r, given, dtype::f64, seed, g);
        measured_row m{r, t, scale, furthest(t, low.result, right.result, r.within), {}};
        for (std::size_t i = 0; i < low.gradients.size(); ++i) {
          auto const d = furthest(t, low.gradients[i], right.gradients[i], r.within);
          if (d.roundings > m.slopes.roundings) m.slopes = d;
        }
        f(m);
      }
}

}  // namespace neap_test::low_types
