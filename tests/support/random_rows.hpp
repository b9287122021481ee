// Random graphs of functions of rows and channels (norms, softmax, their gradients), reductions, and what may stand beside
// them: elementwise chains, residual additions, values that several ops read, views, updates in place, pins.
#pragma once

#include "fused_steps.hpp"
#include "random_fused.hpp"

#include <neap/ir/editor.hpp>
#include <neap/ir/verify.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::testing {

struct random_rows_options {
  bool updates = true, pins = true;
};

namespace detail {
/// A reduction of x, of three axes.
inline std::vector<value_id> some_reduction(graph_editor& edit, value_id x, random_stream& draw) {
  extents const sets[] = {{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}};
  auto const& axes = sets[draw.below(std::size(sets))];
  bool const keepdim = draw.below(2) == 1;
  auto const dims = edit.graph().type(x).dims;
  switch (draw.below(6)) {
    case 0: return edit.add(op::sum{axes, keepdim}, {x});
    case 1: return edit.add(op::mean{axes, keepdim}, {x});
    case 2: return edit.add(op::max_reduce{axes, keepdim}, {x});
    case 3: return edit.add(op::min_reduce{axes, keepdim}, {x});
    case 4: return edit.add(op::sum_to{{dims[2]}}, {x});
    default: return edit.add(op::sum_to{{dims[1], 1}}, {x});
  }
}

/// A norm of x's channels, or a gradient of one. `of(dims)` and `statistic(dims)` give values of these extents.
template <class Of, class Statistic>
std::vector<value_id> some_channel_norm(graph_editor& edit, value_id x, Of const& of, Statistic const& statistic,
                                        random_stream& draw) {
  auto const dims = edit.graph().type(x).dims;
  shape const channels{dims[1]}, groups{dims[0], 2};
  switch (draw.below(5)) {
    case 0: return edit.add(op::batch_norm{}, {x, of(channels), of(channels)});
    case 1:
      return edit.add(op::batch_norm_grad{}, {x, of(dims), statistic(channels), statistic(channels), of(channels)});
    case 2:
      return edit.add(op::batch_norm_relu_grad{draw.below(2) == 1},
                      {x, of(dims), statistic(channels), statistic(channels), of(channels), of(channels)});
    case 3: return edit.add(op::group_norm{2}, {x, of(channels), of(channels)});
    default: return edit.add(op::group_norm_grad{2}, {x, of(dims), statistic(groups), statistic(groups), of(channels)});
  }
}

inline graph some_rows(random_stream& draw, std::uint32_t ops, random_rows_options options) {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const t = draw.below(4) == 0 ? dtype::bf16 : draw.below(4) == 0 ? dtype::f64 : dtype::f32;
  shape const whole{2, 2 + 2 * draw.below(2), 4}, vector{4}, rows{whole[0], whole[1]}, column{whole[0], whole[1], 1},
      channels{whole[1]}, groups{whole[0], 2};
  std::vector<value_id> pool, weights;
  for (auto const& s : {whole, whole, whole, vector, column}) pool.push_back(edit.add_source(role::input, {t, s}));
  for (auto const& s : {whole, vector, vector, channels}) {
    weights.push_back(edit.add_source(role::weight, {t, s}));
    pool.push_back(weights.back());
  }
  std::vector<value_id> statistics;
  for (auto const& s : {rows, channels, groups})
    statistics.push_back(edit.add_source(role::input, {computed_in(t), s}));
  auto const type = [&](value_id v) { return edit.graph().type(v); };
  auto const any = [&] {
    auto const n = static_cast<std::uint32_t>(pool.size());
    return pool[draw.below(3) == 0 ? draw.below(n) : n - 1 - draw.below(std::min<std::uint32_t>(n, 3))];
  };
  auto const of = [&](shape const& s) {
    auto v = any();
    for (int i = 0; i < 30 && !(type(v).dims == s); ++i) v = any();
    return v;
  };
  auto const statistic = [&](shape const& s) {
    auto const some = [&] { return statistics[draw.below(static_cast<std::uint32_t>(statistics.size()))]; };
    auto v = some();
    for (int i = 0; i < 30 && !(type(v).dims == s); ++i) v = some();
    return v;
  };
  std::vector<value_id> made;
  for (std::uint32_t i = 0, tries = 0; i < ops && tries < 200 * ops; ++tries) {
    try {
      std::vector<value_id> all;
      auto const x = of(whole);
      switch (draw.below(21)) {
        case 0: all = edit.add(op::layer_norm{}, {x, of(vector), of(vector)}); break;
        case 1: all = edit.add(op::rms_norm{}, {x, of(vector)}); break;
        case 2: all = edit.add(op::softmax{}, {x}); break;
        case 3: all = edit.add(op::log_softmax{}, {x}); break;
        case 4:
          all = edit.add(op::layer_norm_grad{}, {x, of(whole), statistic(rows), statistic(rows), of(vector)});
          break;
        case 5: all = edit.add(op::rms_norm_grad{}, {x, of(whole), statistic(rows), of(vector)}); break;
        case 6:
          if (draw.below(2)) all = edit.add(op::softmax_grad{}, {x, of(whole)});
          else all = edit.add(op::log_softmax_grad{}, {x, of(whole)});
          break;
        case 7: {
          if (!options.updates) continue;
          auto& w = weights[draw.below(static_cast<std::uint32_t>(weights.size()))];
          all = edit.add(op::accumulate{}, {w, of(type(w).dims)});
          w = all[0];
          break;
        }
        case 8: all = edit.add(op::reshape{shape{whole[0] * whole[1], 4}}, {x}); break;
        case 9: all = edit.add(op::copy{}, {x}); break;
        case 10:
        case 11: all = some_reduction(edit, x, draw); break;
        case 12:
        case 13: all = edit.add(op::add{}, {x, draw.below(4) ? of(whole) : any()}); break;
        case 14:
        case 15:
        case 16: all = some_channel_norm(edit, x, of, statistic, draw); break;
        default: {
          auto const& f = *fused_steps()[draw.below(static_cast<std::uint32_t>(fused_steps().size()))];
          if (random_fused::needs_functions(f.name)) continue;
          alignas(8) std::byte bytes[op::detail::max_step_bytes];
          f.construct(bytes);
          for (auto const& a : f.attributes) {
            auto const like = a.get(bytes);
            if (std::holds_alternative<double>(like)) a.set(bytes, static_cast<double>(draw.below(9)) / 4 - 1);
            else if (std::holds_alternative<dtype>(like)) a.set(bytes, draw.below(4) ? t : dtype::boolean);
          }
          std::vector<value_id> in{x};
          while (static_cast<int>(in.size()) < f.arguments) in.push_back(any());
          if (draw.below(3) == 0) std::rotate(in.begin(), in.begin() + 1, in.end());
          all = edit.emit({standard_operators::facets[static_cast<std::size_t>(f.row)], bytes}, in);
        }
      }
      if (options.pins && draw.below(20) == 0)
        edit.add_pins(all[0], draw.below(2) ? pin_set(pin::keep) : pin_set(pin::never_out));
      for (auto v : all) {
        made.push_back(v);
        auto const& made_dims = type(v).dims;
        if ((made_dims == rows || made_dims == channels || made_dims == groups) && type(v).element == computed_in(t))
          statistics.push_back(v);
        else pool.push_back(v);
      }
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

inline graph random_rows(std::uint64_t seed, std::uint32_t ops, random_rows_options options = {}) {
  random_stream draw(seed, 47);
  for (;;)  // an op that reads a weight as it was must not depend on the weight's update
    if (auto g = detail::some_rows(draw, ops, options); verify(static_cast<op_graph const&>(g)).ok()) return g;
}

}  // namespace neap::testing
