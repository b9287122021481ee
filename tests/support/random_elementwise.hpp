// Random graphs of elementwise operators of all kinds among others: views, reductions, products of matrices, values that
// several ops read, updates in place of what elementwise ops read, pins, mixed types.
#pragma once

#include "fused_steps.hpp"
#include "random_fused.hpp"

#include <neap/ir/editor.hpp>
#include <neap/ir/verify.hpp>

#include <algorithm>
#include <vector>

namespace neap::testing {

struct random_elementwise_options {
  bool updates = true, pins = true;
  bool exact = false;  // sums, products and choices only
};

namespace detail {
inline graph some_elementwise(random_stream& draw, std::uint32_t ops, random_elementwise_options options) {
  graph_editor edit{operator_table(standard_operators::facets)};
  bool const wide = draw.below(4) == 0;
  auto const narrow = [&] { return draw.below(3) ? dtype::f32 : draw.below(2) ? dtype::bf16 : dtype::f16; };
  auto const some_type = [&] { return wide ? dtype::f64 : narrow(); };
  shape const whole{2 + draw.below(4), 4}, row{4}, column{whole[0], 1};
  std::vector<value_id> pool, weights;
  for (auto const& s : {whole, whole, whole, row, column, shape{}})
    pool.push_back(edit.add_source(role::input, {some_type(), s}));
  for (int i = 0; i < 2; ++i) {
    weights.push_back(edit.add_source(role::weight, {some_type(), whole}));
    pool.push_back(weights.back());
  }
  auto const pick = [&] {
    auto const n = static_cast<std::uint32_t>(pool.size());
    return pool[draw.below(3) == 0 ? draw.below(n) : n - 1 - draw.below(std::min<std::uint32_t>(n, 4))];
  };
  std::vector<value_id> made;
  for (std::uint32_t i = 0, tries = 0; i < ops && tries < 200 * ops; ++tries) {
    try {
      value_id v{};
      auto const kind = draw.below(16);
      if (kind == 0) {
        v = edit.add(op::reshape{edit.graph().type(pick()).dims}, {pick()})[0];
      } else if (kind == 1) {
        v = edit.add(op::sum{{0}, true}, {pick()})[0];
      } else if (kind == 2) {
        v = edit.add(op::slice{0, 0, 1}, {pick()})[0];
      } else if (kind == 3 && options.updates) {
        auto& w = weights[draw.below(2)];
        w = edit.add(op::accumulate{}, {w, pick()})[0];
        v = w;
      } else if (kind == 4) {
        v = edit.add(op::copy{}, {pick()})[0];
      } else {
        auto const& f = *fused_steps()[draw.below(static_cast<std::uint32_t>(fused_steps().size()))];
        if (options.exact && random_fused::needs_functions(f.name)) continue;
        alignas(8) std::byte bytes[op::detail::max_step_bytes];
        f.construct(bytes);
        for (auto const& a : f.attributes) {
          auto const like = a.get(bytes);
          if (std::holds_alternative<double>(like)) a.set(bytes, static_cast<double>(draw.below(9)) / 4 - 1);
          else if (std::holds_alternative<dtype>(like)) a.set(bytes, draw.below(4) ? some_type() : dtype::boolean);
        }
        std::vector<value_id> in;
        for (int k = 0; k < f.arguments; ++k) in.push_back(pick());
        v = edit.emit({standard_operators::facets[static_cast<std::size_t>(f.row)], bytes}, in)[0];
        if (options.pins && draw.below(12) == 0)
          edit.add_pins(v, draw.below(2) ? pin_set(pin::keep) : pin_set(pin::never_out));
      }
      pool.push_back(v);
      made.push_back(v);
      ++i;
    } catch (error const&) {}  // types or layouts that the operator does not take
  }
  // Whatever no op reads is kept, and some of the rest.
  auto const g = std::move(edit).finish();
  graph_editor keeper(g);
  for (auto v : made) {
    bool const is_weight = std::find(weights.begin(), weights.end(), v) != weights.end();
    if (is_weight || (g.record(v).alias == alias_kind::fresh && (g.uses(v).empty() || draw.below(8) == 0)))
      keeper.keep(v, role::output);
  }
  return graph(std::move(keeper).finish());
}
}  // namespace detail

inline graph random_elementwise(std::uint64_t seed, std::uint32_t ops, random_elementwise_options options = {}) {
  random_stream draw(seed, 41);
  for (;;)  // an op that reads a weight as it was must not depend on the weight's update
    if (auto g = detail::some_elementwise(draw, ops, options); verify(static_cast<op_graph const&>(g)).ok()) return g;
}

}  // namespace neap::testing
