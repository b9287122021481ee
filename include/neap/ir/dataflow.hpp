// What schedulers, simulators, allocators and solvers know of a graph: topology, bytes, roles, order. Any graph type can
// be planned by specialising graph_traits<G>; neap's own graphs need nothing. What an external graph does not say is taken
// conservatively: not recomputable, never in place, no workspace.
//
//   template <> struct neap::graph_traits<my_graph> {
//     static std::size_t op_count(my_graph const&);
//     static std::size_t value_count(my_graph const&);
//     static std::size_t storage_count(my_graph const&);
//     static auto inputs(my_graph const&, op_id);      // a range of value_id
//     static auto outputs(my_graph const&, op_id);     // a range of value_id
//     static storage_id storage(my_graph const&, value_id);
//     static bytes_t bytes(my_graph const&, storage_id);
//     // optional:
//     static bool is_resident(my_graph const&, storage_id);   // exists before and after the step; default: made by no op
//     static auto kept(my_graph const&);                       // values that live to the end; default: those without readers
//     static auto order_after(my_graph const&, op_id);         // ops that must run before; default: none
//     static bool is_view(my_graph const&, op_id);             // costs nothing; default: false
//     static std::pair<bytes_t, bytes_t> part(my_graph const&, value_id);  // the bytes [first, second) of its storage that a
//                                                              // value covers: several ops may fill one; default: all
//     static bool is_recomputable(my_graph const&, op_id);     // may run again, with the same result; default: false
//     static bool is_swappable(my_graph const&, storage_id);   // may be stored outside and loaded again; default: true
//     static bool may_take_over(my_graph const&, op_id, std::size_t input, std::size_t output);  // default: false
//     static bool takes_over(my_graph const&, op_id);          // false: may_take_over is false throughout; default: true
//     static op_id producer(my_graph const&, value_id);        // nothing<op_id> if none; default: found in all outputs
//     static std::size_t edge_count(my_graph const&);          // at least all inputs, outputs and order_after; default: counted
//     static bytes_t workspace(my_graph const&, op_id);        // default: 0
//     static work cost(my_graph const&, op_id);                // default: bytes of its values
//     static double seconds(my_graph const&, op_id);           // a given latency, negative if none; default: -1
//     static op_stream stream(my_graph const&, op_id);         // default: compute
//     static std::string_view name(my_graph const&, op_id);    // for messages and pictures; default: none
//     static pin_set op_pins(my_graph const&, op_id);          // what a planner may not do (ir/pins.hpp); default: none
//     static pin_set value_pins(my_graph const&, value_id);    // the same of a value; default: none
//   };
//
// Within that specialisation a name that neap has, too (graph, op, tensor), means neap's: write ::graph there. Or the
// functions are in a struct of the graph's own namespace, which a declaration there names; its ids are then written in full:
//
//   namespace mine {
//   struct adapter { static std::size_t op_count(graph const&); ... };
//   adapter neap_graph_traits(graph const&);   // never called
//   }
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/external.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/stored.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Where an op runs: the compute stream, or one of the two copy streams.
enum class op_stream : std::uint8_t { compute, to_host, to_device };

template <class G>
struct graph_traits;  // not defined: a graph type that can be planned has a specialisation, or neap_graph_traits

namespace detail {
template <class G>
concept has_traits_beside_it = requires(G const& g) { neap_graph_traits(g); };
}  // namespace detail

/// Graphs whose namespace declares neap_graph_traits(G const&), which returns the struct of functions.
template <class G>
  requires(detail::has_traits_beside_it<G> && !std::derived_from<G, op_graph>)
struct graph_traits<G> : std::remove_cvref_t<decltype(neap_graph_traits(std::declval<G const&>()))> {};

/// neap's own graphs.
template <class G>
  requires std::derived_from<G, op_graph>
struct graph_traits<G> {
  static std::size_t op_count(op_graph const& g) { return g.op_count(); }
  static std::size_t value_count(op_graph const& g) { return g.value_count(); }
  static std::size_t storage_count(op_graph const& g) { return g.storage_count(); }
  static std::span<value_id const> inputs(op_graph const& g, op_id o) { return g.inputs(o); }
  static id_range<value_id> outputs(op_graph const& g, op_id o) { return g.outputs(o); }
  static storage_id storage(op_graph const& g, value_id v) { return g.storage(v); }
  static bytes_t bytes(op_graph const& g, storage_id s) { return g.bytes(s); }
  static std::size_t edge_count(op_graph const& g) { return g.edge_count(); }
  static pin_set op_pins(op_graph const& g, op_id o) { return g.pins(o); }
  static pin_set value_pins(op_graph const& g, value_id v) { return g.pins(v); }
  static bool is_resident(op_graph const& g, storage_id s) { return g.is_resident(s); }
  static std::span<value_id const> kept(op_graph const& g) { return g.kept(); }
  static std::span<op_id const> order_after(op_graph const& g, op_id o) { return g.order_after(o); }
  static op_id producer(op_graph const& g, value_id v) { return g.producer(v); }
  /// All outputs are views: nothing is computed.
  static bool is_view(op_graph const& g, op_id o) {
    if (auto const* x = g.as<op::external>(o)) return x->view;
    for (auto v : g.outputs(o))
      if (g.record(v).alias != alias_kind::view) return false;
    return !g.outputs(o).empty();
  }
  /// Pure, or pinned run_again, and not pinned otherwise: no in-place update, no placeholder, no transfer.
  static bool is_recomputable(op_graph const& g, op_id o) {
    if (!g.may_recompute(o)) return false;
    for (auto v : g.outputs(o))
      if (g.record(v).alias == alias_kind::update) return false;
    if (auto const* x = g.as<op::opaque>(o)) return (x->pure || g.pins(o).has(pin::run_again)) && !x->placeholder;
    if (auto const* x = g.as<op::external>(o)) return x->recomputable;
    return stream(g, o) == op_stream::compute && !g.as<op::wait>(o);
  }
  static bool is_swappable(op_graph const& g, storage_id s) {
    auto const v = g.record(s).first;
    auto const maker = g.producer(v);
    auto const* x = maker == nothing<op_id> ? nullptr : g.as<op::external>(maker);
    return g.may_swap(s) && (!x || x->may_leave(index(v) - index(g.outputs(maker).front())));
  }
  static bool takes_over(op_graph const& g, op_id o) {
    if (auto const* x = g.as<op::opaque>(o)) return x->pointwise;
    if (auto const* x = g.as<op::external>(o)) return x->takes_over != 0;
    return g.facets(o).is_elementwise(g.attributes(o));
  }
  static bool may_take_over(op_graph const& g, op_id o, std::size_t input, std::size_t output) {
    auto const v = g.outputs(o)[output], u = g.inputs(o)[input];
    if (g.record(v).alias != alias_kind::fresh) return false;
    if (auto const* x = g.as<op::external>(o)) return x->may_take_over(input, output);
    return takes_over(g, o) && g.record(u).layout == g.record(v).layout &&
           g.bytes(g.storage(u)) == g.bytes(g.storage(v));
  }
  static bytes_t workspace(op_graph const& g, op_id o) {
    if (auto const* x = g.as<op::external>(o)) return x->workspace_bytes;
    auto const& f = g.facets(o);
    return f.workspace ? with_layouts(g, o, [&](work_context const& c) { return f.workspace(g.attributes(o), c); }) : 0;
  }
  static work cost(op_graph const& g, op_id o) {
    return with_layouts(g, o, [&](work_context const& c) { return g.facets(o).cost(g.attributes(o), c); });
  }
  static double seconds(op_graph const& g, op_id o) {
    if (auto const* x = g.as<op::external>(o)) return x->seconds;
    auto const* x = g.as<op::opaque>(o);
    if (!x || x->seconds < 0 || !x->is_part()) return x ? x->seconds : -1.0;
    // A part, for want of a device's numbers: its share of the work, whatever a launch may cost.
    double const bytes = x->read + x->written;
    return x->seconds * std::max(x->whole_flops > 0 ? x->flops / x->whole_flops : 0,
                                 x->whole_bytes > 0 ? bytes / x->whole_bytes : 0);
  }
  static op_stream stream(op_graph const& g, op_id o) {
    if (auto const* x = g.as<op::external>(o)) return static_cast<op_stream>(x->stream);
    if (g.as<op::store>(o)) return op_stream::to_host;
    if (g.as<op::load>(o)) return op_stream::to_device;
    return op_stream::compute;
  }

 private:
  /// Few ops have more than eight values: no allocation for the others.
  template <class F>
  static auto with_layouts(op_graph const& g, op_id o, F f) {
    auto const in = g.inputs(o);
    auto const out = g.outputs(o);
    std::size_t const n = in.size() + out.size();
    alignas(tensor_layout) std::byte few[8 * sizeof(tensor_layout)];  // not filled with zeros first
    plain_vector<tensor_layout> many;
    if (n > 8) many.resize_for_overwrite(n);
    auto* to = many.empty() ? reinterpret_cast<tensor_layout*>(few) : many.data();
    auto const* const all = to;
    static_assert(std::is_trivially_copyable_v<tensor_layout> && std::is_trivially_destructible_v<tensor_layout>);
    for (auto v : in) ::new (to++) tensor_layout(g.layout(v));
    for (auto v : out) ::new (to++) tensor_layout(g.layout(v));
    return f(work_context{span_of(all, in.size()), span_of(all + in.size(), out.size())});
  }
};

namespace detail {
template <class G>
using traits_of = graph_traits<std::remove_cvref_t<G>>;
template <class G>
concept has_counts = requires(G const& g) {
  { traits_of<G>::op_count(g) } -> std::convertible_to<std::size_t>;
  { traits_of<G>::value_count(g) } -> std::convertible_to<std::size_t>;
  { traits_of<G>::storage_count(g) } -> std::convertible_to<std::size_t>;
};
template <class G>
concept has_edges = requires(G const& g, op_id o) {
  { *traits_of<G>::inputs(g, o).begin() } -> std::convertible_to<value_id>;
  { *traits_of<G>::outputs(g, o).begin() } -> std::convertible_to<value_id>;
};
template <class G>
concept has_storages = requires(G const& g, value_id v, storage_id s) {
  { traits_of<G>::storage(g, v) } -> std::same_as<storage_id>;
  { traits_of<G>::bytes(g, s) } -> std::convertible_to<bytes_t>;
};

#define NEAP_TRAIT_FITS(name, parameters, arguments, signature)                        \
  static_assert(                                                                       \
      !requires { &traits::name; } || requires parameters { traits::name arguments; }, \
      "neap: graph_traits of this graph takes other arguments than  static " signature)

/// An optional trait that is there and cannot be called would be taken for a missing one: it is an error instead.
template <class G>
constexpr bool optional_traits_fit() {
  using traits = traits_of<G>;
  NEAP_TRAIT_FITS(is_resident, (G const& g, storage_id s), (g, s), "bool is_resident(G const&, neap::storage_id)");
  NEAP_TRAIT_FITS(kept, (G const& g), (g), "auto kept(G const&)");
  NEAP_TRAIT_FITS(order_after, (G const& g, op_id o), (g, o), "auto order_after(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(is_view, (G const& g, op_id o), (g, o), "bool is_view(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(part, (G const& g, value_id v), (g, v),
                  "std::pair<neap::bytes_t, neap::bytes_t> part(G const&, neap::value_id)");
  NEAP_TRAIT_FITS(is_recomputable, (G const& g, op_id o), (g, o), "bool is_recomputable(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(is_swappable, (G const& g, storage_id s), (g, s), "bool is_swappable(G const&, neap::storage_id)");
  NEAP_TRAIT_FITS(may_take_over, (G const& g, op_id o, std::size_t i, std::size_t j), (g, o, i, j),
                  "bool may_take_over(G const&, neap::op_id, std::size_t, std::size_t)");
  NEAP_TRAIT_FITS(takes_over, (G const& g, op_id o), (g, o), "bool takes_over(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(producer, (G const& g, value_id v), (g, v), "neap::op_id producer(G const&, neap::value_id)");
  NEAP_TRAIT_FITS(edge_count, (G const& g), (g), "std::size_t edge_count(G const&)");
  NEAP_TRAIT_FITS(workspace, (G const& g, op_id o), (g, o), "neap::bytes_t workspace(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(cost, (G const& g, op_id o), (g, o), "neap::work cost(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(seconds, (G const& g, op_id o), (g, o), "double seconds(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(stream, (G const& g, op_id o), (g, o), "neap::op_stream stream(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(name, (G const& g, op_id o), (g, o), "std::string_view name(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(op_pins, (G const& g, op_id o), (g, o), "neap::pin_set op_pins(G const&, neap::op_id)");
  NEAP_TRAIT_FITS(value_pins, (G const& g, value_id v), (g, v), "neap::pin_set value_pins(G const&, neap::value_id)");
  return true;
}
#undef NEAP_TRAIT_FITS
}  // namespace detail

/// A graph that can be scheduled, simulated and placed.
/// Promise: ids are dense from 0; an op's inputs and outputs do not change while it is planned; every value has at most
/// one producer; there is an order of the ops that meets data and order_after.
template <class G>
concept dataflow_graph = detail::has_counts<G> && detail::has_edges<G> && detail::has_storages<G>;

/// The one way the layers above ask a graph: required traits forwarded, optional ones with their conservative defaults.
namespace flow {
template <class G>
std::size_t op_count(G const& g) {
  static_assert(detail::optional_traits_fit<G>());  // checked for every graph
  return detail::traits_of<G>::op_count(g);
}
template <class G>
std::size_t value_count(G const& g) {
  return detail::traits_of<G>::value_count(g);
}
template <class G>
std::size_t storage_count(G const& g) {
  return detail::traits_of<G>::storage_count(g);
}
template <class G>
decltype(auto) inputs(G const& g, op_id o) {
  return detail::traits_of<G>::inputs(g, o);
}
template <class G>
decltype(auto) outputs(G const& g, op_id o) {
  return detail::traits_of<G>::outputs(g, o);
}
template <class G>
storage_id storage(G const& g, value_id v) {
  return detail::traits_of<G>::storage(g, v);
}
template <class G>
bytes_t bytes(G const& g, storage_id s) {
  return detail::traits_of<G>::bytes(g, s);
}

/// Ops that must have run before o beyond the producers of its inputs.
template <class G>
decltype(auto) order_after(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::order_after(g, o); }) return detail::traits_of<G>::order_after(g, o);
  else return std::span<op_id const>{};
}
template <class G>
bool is_view(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::is_view(g, o); }) return detail::traits_of<G>::is_view(g, o);
  else return false;
}
template <class G>
bool is_recomputable(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::is_recomputable(g, o); })
    return detail::traits_of<G>::is_recomputable(g, o);
  else return false;
}
/// Whether a search that swaps may store this storage outside and load it again elsewhere.
template <class G>
bool is_swappable(G const& g, storage_id s) {
  if constexpr (requires { detail::traits_of<G>::is_swappable(g, s); }) return detail::traits_of<G>::is_swappable(g, s);
  else return true;
}
template <class G>
bool may_take_over(G const& g, op_id o, std::size_t input, std::size_t output) {
  if constexpr (requires { detail::traits_of<G>::may_take_over(g, o, input, output); })
    return detail::traits_of<G>::may_take_over(g, o, input, output);
  else return false;
}
/// A quick no to may_take_over for all of an op's inputs and outputs.
template <class G>
bool takes_over(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::takes_over(g, o); }) return detail::traits_of<G>::takes_over(g, o);
  else return requires { detail::traits_of<G>::may_take_over(g, o, std::size_t{}, std::size_t{}); };
}
template <class G>
bytes_t workspace(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::workspace(g, o); }) return detail::traits_of<G>::workspace(g, o);
  else return 0;
}
template <class G>
work cost(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::cost(g, o); }) {
    return detail::traits_of<G>::cost(g, o);
  } else {
    work w;
    for (auto v : inputs(g, o)) w.read += static_cast<double>(bytes(g, storage(g, v)));
    for (auto v : outputs(g, o)) w.written += static_cast<double>(bytes(g, storage(g, v)));
    return w;
  }
}
/// A latency that comes with the graph, in seconds; negative: none.
template <class G>
double seconds(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::seconds(g, o); }) return detail::traits_of<G>::seconds(g, o);
  else return -1.0;
}
template <class G>
op_stream stream(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::stream(g, o); }) return detail::traits_of<G>::stream(g, o);
  else return op_stream::compute;
}
/// What people call an op where it comes from; empty if nothing.
template <class G>
std::string_view name(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::name(g, o); }) return detail::traits_of<G>::name(g, o);
  else return {};
}
/// What a planner may not do to an op; to a value.
template <class G>
pin_set pins(G const& g, op_id o) {
  if constexpr (requires { detail::traits_of<G>::op_pins(g, o); }) return detail::traits_of<G>::op_pins(g, o);
  else return {};
}
template <class G>
pin_set pins(G const& g, value_id v) {
  if constexpr (requires { detail::traits_of<G>::value_pins(g, v); }) return detail::traits_of<G>::value_pins(g, v);
  else return {};
}
/// Inputs, outputs and order_after of all ops together, or more. O(ops + edges).
template <class G>
std::size_t edge_count(G const& g) {
  if constexpr (requires { detail::traits_of<G>::edge_count(g); }) {
    return detail::traits_of<G>::edge_count(g);
  } else {
    std::size_t n = 0;
    auto const count = [&](auto&& range) {
      if constexpr (requires { range.size(); }) n += range.size();
      else
        for ([[maybe_unused]] auto const& x : range) ++n;
    };
    for (auto o : id_range<op_id>(op_count(g))) count(inputs(g, o)), count(outputs(g, o)), count(order_after(g, o));
    return n;
  }
}
/// The op that makes each value; nothing<op_id> for sources. O(ops + values).
template <class G>
table<value_id, op_id> producers(G const& g) {
  table<value_id, op_id> p(value_count(g), nothing<op_id>);
  for (auto o : id_range<op_id>(op_count(g)))
    for (auto v : outputs(g, o)) p[v] = o;
  return p;
}
/// Which storages exist before and after the step. O(ops + values).
template <class G>
std::vector<bool> residents(G const& g) {
  std::vector<bool> r(storage_count(g));
  if constexpr (requires(storage_id s) { detail::traits_of<G>::is_resident(g, s); }) {
    for (auto s : id_range<storage_id>(storage_count(g))) r[index(s)] = detail::traits_of<G>::is_resident(g, s);
  } else {
    auto const p = producers(g);
    for (auto v : id_range<value_id>(value_count(g)))
      if (p[v] == nothing<op_id>) r[index(storage(g, v))] = true;
  }
  return r;
}
/// Values that live to the end of the step, as a range. O(ops + edges).
template <class G>
decltype(auto) kept(G const& g) {
  if constexpr (requires { detail::traits_of<G>::kept(g); }) {
    return detail::traits_of<G>::kept(g);
  } else {
    std::vector<value_id> k;
    std::vector<bool> read(value_count(g));
    for (auto o : id_range<op_id>(op_count(g)))
      for (auto v : inputs(g, o)) read[index(v)] = true;
    auto const p = producers(g);
    for (auto v : id_range<value_id>(value_count(g)))
      if (!read[index(v)] && p[v] != nothing<op_id>) k.push_back(v);
    return k;
  }
}
}  // namespace flow

}}  // namespace neap::v0
