// Rules of elementwise operators: arithmetic, casts, programs of steps.
#pragma once

#include <neap/ir/field/evaluator.hpp>
#include <neap/ir/operators/element_steps.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

std::span<field_rule const> elementwise_field_rules();

/// The result of step `wanted` of a program on these values, computed as the operators that the steps stand for. Where
/// there is a `first`, it is the element of the first value.
field_element field_steps(field_evaluator& e, element_program const& program, std::span<value_id const> in,
                          field_element const* first, index_place const& p, int wanted);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/field/impl/elementwise.ipp>
#endif
