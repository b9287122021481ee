// The kernels that src/kernels.hpp leaves out, those of images, for one source file of a program whose files are
// compiled with NEAP_SEPARATE_COMPILATION (neap/src.hpp says more).
#pragma once

#include <neap/ir/operators/kernels/channel_norm.hpp>
#include <neap/ir/operators/kernels/conv2d.hpp>
#include <neap/ir/operators/kernels/image.hpp>
#include <neap/model/kernels.hpp>

#define NEAP_COMPILED_HERE(OP)                                                                               \
  template void neap::detail::run_kernel<neap::host_backend, neap::op::OP>(neap::host_backend&, void const*, \
                                                                           neap::kernel_arguments const&);
NEAP_IMAGE_KERNELS(NEAP_COMPILED_HERE)
#undef NEAP_COMPILED_HERE
