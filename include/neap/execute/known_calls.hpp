// The arguments that each thread has called a compiled function with. They make its look-ups short, which need no lock.
#pragma once

#include <neap/capture/known_arguments.hpp>
#include <neap/execute/compiled_paths.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Arguments that a thread has called with, and their paths.
struct known_call {
  known_arguments arguments;
  std::shared_ptr<published_paths const> paths;
  std::uint64_t key = 0;
};

/// The known calls of one compiled function on one thread; the least recently used is forgotten first.
class known_calls {
 public:
  static constexpr std::size_t most = 256;

  /// Forgets all where captures have published other paths since.
  void follow(std::uint64_t publications) {
    if (publications == publications_) return;
    clear();
    publications_ = publications;
  }
  void clear() { all_.clear(), by_key_.clear(), last = nullptr; }
  known_call* find(std::uint64_t key) const {
    auto const row = by_key_.find(key);
    return row == number_map::none ? nullptr : all_[row].get();
  }
  /// The one of this key, new or again.
  known_call& renew(std::uint64_t key) {
    if (auto* known = find(key)) return *known;
    if (all_.size() == most) forget_oldest();
    by_key_.add(key, static_cast<std::uint32_t>(all_.size()));
    all_.push_back(std::make_unique<known_call>());
    all_.back()->key = key;
    return *all_.back();
  }
  void use(known_call& c) { last = &c, c.arguments.last_used = ++uses_; }

  known_call* last = nullptr;
  bool is_busy = false;  // a call runs, which may call the function again

  /// While it lives, a call runs.
  class busy {
   public:
    explicit busy(known_calls& c) : calls_(c), before_(std::exchange(c.is_busy, true)) {}
    busy(busy const&) = delete;
    busy& operator=(busy const&) = delete;
    ~busy() { calls_.is_busy = before_; }

   private:
    known_calls& calls_;
    bool before_;
  };

 private:
  /// Half of them, so that it is rare.
  void forget_oldest() {
    std::sort(all_.begin(), all_.end(),
              [](auto const& a, auto const& b) { return a->arguments.last_used > b->arguments.last_used; });
    all_.resize(most / 2);
    by_key_.clear();
    for (std::uint32_t k = 0; k < all_.size(); ++k) by_key_.add(all_[k]->key, k);
    last = nullptr;
  }
  std::vector<std::unique_ptr<known_call>> all_;
  number_map by_key_;
  std::uint64_t publications_ = 0, uses_ = 0;
};

/// The known calls of all threads.
class calls_of_threads {
 public:
  calls_of_threads() : id_(next_id()) {}
  calls_of_threads(calls_of_threads const&) = delete;
  calls_of_threads& operator=(calls_of_threads const&) = delete;
  ~calls_of_threads() {
    for (auto const& each : all_)
      if (auto const c = each.lock()) c->calls.clear(), c->is_over.store(true, std::memory_order_release);
  }
  /// Those of this thread. Without a lock but for a thread's first call.
  known_calls& here() {
    auto& last = threads_last();
    if (last.id != id_) last = {id_, &find_here()};
    return *last.calls;
  }

 private:
  struct entry {
    known_calls calls;
    std::atomic<bool> is_over = false;  // the function is gone
  };
  using own = std::vector<std::pair<std::uint64_t, std::shared_ptr<entry>>>;
  struct last_used {
    std::uint64_t id;
    known_calls* calls;
  };
  static own& threads_own() {
    thread_local own mine;
    return mine;
  }
  static last_used& threads_last() {
    thread_local last_used last{};
    return last;
  }
  known_calls& find_here() {
    auto& all = threads_own();
    for (auto const& [id, each] : all)
      if (id == id_) return each->calls;
    return add(all);
  }
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  known_calls& add(own& t) {
    std::erase_if(t, [](auto const& e) { return e.second->is_over.load(std::memory_order_acquire); });
    auto fresh = std::make_shared<entry>();
    {
      std::scoped_lock const alone(mutex_);
      std::erase_if(all_, [](auto const& e) { return e.expired(); });
      all_.push_back(fresh);
    }
    t.emplace_back(id_, fresh);
    return fresh->calls;
  }

  std::uint64_t id_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<entry>> all_;
};

}}}  // namespace neap::v0::detail
