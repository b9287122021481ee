// Cost models: function objects that give the time of one op. What comes with the graph (given_latencies), what comes
// with the graph where it does and from another model elsewhere (given_or). See roofline.hpp and cost_table.hpp.
#pragma once

#include <neap/core/error.hpp>
#include <neap/ir/dataflow.hpp>

#include <concepts>
#include <limits>
#include <utility>

namespace neap { inline namespace v0 {

/// Gives the time of an op: `cost(graph, op)`, in seconds.
/// Promise: finite and not negative; equal ops of equal types have equal costs; views cost nothing.
template <class C, class G>
concept cost_model_for = requires(C const& cost, G const& g, op_id o) {
  { cost(g, o) } -> std::convertible_to<seconds_t>;
};

namespace detail {
/// Checked where a user's cost model enters.
template <class C, class G>
constexpr bool check_cost_model() {
  static_assert(cost_model_for<C, G>,
                "neap: this is no cost model of this graph: it lacks  double operator()(G const&, neap::op_id) const");
  return true;
}
/// A cost model's answer. Throws neap::error if it is no time.
inline seconds_t as_time(seconds_t t, op_id o, char const* who) {
  if (!(t >= 0 && t < std::numeric_limits<seconds_t>::infinity())) [[unlikely]]
    throw_error(
        {who, ": the cost model gives ", t, " seconds for op ", index(o), ": a time is finite and not negative"});
  return t;
}
}  // namespace detail

/// Every op is free: for those who only count bytes.
struct no_cost {
  template <class G>
  seconds_t operator()(G const&, op_id) const {
    return 0;
  }
};

/// The latencies that an imported graph brings along; ops without one are free.
struct given_latencies {
  template <class G>
  seconds_t operator()(G const& g, op_id o) const {
    auto const t = flow::seconds(g, o);
    return t > 0 ? t : 0;
  }
};

/// The latency that comes with an op, or what another model says of it.
template <class Model>
struct given_or {
  Model other;
  template <class G>
    requires cost_model_for<Model, G>
  seconds_t operator()(G const& g, op_id o) const;
};
template <class Model>
given_or(Model) -> given_or<Model>;

template <class Model>
template <class G>
  requires cost_model_for<Model, G>
seconds_t given_or<Model>::operator()(G const& g, op_id o) const {
  seconds_t t;
  if constexpr (requires { other.given(g, o); }) t = other.given(g, o);
  else t = flow::seconds(g, o);
  return t >= 0 ? t : other(g, o);
}

}}  // namespace neap::v0
