// Kernels on as many threads as their workspace is for (<neap/ir/operators/threads.hpp>).
#pragma once

#include <neap/ir/operators/threads.hpp>

#include <neap/backend/host.hpp>

namespace neap { inline namespace v0 { namespace op::detail {

template <class F>
void on_planned_threads(host_backend& b, F const& f) {
  if (b.threads() <= planned_threads()) return f(b);
  host_backend one(1);
  f(one);
}

}}}  // namespace neap::v0::op::detail
