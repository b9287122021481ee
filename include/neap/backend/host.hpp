// The host backend: runs kernels on a fixed team of threads. Work is cut into pieces that do not depend on how many
// threads there are, so results do not either. Launching allocates nothing.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/backend/thread_team.hpp>
#include <neap/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

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

  static constexpr int max_threads = 4096;

  /// `threads` in all, the caller's included; 0 is one for each core. Throws neap::error for a negative number, for more
  /// than max_threads, and where the system does not start so many.
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
    if (threads < 0 || threads > max_threads)
      throw_error(
          at, {"host_backend: ", threads, " threads: a number from 1 to ", max_threads, ", or 0 for one on each core"});
    return threads > 0 ? threads : std::clamp(detail::thread_team::cores(), 1, max_threads);
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

}}  // namespace neap::v0
