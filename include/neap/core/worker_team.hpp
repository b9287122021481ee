// Threads that work through one list of items after another, together with the calling thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A team of `threads`, the caller among them; the others sleep between two lists. One list at a time.
///
///   worker_team team(4);
///   team.run(items.size(), [&](unsigned worker, std::size_t item) { ... });   // worker < 4
class worker_team {
 public:
  explicit worker_team(unsigned threads) {
    for (unsigned t = 1; t < threads; ++t) helpers_.emplace_back([this, t] { help(t); });
  }
  worker_team(worker_team const&) = delete;
  worker_team& operator=(worker_team const&) = delete;
  ~worker_team() {
    ending_ = true;
    begin_list();
  }

  /// With the caller.
  unsigned size() const { return static_cast<unsigned>(helpers_.size()) + 1; }

  /// Calls work(worker, item) once for each item below `count`, items in rising order as workers become free; returns when
  /// all are done. Where calls throw, the exception of the least item that threw is thrown again, after the rest is done.
  template <class F>
  void run(std::size_t count, F&& work) {
    work_ = const_cast<void*>(static_cast<void const*>(std::addressof(work)));
    call_ = [](void* f, unsigned worker, std::size_t item) {
      (*static_cast<std::remove_reference_t<F>*>(f))(worker, item);
    };
    count_ = count, thrown_at_ = count, thrown_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(helpers_.size(), std::memory_order_relaxed);
    begin_list();
    work_through(0);
    for (auto left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire))
      busy_.wait(left, std::memory_order_acquire);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  void begin_list() {
    lists_.fetch_add(1, std::memory_order_release);
    lists_.notify_all();
  }
  void help(unsigned me);
  void work_through(unsigned me);

  // Of the present list; written before lists_ counts it.
  void* work_ = nullptr;
  void (*call_)(void*, unsigned, std::size_t) = nullptr;
  std::size_t count_ = 0;
  bool ending_ = false;
  std::atomic<std::size_t> next_{0}, busy_{0};
  std::atomic<std::uint32_t> lists_{0};  // begun so far
  std::mutex mutex_;                     // of what follows
  std::size_t thrown_at_ = 0;
  std::exception_ptr thrown_;
  std::vector<std::jthread> helpers_;  // last: joined while the rest is still there
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/worker_team.ipp>
#endif
