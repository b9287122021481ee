// Random graphs of products of matrices and what may follow them: biases, relus, gelus of both forms and their gradients,
// sums of operands; values that several ops read, updates in place, pins.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/verify.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::testing {

struct random_products_options {
  bool updates = true, pins = true;
};

namespace detail {
inline graph some_products(random_stream& draw, std::uint32_t ops, random_products_options options) {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const t = draw.below(4) == 0 ? dtype::bf16 : draw.below(4) == 0 ? dtype::f64 : dtype::f32;
  std::vector<value_id> pool, weights;
  for (auto const& s : {shape{2, 3, 4}, {6, 4}, {6, 8}, {4, 6}}) pool.push_back(edit.add_source(role::input, {t, s}));
  for (auto const& s : {shape{4, 8}, {8, 4}, {4, 4}, {4}, {8}}) {
    weights.push_back(edit.add_source(role::weight, {t, s}));
    pool.push_back(weights.back());
  }
  auto const type = [&](value_id v) { return edit.graph().type(v); };
  auto const any = [&] { return pool[draw.below(static_cast<std::uint32_t>(pool.size()))]; };
  value_id last = pool[0];  // chains grow from what was made last
  auto const of_last = [&] { return draw.below(3) ? last : any(); };
  auto const with = [&](auto const& suits) {  // one of those that suit
    auto v = any();
    for (int i = 0; i < 20 && !suits(v); ++i) v = any();
    return v;
  };
  std::vector<value_id> made;
  for (std::uint32_t i = 0, tries = 0; i < ops && tries < 100 * ops; ++tries) {
    try {
      value_id v{};
      auto const x = of_last();
      auto const& of_x = type(x);
      auto kind = draw.below(12);
      auto const maker = edit.graph().producer(x);
      if (maker != nothing<op_id> && draw.below(2)) {
        if (edit.graph().as<op::matmul>(maker)) kind = draw.below(2) ? 3 : 7;
        else if (edit.graph().as<op::add>(maker)) kind = 5 + draw.below(2);
        else if (edit.graph().as<op::gelu_grad>(maker)) kind = 12;
      }
      switch (kind) {
        case 0:
        case 1:
        case 2: {
          bool const ta = draw.below(2), tb = draw.below(2);
          auto const y = with([&](value_id w) {
            return of_x.rank() >= 2 && type(w).rank() == 2 && type(w).extent(tb ? -1 : -2) == of_x.extent(ta ? -2 : -1);
          });
          v = edit.add(op::matmul{ta, tb}, {x, y})[0];
          break;
        }
        case 3:
        case 4: {
          auto const y = with([&](value_id w) { return type(w).rank() == 1 && type(w).dims[0] == of_x.dims.back(); });
          v = draw.below(5) ? edit.add(op::add{}, {x, y})[0] : edit.add(op::add{}, {y, x})[0];
          break;
        }
        case 5: v = edit.add(op::gelu{draw.below(4) != 0}, {x})[0]; break;
        case 6: v = edit.add(op::relu{}, {x})[0]; break;
        case 7: {
          auto const y = with([&](value_id w) { return type(w) == of_x; });
          v = edit.add(op::gelu_grad{draw.below(4) != 0}, {x, y})[0];
          break;
        }
        case 8: {
          auto const y = any();
          if (type(y).rank() < 2) continue;
          v = edit.add(op::sum_to{{type(y).dims.back()}}, {y})[0];
          break;
        }
        case 9:
          if (of_x.rank() == 3) v = edit.add(op::reshape{{of_x.dims[0] * of_x.dims[1], of_x.dims[2]}}, {x})[0];
          else v = edit.add(op::copy{}, {x})[0];
          break;
        case 12: v = edit.add(op::sum_to{{of_x.dims.back()}}, {x})[0]; break;
        case 10: v = edit.add(op::add{}, {x, with([&](value_id w) { return type(w) == of_x; })})[0]; break;
        default: {
          auto& w = weights[draw.below(static_cast<std::uint32_t>(weights.size()))];
          if (!options.updates) continue;
          auto const from = with([&](value_id u) { return type(u) == type(w); });
          v = w = edit.add(op::accumulate{}, {w, from})[0];
        }
      }
      if (options.pins && draw.below(20) == 0)
        edit.add_pins(v, draw.below(2) ? pin_set(pin::keep) : pin_set(pin::never_out));
      pool.push_back(v);
      made.push_back(v);
      last = v;
      if (type(v).rank() < 2 && draw.below(3)) last = any();
      ++i;
    } catch (error const&) {}  // types or extents that the operator does not take
  }
  // What no op reads is kept, and some of the rest.
  auto const g = std::move(edit).finish();
  graph_editor keeper(g);
  for (auto v : made) {
    bool const is_weight = std::find(weights.begin(), weights.end(), v) != weights.end();
    if (is_weight || (g.record(v).alias == alias_kind::fresh && (g.uses(v).empty() || draw.below(10) == 0)))
      keeper.keep(v, role::output);
  }
  return graph(std::move(keeper).finish());
}
}  // namespace detail

inline graph random_products(std::uint64_t seed, std::uint32_t ops, random_products_options options = {}) {
  random_stream draw(seed, 43);
  for (;;)  // an op that reads a weight as it was must not depend on the weight's update
    if (auto g = detail::some_products(draw, ops, options); verify(static_cast<op_graph const&>(g)).ok()) return g;
}

}  // namespace neap::testing
