// Rules of operators that add up: sums, means, products of matrices, convolutions.
#pragma once

#include <neap/ir/field/evaluator.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

std::span<field_rule const> sum_field_rules();

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/field/impl/sums.ipp>
#endif
