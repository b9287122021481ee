// Kernels whose scratch grows with the number of threads. A plan fixes an op's workspace before it knows the backend, so
// it counts on as many threads as this machine has cores, and at least 4; a backend with more runs such kernels on one
// (with the same result: none of ours depends on threads).
#pragma once

namespace neap { inline namespace v0 { namespace op::detail {

int planned_threads();

}}}  // namespace neap::v0::op::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/threads.ipp>
#endif
