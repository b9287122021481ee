// Random training steps over the standard operators that really run: a forward part of matrices of a few sizes with
// views, broadcasts, norms, dropout and several readers a value; a loss; gradients; updates in place.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/common.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/train/differentiate.hpp>

#include <cstdint>
#include <vector>

namespace neap::testing {

/// A training step of about `size` forward ops; its loss is a mean of squares, of squared differences or cross-entropy. Deterministic by seed.
inline graph random_model(std::uint64_t seed, std::uint32_t size = 24) {
  random_stream draw(seed, 5);
  graph_editor e{operator_table(standard_operators::facets)};
  auto const below = [&](std::uint32_t n) { return draw.below(n); };
  std::int64_t const rows = 4 + below(29), width = std::int64_t{8} << below(3);
  std::vector<value_id> weights, values;
  auto const one = [&](auto const& op, std::initializer_list<value_id> in) { return e.add(op, in)[0]; };
  auto const weight = [&](shape s) {
    weights.push_back(e.add_source(role::weight, {dtype::f32, s}, "w" + std::to_string(weights.size())));
    return weights.back();
  };
  value_id const step = e.add_source(role::state, {dtype::i64, {}}, "step");
  values.push_back(e.add_source(role::input, {dtype::f32, {rows, width}}, "x"));
  weight({width});
  auto const pick = [&] {
    auto const n = static_cast<std::uint32_t>(values.size());
    return below(3) ? values[n - 1 - below(std::min(n, 3u))] : values[below(n)];
  };
  for (std::uint32_t i = 0; i < size; ++i) {
    value_id const x = pick();
    value_id y = x;
    switch (below(16)) {
      case 0: y = one(op::gelu{}, {x}); break;
      case 1: y = one(op::relu{}, {x}); break;
      case 2: y = one(op::tanh{}, {x}); break;
      case 3: y = one(op::silu{}, {x}); break;
      case 4: y = one(op::add{}, {x, pick()}); break;
      case 5: y = one(op::mul{}, {x, one(op::sigmoid{}, {pick()})}); break;
      case 6: y = one(op::matmul{}, {x, weight({width, width})}); break;
      case 7: {
        op::matmul m;
        m.transpose_b = true;
        bool const shared = below(3) == 0 && e.layout_of(weights.back()).type.rank() == 2;
        y = one(m, {x, shared ? weights.back() : weight({width, width})});
        break;
      }
      case 8: y = one(op::layer_norm{}, {x, weight({width}), weight({width})}); break;
      case 9: y = one(op::softmax{}, {x}); break;
      case 10: y = one(op::add{}, {x, weight({width})}); break;
      case 11: {  // heads and back: views, and a copy where they need one
        value_id const h = one(op::reshape{extents{rows, 4, width / 4}}, {op::dense(e, x)});
        value_id const p = one(op::permute{extents{1, 0, 2}}, {h});
        value_id const s = one(op::matmul{}, {one(op::softmax{}, {one(op::matmul{false, true}, {p, p})}), p});
        y = one(op::reshape{extents{rows, width}}, {op::dense(e, one(op::permute{extents{1, 0, 2}}, {s}))});
        break;
      }
      case 12: {
        value_id const a = one(op::slice{1, 0, width / 2}, {x}), b = one(op::slice{1, width / 2, width}, {pick()});
        y = one(op::concat{1}, {b, a});
        break;
      }
      case 13: {
        op::dropout d;
        d.p = 0.25;
        d.key = static_cast<std::int64_t>(1000 + i);
        y = one(d, {x, step});
        break;
      }
      case 14: y = one(op::mul{}, {x, one(op::mean{extents{1}, true}, {pick()})}); break;
      default: y = one(op::mul_scalar{0.5}, {x}); break;
    }
    if (e.layout_of(y).type.dims == shape{rows, width}) values.push_back(y);
  }
  value_id const out = one(op::add{}, {values.back(), one(op::mul{}, {pick(), weights[0]})});
  value_id loss;
  if (seed % 3 == 0) {
    loss = one(op::mean{extents{0, 1}, false}, {one(op::square{}, {out})});
  } else if (seed % 3 == 1) {
    loss = one(op::mse{}, {out, one(op::mul_scalar{0.25}, {values[0]})});
  } else {
    value_id const target = e.add_source(role::input, {dtype::i64, {rows}}, "target");
    loss = one(op::cross_entropy{1}, {out, target, target});
  }
  auto const gradients = differentiate(e, loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const t = e.layout_of(weights[i]).type;
    if (i % 3 == 0) {
      e.add(op::sgd{0.05, 0.01}, {weights[i], gradients[i]});
    } else {
      op::adamw a;
      a.rate = 0.01;
      value_id const m = e.add_source(role::state, t, "m"), v = e.add_source(role::state, t, "v");
      e.add(a, {weights[i], gradients[i], m, v, step});
    }
    if (i % 4 == 1) e.keep(gradients[i], role::gradient);
  }
  e.add(op::increment{}, {step});
  e.keep(loss, role::loss);
  return graph(std::move(e).finish());
}

}  // namespace neap::testing
