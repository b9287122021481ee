// The bodies of <neap/model/listener.hpp>.
#pragma once

#include <neap/model/listener.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The recordings under way.
struct watched_recordings {
  std::mutex mutex;
  std::vector<recording_watch*> all;
  static watched_recordings& of_process() {
    static watched_recordings one;
    return one;
  }
};

NEAP_FUNC void const* recording_watch::this_thread() {
  thread_local char here = 0;
  return &here;
}

NEAP_FUNC recording_watch::recording_watch(std::uint64_t capture) : capture_(capture) {
  auto& recordings = watched_recordings::of_process();
  std::scoped_lock const alone(recordings.mutex);
  recordings.all.push_back(this);
  under_way_.fetch_add(1, std::memory_order_relaxed);
}

NEAP_FUNC recording_watch::~recording_watch() {
  auto& recordings = watched_recordings::of_process();
  std::scoped_lock const alone(recordings.mutex);
  std::erase(recordings.all, this);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
}

NEAP_FUNC void recording_watch::watch(void const* part) {
  std::scoped_lock const alone(watched_recordings::of_process().mutex);
  parts_.add(part, 0);
}

NEAP_FUNC void recording_watch::report(void const* part, std::uint64_t capture, bool writes) {
  auto& recordings = watched_recordings::of_process();
  std::scoped_lock const alone(recordings.mutex);
  for (auto* each : recordings.all) {
    if (each->thread_ == this_thread() && !writes) continue;
    if (!part || each->parts_.contains(part) || (capture != 0 && each->capture_ == capture))
      each->was_used_.store(true, std::memory_order_release);
  }
}

}  // namespace detail
}}  // namespace neap::v0
