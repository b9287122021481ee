// The bodies of <neap/ir/field_values.hpp>.
#pragma once

#include <neap/ir/field_values.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/field/elementwise.hpp>
#include <neap/ir/field/movement.hpp>
#include <neap/ir/field/sums.hpp>
#include <neap/ir/standard_operators.hpp>

#include <array>
#include <type_traits>

namespace neap { inline namespace v0 {
namespace detail {

/// Whether an operator's results are functions of the elements at one place.
template <class Op>
inline constexpr bool is_by_place =
    (op::scalar_operator<Op> || std::is_same_v<Op, op::where> || requires { typename Op::gradient_op; }) &&
    !random_v<Op>;

/// The rules of the standard operators that have none of their own.
template <class... Op>
constexpr auto default_field_rules(type_list<Op...>) {
  return std::array{(is_by_place<Op> ? by_place_rule : hashed_rule)...};
}

}  // namespace detail

NEAP_FUNC detail::field_rule const& field_values::rule_for(operator_facets const& f, bool floating) const {
  using detail::field_rule;
  static auto const rules = [] {
    auto all = detail::default_field_rules(op::standard_list{});
    for (auto const some :
         {detail::elementwise_field_rules(), detail::movement_field_rules(), detail::sum_field_rules()})
      for (auto const& r : some) all[static_cast<std::size_t>(r.row)] = r;
    return all;
  }();
  if (f.standard_row < 0) return detail::hashed_rule;
  auto const& r = rules[static_cast<std::size_t>(f.standard_row)];
  if (floating || r.has(field_rule::any_type)) return r;
  return r.has(field_rule::by_place) ? detail::by_place_rule : detail::hashed_rule;
}

}}  // namespace neap::v0
