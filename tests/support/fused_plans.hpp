// What passes that fuse make of a graph, and plans of it that fuse, for tests of these passes and of the verifier.
#pragma once

#include <neap/core/element.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/verify.hpp>
#include <neap/schedule/order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plain_run.hpp"

namespace neap::testing {

/// How far the kept values of two runs are from each other, in parts of the greatest number; infinite where one is not a
/// number. Truths are not compared: what is rounded otherwise may lie on the other side of a bound.
inline double error_of(graph const& g, std::vector<block> const& a, std::vector<block> const& b) {
  double most = 0, large = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const t = g.type(g.kept()[i]);
    for (std::int64_t k = 0; k < t.count(); ++k) {
      double const x = neap::detail::element_as<double>(a[i].data(), t.element, k),
                   y = neap::detail::element_as<double>(b[i].data(), t.element, k);
      if (std::isnan(x) != std::isnan(y)) return INFINITY;
      if (!std::isnan(x) && !std::isinf(x))
        most = std::max(most, std::abs(x - y)), large = std::max(large, std::abs(x));
    }
  }
  return most / large;
}

/// The ops of a graph that are an Op.
template <class Op>
std::vector<op_id> ops_that_are(op_graph const& g) {
  std::vector<op_id> all;
  for (auto o : g.ops())
    if (g.as<Op>(o)) all.push_back(o);
  return all;
}

/// The fused ops of a graph that are of a kind.
template <class Kind>
std::vector<op_id> fused_ops(op_graph const& g, Kind const& is_of_kind) {
  auto all = ops_that_are<op::fused>(g);
  std::erase_if(all, [&](op_id o) { return !is_of_kind(*g.as<op::fused>(o)); });
  return all;
}

/// How many ops of a graph compute something.
inline std::size_t launches(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops())
    for (auto v : g.outputs(o))
      if (g.record(v).alias != alias_kind::view) {
        ++n;
        break;
      }
  return n;
}

/// What a pass has made of a graph: it has the bits of the operators, and what is not in it nothing else knows of. How many
/// ops became one with others.
template <class Made>
std::size_t check_fused_program(graph const& g, Made const& made, std::uint64_t seed, host_backend& backend) {
  if (auto const s = verify(made.program); !s.ok()) FAIL(s.message());
  std::size_t inside = 0;
  for (auto const& group : made.groups) inside += group.size();
  CHECK(made.program.op_count() == g.op_count() - inside + made.groups.size());
  for (auto v : g.values())
    if (made.value[v] != nothing<value_id>) {
      CHECK(made.program.layout(made.value[v]) == g.layout(v));
      CHECK(made.program.role(made.value[v]) == g.role(v));
      CHECK(made.program.pins(made.value[v]) == g.pins(v));
      CHECK(made.program.is_kept(made.value[v]) == g.is_kept(v));
    } else {  // inside an operator
      CHECK(!g.is_kept(v));
      CHECK(g.pins(v).empty());
    }
  auto const sources = random_sources(g, seed);
  auto const a = run_plainly(g, given_order{}(g), sources, backend),
             b = run_plainly(made.program, given_order{}(made.program), sources, backend);
  CHECK(a.kept == b.kept);
  CHECK(a.sources == b.sources);
  return inside;
}

/// The original as a pass has fused it (`made`: its program, and what its values became), and as a planner would leave it:
/// each other op says which of the original's it is.
template <class Made>
graph planned_from(graph const& original, Made const& made) {
  graph_editor edit(made.program);
  auto const& g = made.program;
  auto next = original.origin_count();
  for (auto o : original.ops()) {
    auto now = nothing<op_id>;
    for (auto v : original.outputs(o))
      if (made.value[v] != nothing<value_id>) now = g.producer(made.value[v]);
    if (now == nothing<op_id>) continue;
    if (g.facets(now).standard_row != original.facets(o).standard_row) {
      edit.set_origin(now, op_id{static_cast<std::uint32_t>(next++)});
      edit.set_rewritten(now);
    } else {
      edit.set_origin(now, original.origin(o));
    }
  }
  edit.set_origin_count(static_cast<std::uint32_t>(next));
  return graph(std::move(edit).finish());
}

/// The graph with another operator in the place of one.
inline graph with_operator(graph const& g, op_id which, operator_view other) {
  graph_editor edit{operator_table(standard_operators::facets)};
  std::vector<value_id> now(g.value_count());
  for (auto v : g.sources())
    now[index(v)] = edit.add_source_at(g.role(v), g.layout(v), g.name(v), g.bytes(g.storage(v)));
  for (auto o : g.ops()) {
    std::vector<value_id> in;
    std::vector<output_rule> rules;
    for (auto v : g.inputs(o)) in.push_back(now[index(v)]);
    for (auto v : g.outputs(o)) {
      auto const& r = g.record(v);
      rules.push_back({g.layout(v), r.alias, r.of, g.bytes(r.storage)});
    }
    auto const made = edit.add_given(o == which ? other : g.view(o), in, rules, g.target(o), g.details(o));
    edit.set_origin(made, g.origin(o));
    if (g.record(o).rewritten) edit.set_rewritten(made);
    if (!g.pins(o).of_op().empty()) edit.add_pins(made, g.pins(o).of_op());
    for (std::size_t j = 0; j < rules.size(); ++j) {
      auto const v = g.outputs(o)[j];
      now[index(v)] = edit.output(made, static_cast<int>(j));
      edit.set_role(now[index(v)], g.role(v));
      if (!g.pins(v).empty()) edit.add_pins(now[index(v)], g.pins(v));
    }
  }
  edit.set_origin_count(static_cast<std::uint32_t>(g.origin_count()));
  for (auto v : g.kept()) edit.keep(now[index(v)], g.role(v));
  return graph(std::move(edit).finish());
}

}  // namespace neap::testing
