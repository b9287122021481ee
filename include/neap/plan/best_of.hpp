// best_of and first_optimal of what is neither a planner nor a solver: a sentence in place of a list of candidates. Those of
// planners are in memory/combine.hpp, those of solvers of recomputation in blocks/remat_solver.hpp.
#pragma once

namespace neap { inline namespace v0 {

namespace detail {
template <class...>
inline constexpr bool neither = false;
template <class... Parts>
constexpr bool check_parts() {
  static_assert(
      neither<Parts...>,
      "neap: this takes planners, all of them with  neap::memory_plan operator()(neap::memory_problem const&) "
      "const, or solvers, all of them with  neap::remat_answer operator()(neap::remat_problem const&, "
      "neap::remat_limits const&) const");
  return true;
}
}  // namespace detail

template <class... Parts>
constexpr int best_of(Parts...) {
  static_assert(detail::check_parts<Parts...>());
  return 0;
}
template <class... Parts>
constexpr int first_optimal(Parts...) {
  static_assert(detail::check_parts<Parts...>());
  return 0;
}

}}  // namespace neap::v0
