// The bodies of <neap/execute/plan_like.hpp>.
#pragma once

#include <neap/execute/plan_like.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC bool is_like(op_graph const& a, op_graph const& b) {
  if (a.op_count() != b.op_count() || a.value_count() != b.value_count() || a.storage_count() != b.storage_count() ||
      !std::equal(a.kept().begin(), a.kept().end(), b.kept().begin(), b.kept().end()))
    return false;
  for (auto o : a.ops())
    if (&a.facets(o) != &b.facets(o) || a.pins(o) != b.pins(o) || a.origin(o) != b.origin(o) ||
        !std::equal(a.inputs(o).begin(), a.inputs(o).end(), b.inputs(o).begin(), b.inputs(o).end()) ||
        a.outputs(o).size() != b.outputs(o).size() || (!a.outputs(o).empty() && a.output(o) != b.output(o)))
      return false;
  for (auto v : a.values())
    if (a.producer(v) != b.producer(v) || a.pins(v) != b.pins(v) || a.storage(v) != b.storage(v) ||
        a.role(v) != b.role(v) || a.record(v).alias != b.record(v).alias || a.record(v).of != b.record(v).of ||
        a.type(v).element != b.type(v).element)
      return false;
  return true;
}

/// By value: its layout, and the bytes of the storage that it is the first of; -1 for others.
struct value_sizes {
  table<value_id, tensor_layout> layout;
  table<value_id, bytes_t> bytes;
};

/// Of the values of `planned`, with the sizes of `to`; `of`: the ops of `to` by origin.
NEAP_FUNC value_sizes sizes_like(op_graph const& planned, table<op_id, op_id> const& of, op_graph const& to) {
  value_sizes out{table<value_id, tensor_layout>(planned.value_count(), tensor_layout{}),
                  table<value_id, bytes_t>(planned.value_count(), -1)};
  auto& [layout, bytes] = out;
  std::size_t source = 0;
  for (auto v : planned.values()) {
    auto const p = planned.producer(v);
    if (p == nothing<op_id>) {
      auto const s = to.sources()[source++];
      layout[v] = to.layout(s), bytes[v] = to.bytes(to.storage(s));
    } else if (!is_swap_op(planned, p)) {
      auto const w = to.output(of[planned.origin(p)], static_cast<int>(index(v) - index(planned.output(p))));
      layout[v] = to.layout(w);
      if (planned.record(v).alias == alias_kind::fresh) bytes[v] = to.bytes(to.storage(w));
    }
  }
  for (bool again = true; again;) {  // transfers move what they are given: from the stored value on
    again = false;
    for (auto o : planned.ops())
      if (is_swap_op(planned, o) && bytes[planned.output(o)] < 0) {
        auto const x = planned.inputs(o)[0];
        auto const p = planned.producer(x);
        if (p != nothing<op_id> && is_swap_op(planned, p) && bytes[planned.output(p)] < 0) {
          again = true;
          continue;
        }
        layout[planned.output(o)] = layout[x];
        if (!planned.as<op::load>(o)) {
          bytes[planned.output(o)] = 0;
        } else {  // as many as its store was given
          auto const kept = planned.inputs(store_of(planned, x))[0];
          auto const first = planned.record(planned.storage(kept)).first;
          bytes[planned.output(o)] = bytes[first];
        }
      }
  }
  return out;
}

NEAP_FUNC op_graph retargeted(op_graph const& planned, op_graph const& from, op_graph const& to) {
  // Ops of `from` by origin: a planned op says whose copy it is.
  table<op_id, op_id> of(from.origin_count(), nothing<op_id>);
  for (auto o : from.ops()) of[from.origin(o)] = o;
  // Sizes first: an op may read what a later one makes.
  auto const sizes = sizes_like(planned, of, to);
  graph_editor edit(planned.facet_table());
  edit.derive_all();
  op_id next = id_at<op_id>(0);
  plain_vector<output_rule> rules;
  auto const put = [&](op_id o) {
    rules.clear();
    for (auto v : planned.outputs(o)) {
      auto const& r = planned.record(v);
      rules.push_back({sizes.layout[v], r.alias, r.of, r.alias == alias_kind::fresh ? sizes.bytes[v] : -1});
    }
    operator_view what = planned.view(o);
    auto details = planned.details(o);
    if (!is_swap_op(planned, o)) {
      auto const x = of[planned.origin(o)];
      what = to.view(x), details = to.details(x);
    }
    auto const made = edit.add_given(what, planned.inputs(o), span_of(rules), planned.target(o), details);
    edit.set_name(made, planned.name(o));
    edit.set_origin(made, planned.origin(o));
    for (auto v : planned.outputs(o)) {
      edit.set_name(v, planned.name(v));
      edit.set_role(v, planned.role(v));
    }
  };
  for (auto v : planned.values()) {
    auto const p = planned.producer(v);
    if (p != nothing<op_id>) {
      while (index(next) <= index(p)) put(next), next = id_at<op_id>(index(next) + 1);
      continue;
    }
    auto const first = planned.record(planned.storage(v)).first;
    if (first == v) edit.add_source_at(planned.role(v), sizes.layout[v], planned.name(v), sizes.bytes[v]);
    else edit.add_source_view(first, sizes.layout[v], planned.name(v));
  }
  while (index(next) < planned.op_count()) put(next), next = id_at<op_id>(index(next) + 1);
  for (auto v : planned.kept()) edit.keep(v, planned.role(v));
  for (auto o : planned.ops())
    if (auto const pins = planned.pins(o).of_op(); !pins.empty()) edit.add_pins(o, pins);
  for (auto v : planned.values())
    if (!planned.pins(v).empty()) edit.add_pins(v, planned.pins(v));
  edit.set_origin_count(planned.origin_count());
  return std::move(edit).finish();
}

}  // namespace detail

NEAP_FUNC std::optional<plan> plan_like(plan const& like, op_graph const& from, op_graph const& to) {
  if (like.original != from.digest() || like.graph.runs_in_parts() || !detail::is_like(from, to)) return std::nullopt;
  candidate c{detail::retargeted(like.graph, from, to), like.order(), {}};
  c.result = simulate(c.graph, c.order, roofline::host(1), like.options);
  return make_plan(std::move(c), to, like.options);
}

NEAP_FUNC plan plan_in_order(op_graph const& g, memory_options const& options) {
  candidate c{g, memory_greedy{}(g, options), {}};
  c.result = simulate(c.graph, c.order, roofline::host(1), options);
  return make_plan(std::move(c), g, options);
}

NEAP_FUNC plan_found_within plan_within(op_graph const& g, bytes_t limit, plan const& like, time_budget time,
                                        bool transfers) {
  using clock = std::chrono::steady_clock;
  auto const begin = clock::now();
  bool moves_data = false;
  for (auto o : like.graph.ops()) moves_data = moves_data || like.graph.as<op::store>(o);
  bool const moves_at_last = transfers && !moves_data;
  plan_found_within answer;

  // The limit goes down from try to try: what fits by its peak need not fit with addresses.
  auto const fits = [&](bytes_t to, std::size_t iterations, bool swaps, double until) {
    std::stop_source enough;
    search_options search;
    search.memory_at_most = memory_limit(to);
    search.memory = like.options;
    search.iterations = iterations;
    search.stop = enough.get_token();
    search.time = time_budget(
        std::max<std::chrono::duration<double>>(std::chrono::duration<double>(until) - (clock::now() - begin), {}));
    if (iterations == SIZE_MAX)
      search.progress = [&](search_progress const& p) {
        if (p.fits) enough.request_stop();
      };
    auto made = optimize(g,
                         chain(zip(rematerialize{} | truncate(24), swap{1e9} | truncate(swaps ? 8 : 0)),
                               fission{} | truncate(like.graph.runs_in_parts() ? 8 : 0) | later),
                         search);
    answer.lower_bound_bytes = made.placed.lower_bound_bytes;
    if (made.placed.arena_bytes <= limit) answer.found = std::move(made.placed);
    return answer.found.has_value();
  };
  auto const has_time = [&](double until) {
    return std::chrono::duration<double>(clock::now() - begin).count() < until && answer.lower_bound_bytes <= limit;
  };
  double const all = time.limit.count(), half = moves_at_last ? all / 2 : all;
  if (has_time(half) && fits(limit, 400, moves_data, half)) return answer;
  for (bytes_t to = limit; has_time(half); to -= to / 64)
    if (fits(to, SIZE_MAX, moves_data, half)) return answer;
  for (bytes_t to = limit; moves_at_last && has_time(all); to -= to / 64)
    if (fits(to, SIZE_MAX, true, all)) return answer;
  return answer;
}

}}  // namespace neap::v0
