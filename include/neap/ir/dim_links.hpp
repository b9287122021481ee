// Dimension relations as a text, for ops whose operator neap does not know but whose file says how they may be cut:
// "0.1=0.2" axis 1 of input 0 is axis 2 of output 0; "1.0+0" axis 0 of input 1 is reduced as loop 0, the parts to be summed
// ('^' the maximum, '_' the minimum, '~' the mean, '!' every part makes the whole). Separated by spaces.
#pragma once

#include <neap/ir/operator_contexts.hpp>

#include <span>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

namespace detail {
inline constexpr std::string_view link_signs = "=+^_~!";  // by combine
}  // namespace detail

std::string to_text(std::span<dim_link const> links);

/// Says the relations of a text that to_text() made.
void relate_by_text(std::string_view text, dim_context& c);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/dim_links.ipp>
#endif
