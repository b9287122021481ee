// The bodies of <neap/ir/operators/threads.hpp>.
#pragma once

#include <neap/ir/operators/threads.hpp>

#include <neap/backend/thread_team.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op::detail {

NEAP_FUNC int planned_threads() {
  static int const threads = std::max(4, neap::detail::thread_team::cores());
  return threads;
}

}}}  // namespace neap::v0::op::detail
