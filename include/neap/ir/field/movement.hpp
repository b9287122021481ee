// Rules of operators that move elements: views, copies, concatenation, padding, triangles, loads, pieces.
#pragma once

#include <neap/ir/field/evaluator.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

std::span<field_rule const> movement_field_rules();

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/field/impl/movement.ipp>
#endif
