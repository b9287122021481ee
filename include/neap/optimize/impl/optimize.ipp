// The bodies of <neap/optimize/optimize.hpp>.
#pragma once

#include <neap/optimize/optimize.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC search_request::search_request() = default;
NEAP_FUNC search_request::~search_request() = default;

NEAP_FUNC given_or<roofline> const& default_cost() {
  static given_or<roofline> const cost{roofline::host(2)};
  return cost;
}

}  // namespace detail
}}  // namespace neap::v0
