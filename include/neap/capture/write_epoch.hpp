// Whether any tracked value of the process has been written since a moment: then a compiled function need not look at the
// tracked values that it has compared at that moment. A write costs two loads where another was noted already.
#pragma once

#include <atomic>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Writes are noted in the current generation; a moment begins another one only after a write, so that moments without
/// writes cost nothing. Sound for programs without data races: a write that happens after a moment sees its generation.
class write_epoch {
 public:
  static void mark() {
    auto const g = now_.load(std::memory_order_relaxed);
    auto last = last_.load(std::memory_order_relaxed);
    while (last < g && !last_.compare_exchange_weak(last, g, std::memory_order_relaxed)) {}
  }
  /// A moment: writes from now on are seen by unchanged_since().
  static std::uint64_t moment() {
    auto g = now_.load(std::memory_order_relaxed);
    if (last_.load(std::memory_order_relaxed) < g) return g;
    if (now_.compare_exchange_strong(g, g + 1, std::memory_order_relaxed)) return g + 1;
    return g;
  }
  static bool unchanged_since(std::uint64_t moment) { return last_.load(std::memory_order_relaxed) < moment; }

 private:
  static inline std::atomic<std::uint64_t> now_{1}, last_{0};
};

}}}  // namespace neap::v0::detail
