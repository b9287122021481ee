// The bodies of <neap/model/functions/rows.hpp>.
#pragma once

#include <neap/model/functions/rows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC tensor rows(tensor const& x) { return x.layout().has_dense_rows() ? x : apply(op::copy{}, {x}); }

}  // namespace detail
}  // namespace neap::inline v0
