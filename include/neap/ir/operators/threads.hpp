// Kernels whose scratch grows with the number of threads. A plan fixes an op's workspace before it knows the backend, so
// it counts on as many threads as this machine has cores, and at least 4; a backend with more runs such kernels on one
// (with the same result: none of ours depends on threads).
#pragma once

#include <neap/backend/host.hpp>

#include <algorithm>

namespace neap::inline v0::op::detail {

int planned_threads();
template <class F>
void on_planned_threads(host_backend& b, F const& f) {
  if (b.threads() <= planned_threads()) return f(b);
  host_backend one(1);
  f(one);
}

}  // namespace neap::inline v0::op::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/threads.ipp>
#endif
