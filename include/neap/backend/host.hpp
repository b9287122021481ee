// The host backend: runs kernels on a fixed team of threads. Work is cut into pieces that do not depend on how many
// threads there are, so results do not either. Launching allocates nothing.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap::inline v0 {

namespace detail {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A fixed team of workers; the calling thread takes part. A job is a number of pieces, which the members claim one by
/// one, so a member that is late, because it slept or its core is busy elsewhere, delays no other.
///
/// `ticket_` holds the job's number in its high half and the pieces not yet claimed in its low half. A thread that takes a
/// piece by a compare-exchange knows that the job cannot end, hence its description cannot change, before that piece is
/// done.
class thread_team {
 public:
  /// Throws neap::error if the system does not start so many; those that it has started are ended.
  explicit thread_team(int threads) {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (std::system_error const& e) {
      end();
      throw_error({"host_backend: the system started ", workers_.size() + 1, " of ", threads, " threads: ", e.what()});
    }
  }
  thread_team(thread_team const&) = delete;
  thread_team& operator=(thread_team const&) = delete;
  ~thread_team() { end(); }
  int size() const { return static_cast<int>(workers_.size()) + 1; }

 private:
  void end() {
    stop_.store(true, std::memory_order_relaxed);
    ticket_.fetch_add(one_job, std::memory_order_release);
    ticket_.notify_all();
    for (auto& w : workers_) w.join();
  }

 public:
  using piece_call = void (*)(void const* context, std::uint32_t piece, int worker);

  /// call(context, piece, worker) for piece in [0, pieces), each once; returns when all are done. From inside a job, or
  /// while another thread runs one, the caller does the work alone.
  void run(std::uint32_t pieces, piece_call call, void const* context) {
    if (workers_.empty() || pieces <= 1 || busy_.exchange(true, std::memory_order_acquire)) {
      for (std::uint32_t p = 0; p < pieces; ++p) call(context, p, 0);
      return;
    }
    context_ = context;
    call_ = call;
    unfinished_.store(pieces, std::memory_order_relaxed);
    auto const job = (ticket_.load(std::memory_order_relaxed) / one_job + 1) * one_job;
    ticket_.store(job + pieces, std::memory_order_release);
    ticket_.notify_all();
    take_part(0);
    for (int spin = 0; spin < patience; ++spin) {
      if (unfinished_.load(std::memory_order_acquire) == 0) break;
      relax();
    }
    for (std::uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
      unfinished_.wait(left, std::memory_order_acquire);
    busy_.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t one_job = std::uint64_t{1} << 32;
  static constexpr int patience = 2000;  // spins before sleeping: some tens of microseconds

  void take_part(int worker) {
    auto ticket = ticket_.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(ticket) != 0) {
      if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      call_(context_, static_cast<std::uint32_t>(ticket) - 1, worker);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }
  void work(int worker) {
    while (!stop_.load(std::memory_order_relaxed)) {
      take_part(worker);
      auto ticket = ticket_.load(std::memory_order_acquire);
      for (int spin = 0; spin < patience && static_cast<std::uint32_t>(ticket) == 0; ++spin) {
        relax();
        ticket = ticket_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed)) return;
      }
      if (static_cast<std::uint32_t>(ticket) == 0 && !stop_.load(std::memory_order_relaxed))
        ticket_.wait(ticket, std::memory_order_acquire);
    }
  }

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
  alignas(64) std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};
  void const* context_ = nullptr;
  piece_call call_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace detail

namespace detail {
/// A kernel on elements that it computes with in another type.
template <class K>
concept computes_elsewhere = requires {
  typename K::element;
  typename K::C;
} && !std::is_same_v<typename K::element, typename K::C>;
}  // namespace detail

/// Runs kernels on this machine's cores.
class host_backend {
 public:
  static constexpr std::string_view name = "host";
  static constexpr bool addresses_host_memory = true;  // free functions may read tensors to check them
  using block = host_block;

  static constexpr int most_threads = 4096;

  /// `threads` in all, the caller's included; 0 is one for each core. Throws neap::error for a negative number, for more
  /// than most_threads, and where the system does not start so many.
  explicit host_backend(int threads = 0, std::source_location at = std::source_location::current())
      : team_(std::make_unique<detail::thread_team>(checked(threads, at))) {}

  int threads() const { return team_->size(); }

  /// Runs kernel(block) for every block id in [0, blocks). Blocks must not depend on one another, and kernels must not
  /// throw. `block_work` is about how many elements a block handles (0: unknown, taken as many): launches that are not
  /// worth waking a thread for stay on the caller's.
  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t block_work = 0) {
    launch_erased(
        blocks,
        [](void const* k, std::int64_t id, int worker) {
          std::conditional_t<detail::computes_elsewhere<K>, host_block_in_order, host_block> b;
          b.id = id, b.worker = worker;
          (*static_cast<K const*>(k))(b);
        },
        &kernel, block_work);
  }

  /// f(begin, end) or f(begin, end, worker) over consecutive ranges of `grain` indices (the last may be shorter) that
  /// cover [0, n). The ranges do not depend on the number of threads.
  template <class F>
  void parallel_for(std::int64_t n, std::int64_t grain, F const& f) {
    parallel_for_erased(
        n, grain,
        [](void const* context, std::int64_t begin, std::int64_t end, [[maybe_unused]] int worker) {
          F const& body = *static_cast<F const*>(context);
          if constexpr (requires { body(begin, end, worker); }) body(begin, end, worker);
          else body(begin, end);
        },
        &f);
  }

  /// f(i) for i in [0, n); calls must not depend on one another.
  template <class F>
  void elementwise(std::int64_t n, F const& f) {
    parallel_for(n, 8192, [&](std::int64_t begin, std::int64_t end) {
      host_block{}.each(end - begin, [&](std::int64_t i) { f(begin + i); });
    });
  }

 private:
  static int checked(int threads, std::source_location at) {
    if (threads < 0 || threads > most_threads)
      throw_error(at, {"host_backend: ", threads, " threads: a number from 1 to ", most_threads,
                       ", or 0 for one on each core"});
    return threads > 0 ? threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_threads);
  }

  static constexpr std::int64_t small_work = 16384;  // elements

  // What follows is compiled once, not for each kernel: kernels come as a function and what it is called on.
  using block_call = void (*)(void const* kernel, std::int64_t id, int worker);
  using range_call = void (*)(void const* context, std::int64_t begin, std::int64_t end, int worker);

  void launch_erased(std::int64_t blocks, block_call call, void const* kernel, std::int64_t block_work) {
    auto const run_blocks = [call, kernel](std::int64_t first, std::int64_t last, int worker) {
      for (std::int64_t id = first; id < last; ++id) call(kernel, id, worker);
    };
    if (block_work > 0 && blocks <= small_work / block_work) return run_blocks(0, blocks, 0);
    in_pieces(blocks, run_blocks);
  }
  void parallel_for_erased(std::int64_t n, std::int64_t grain, range_call call, void const* context) {
    in_pieces((n + grain - 1) / grain, [=](std::int64_t first, std::int64_t last, int worker) {
      for (std::int64_t r = first; r < last; ++r) call(context, r * grain, std::min(n, (r + 1) * grain), worker);
    });
  }

  // f(first, last, worker) over consecutive ranges that cover [0, n): a few for each thread, so that a busy core does
  // not hold the others up.
  template <class F>
  void in_pieces(std::int64_t n, F const& f) {
    if (n <= 0) return;
    std::int64_t const pieces = threads() == 1 ? 1 : std::min<std::int64_t>(n, threads() * 4);
    if (pieces == 1) return f(std::int64_t{0}, n, 0);
    auto const run_piece = [&](std::uint32_t piece, int worker) {
      f(n * piece / pieces, n * (piece + 1) / pieces, worker);
    };
    team_->run(
        static_cast<std::uint32_t>(pieces),
        [](void const* context, std::uint32_t piece, int worker) {
          (*static_cast<decltype(run_piece)*>(context))(piece, worker);
        },
        &run_piece);
  }

  std::unique_ptr<detail::thread_team> team_;
};

}  // namespace neap::inline v0
