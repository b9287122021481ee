// The bodies of <neap/core/worker_team.hpp>.
#pragma once

#include <neap/core/worker_team.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void worker_team::help(unsigned me) {
  for (std::uint32_t met = 0;;) {
    lists_.wait(met, std::memory_order_acquire);
    met = lists_.load(std::memory_order_acquire);
    if (ending_) return;
    work_through(me);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

NEAP_FUNC void worker_team::work_through(unsigned me) {
  for (auto k = next_++; k < count_; k = next_++) {
    try {
      call_(work_, me, k);
    } catch (...) {
      std::lock_guard const alone(mutex_);
      if (k < thrown_at_) thrown_at_ = k, thrown_ = std::current_exception();
    }
  }
}

}}  // namespace neap::v0
