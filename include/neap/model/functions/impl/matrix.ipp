// The bodies of <neap/model/functions/matrix.hpp>.
#pragma once

#include <neap/model/functions/matrix.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC tensor matrix(tensor const& x) {
  return x.rank() < 2 || op::detail::is_matrix(x.layout()) ? x : apply(op::copy{}, {x});
}

}  // namespace detail
}  // namespace neap::inline v0
