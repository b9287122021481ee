// Training steps of deep models, as importers make them: chains of layers, uniform and mixed, with and without skips, and
// transformers; over one batch or several. For searches that must find the structure by themselves.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace neap::testing {

struct deep_options {
  std::size_t layers = 200;
  bool mixed = false;         // layers of different sizes and costs
  std::size_t skip = 0;       // every so many layers, what went in is added to what comes out
  std::size_t long_skip = 0;  // the first layers' results are read again by the last ones, so many of them (a U)
  bool transformer = false;   // a layer is a block of attention and two products
  bool named = false;         // operators of each layer have names of their own
  std::size_t batches = 1;    // one after the other, each forward and backward
  std::uint64_t seed = 1;
};

struct deep_model {
  graph program;
  std::vector<value_id> layer_inputs;  // what enters each layer, and what leaves the last; of the last batch
};

/// Ids are a valid order: forward, then backward. Costs are in proportion to bytes and products.
inline deep_model deep_graph(deep_options const& o) {
  std::uint64_t state = 0;
  auto const below = [&](std::uint64_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<std::int64_t>((state >> 11) % n);
  };
  graph_editor edit{operator_table(standard_operators::facets)};
  std::size_t layer = 0;
  auto const layout = [](std::int64_t rows) { return tensor_layout::dense({dtype::f32, {rows, 64}}); };
  auto const op = [&](std::string const& target, double microseconds, std::vector<value_id> const& in,
                      std::int64_t rows) {
    op::opaque x;
    x.seconds = 1e-6 * microseconds;
    output_rule const out[] = {{layout(rows), alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque(o.named ? target + std::to_string(layer) : target, x, in, out));
  };
  struct saved {
    std::vector<value_id> in;   // that the gradient reads
    std::vector<double> costs;  // of each op's gradient
    value_id weight = nothing<value_id>;
    std::int64_t rows = 0;
  };
  std::vector<saved> steps;  // one an op
  std::vector<value_id> layer_inputs, weights;
  std::size_t next_weight = 0;
  auto const linear = [&](value_id v, std::int64_t rows, double cost) {
    if (next_weight == weights.size()) weights.push_back(edit.add_source_at(role::weight, layout(16), "w"));
    auto const w = weights[next_weight++];
    steps.push_back({{v}, {cost, cost}, w, rows});
    return op("linear", cost, {v, w}, rows);
  };
  auto const pointwise = [&](std::string const& target, value_id v, std::int64_t rows, double cost) {
    steps.push_back({{v}, {1.5 * cost}, nothing<value_id>, rows});
    return op(target, cost, {v}, rows);
  };
  for (std::size_t batch = 0; batch < o.batches; ++batch) {
    steps.clear(), layer_inputs.clear(), next_weight = 0;
    state = o.seed * 0x9e3779b97f4a7c15u + 1;
    std::vector<value_id> ends;
    std::int64_t rows = 1024;
    value_id x = edit.add_source_at(role::input, layout(1024), "x");
    value_id before = x;
    for (std::size_t l = 0; l < o.layers; ++l) {
      layer_inputs.push_back(x);
      layer = l;
      double const scale = o.mixed ? 0.5 + 0.25 * static_cast<double>(below(8)) : 1;
      if (o.transformer) {
        auto const h = pointwise("norm", x, rows, 8);
        auto const qkv = linear(h, 3 * rows, 120 * scale);
        auto const a = pointwise("attention", qkv, rows, 60);
        auto const p = linear(a, rows, 40 * scale);
        auto const x1 = op("add", 6, {x, p}, rows);
        auto const h2 = pointwise("norm", x1, rows, 8);
        auto const up = linear(h2, 4 * rows, 160 * scale);
        auto const g = pointwise("gelu", up, 4 * rows, 20);
        auto const down = linear(g, rows, 160 * scale);
        x = op("add", 6, {x1, down}, rows);
      } else {
        std::int64_t const next = o.mixed ? 256 << below(4) : rows;
        auto const y = linear(x, next, 100 * scale);
        x = pointwise("gelu", y, next, 10 * scale);
        if (o.skip && (l + 1) % o.skip == 0) {
          if (next == rows && l > 0) x = op("add", 5, {x, before}, next);
          before = x;
        }
        if (o.long_skip && l < o.long_skip) ends.push_back(x);
        if (o.long_skip && l + o.long_skip >= o.layers && !ends.empty()) {
          x = op("join", 15, {x, ends.back()}, next);
          steps.push_back({{ends.back()}, {15}, nothing<value_id>, next});
          ends.pop_back();
        }
        rows = next;
      }
    }
    layer_inputs.push_back(x);
    value_id gradient = op("loss", 10, {x}, rows);
    for (std::size_t i = steps.size(); i-- > 0;) {
      auto const& s = steps[i];
      std::vector<value_id> in{gradient};
      in.insert(in.end(), s.in.begin(), s.in.end());
      if (s.weight != nothing<value_id>) {
        auto const dw = op("linear.weight_gradient", s.costs[1], in, 16);
        edit.keep(dw, role::gradient);
        in = {gradient, s.weight};
      }
      auto const rows_of_input = edit.layout_of(s.in[0]).type.dims[0];
      gradient = op("gradient", s.costs[0], in, rows_of_input);
    }
    edit.keep(gradient, role::gradient);
  }
  return {graph(std::move(edit).finish()), std::move(layer_inputs)};
}

}  // namespace neap::testing
