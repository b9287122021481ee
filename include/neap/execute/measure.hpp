// Measured costs: every kind of op of a graph is run on a backend, on memory of its own, and its time goes into a cost
// table (simulate/cost_table.hpp). Ops that are equal (operator, attributes, layouts) are measured once, and those that the
// table knows already are not measured again: kept in a file, it is filled once for a machine.
//
//   cost_table table = cost_table::load("costs.txt").value_or({});
//   measure(step.program, backend, table);
//   table.save("costs.txt");
//   auto found = optimize(step, moves, measured_or{table, roofline::host(2)}, memory_limit{...});
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/execute/kernel_check.hpp>
#include <neap/simulate/cost_table.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

namespace neap { inline namespace v0 {

struct measure_options {
  int rounds = 5;               // the least of so many runs counts, after one that is not counted
  double seconds_an_op = 0.05;  // no further round is begun after so long
};

namespace detail {
/// What ops are measured on: floating inputs are small numbers, whole ones are 0 or, where steps are counted, 1.
inline void fill_measured(std::byte* data, bytes_t bytes, tensor_type const& t) {
  std::memset(data, 0, static_cast<std::size_t>(bytes));
  if (t.element == dtype::f32)
    for (bytes_t i = 0; i < bytes / 4; ++i) reinterpret_cast<float*>(data)[i] = 0.01f * static_cast<float>(i % 64);
  if (t.element == dtype::f64)
    for (bytes_t i = 0; i < bytes / 8; ++i) reinterpret_cast<double*>(data)[i] = 0.01 * static_cast<double>(i % 64);
  if (t == tensor_type{dtype::i64, {}}) *reinterpret_cast<std::int64_t*>(data) = 1;
}
}  // namespace detail

/// The time of one op on a backend, in seconds; nothing for one without a kernel (transfers, opaque ones) and for views.
/// Floating inputs are small numbers, whole ones are 0 or, where steps are counted, 1. Memory for the op's inputs and
/// outputs is taken and given back.
template <class Backend>
std::optional<seconds_t> measure_op(op_graph const& g, op_id o, Backend& backend, measure_options const& options = {}) {
  using clock = std::chrono::steady_clock;
  auto const kernel = detail::kernel_on(backend, g.facets(o));
  if (!kernel || flow::is_view(g, o)) return std::nullopt;
  plain_vector<tensor_layout> layouts;
  plain_vector<tensor_ref> refs;
  std::vector<byte_block> memory;
  auto const add = [&](value_id v, tensor_ref const* shared) {
    auto const& l = g.layout(v);
    layouts.push_back(l);
    if (shared) return refs.push_back(*shared);
    auto const bytes = std::max<bytes_t>(std::max(g.bytes(g.storage(v)), l.type.bytes()), 64);
    memory.emplace_back(static_cast<std::size_t>(bytes), 64);
    auto* const data = memory.back().data();
    detail::fill_measured(data, bytes, l.type);
    refs.push_back(tensor_ref::place(data, l));
  };
  auto const in = g.inputs(o);
  for (std::size_t i = 0; i < in.size(); ++i) {
    tensor_ref const* shared = nullptr;  // one value read twice
    for (std::size_t k = 0; k < i; ++k)
      if (in[k] == in[i]) shared = &refs[k];
    tensor_ref const copy = shared ? *shared : tensor_ref{};
    add(in[i], shared ? &copy : nullptr);
  }
  for (auto v : g.outputs(o)) {
    auto const& r = g.record(v);
    tensor_ref const copy =
        r.alias == alias_kind::update && r.of >= 0 ? refs[static_cast<std::size_t>(r.of)] : tensor_ref{};
    add(v, copy.data ? &copy : nullptr);
  }
  byte_block scratch;
  auto const& f = g.facets(o);
  auto const all = span_of(layouts);
  if (f.workspace)
    if (auto const bytes = f.workspace(g.attributes(o), {all.first(in.size()), all.subspan(in.size())}); bytes > 0)
      scratch = byte_block(static_cast<std::size_t>(bytes), 64);
  auto const r = span_of(refs);
  auto const run = [&] {
    kernel(backend, g.attributes(o), {r.first(in.size()), r.subspan(in.size()), scratch.data()});
  };
  run();
  double least = 1e300;
  auto const begin = clock::now();
  for (int k = 0; k < options.rounds; ++k) {
    auto const t = clock::now();
    run();
    auto const end = clock::now();
    least = std::min(least, std::chrono::duration<double>(end - t).count());
    if (std::chrono::duration<double>(end - begin).count() > options.seconds_an_op) break;
  }
  return least;
}

/// Measures the ops of `g` that `table` does not know; how many it measured.
template <class Backend>
std::size_t measure(op_graph const& g, Backend& backend, cost_table& table, measure_options const& options = {}) {
  std::size_t measured = 0;
  for (auto o : g.ops()) {
    if (flow::is_view(g, o) || table.find(cost_key(g, o))) continue;
    auto const seconds = measure_op(g, o, backend, options);
    if (!seconds) continue;
    table.set(g, o, *seconds);
    ++measured;
  }
  return measured;
}

}}  // namespace neap::v0
