// The bodies of <neap/model/kernels.hpp>.
#pragma once

#include <neap/model/kernels.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC kernel_function<host_backend> host_kernel(operator_facets const& f) {
#if defined(NEAP_SEPARATE_COMPILATION)
  if (!f.kernel && f.standard_row >= 0) return detail::standard_kernels()[static_cast<std::size_t>(f.standard_row)];
#endif
  return f.kernel();
}

}}  // namespace neap::v0
