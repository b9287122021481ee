// The bodies of <neap/model/kernels.hpp>.
#pragma once

#include <neap/model/kernels.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC kernel_function<host_backend> host_kernel(operator_facets const& f) {
  if (detail::kernels_by_operator || f.kernel) return f.kernel();
  return f.standard_row < 0 ? nullptr : detail::standard_kernels()[static_cast<std::size_t>(f.standard_row)];
}

}}  // namespace neap::v0
