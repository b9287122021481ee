// The kernels of the standard operators, but for those of images, for one source file of a program whose files are
// compiled with NEAP_SEPARATE_COMPILATION (neap/src.hpp says more). It alone reads Thrust's headers.
#pragma once

#include <neap/backend/kernels/sort_positions.hpp>
#include <neap/ir/operators/kernels/standard.hpp>
#include <neap/model/kernels.hpp>

#define NEAP_COMPILED_ELSEWHERE(OP)                                                                                 \
  extern template void neap::detail::run_kernel<neap::host_backend, neap::op::OP>(neap::host_backend&, void const*, \
                                                                                  neap::kernel_arguments const&);
NEAP_IMAGE_KERNELS(NEAP_COMPILED_ELSEWHERE)
#undef NEAP_COMPILED_ELSEWHERE

namespace neap { inline namespace v0 { namespace detail {

std::span<kernel_function<host_backend> const> standard_kernels() { return kernel_table<host_backend>(); }

}}}  // namespace neap::v0::detail
