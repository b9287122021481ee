// The block: what a kernel sees of the machine. A kernel is a functor
//
//     template <class Block> NEAP_HD void operator()(Block& b) const;
//
// that does the b.id-th part of the work (a row, a tile). It loops with b.each and b.reduce_each only, so that one source
// serves the host, where a block is one thread with vector lanes, and a GPU, where it is a thread block (or a warp) all of
// whose threads call the functor. Hence:
//   - What is written outside of loops is written in b.once, by one thread.
//   - Index i of every b.each belongs to the same thread, whatever the number of indices. What the functor declares is
//     there once a thread: values of indices are Block::slots, not arrays. Where an iteration touches what
//     another index or b.once wrote, b.sync stands in between; b.reduce_each is such a barrier, too.
//   - b.transform and b.reduce_transform deal indices out otherwise than b.each, for accesses of 16 bytes: where one loop
//     touches what the other wrote, b.sync (or a reduction) stands in between.
//   - Every thread gets to every b.sync and every reduction.
// host_block is
// the host's: inner loops of a constant number of lanes, which compilers vectorise even at -O2, and reductions with one
// partial result a lane, combined in a fixed tree: the same bits in every run, on any number of threads.
//
// Sums of floats are added up in runs of at most `sum_run` terms, these in runs again, and what those give in double: their
// error is that of a few roundings, however many terms there are.
#pragma once

#include <neap/core/config.hpp>

#include <cstdint>
#include <type_traits>

// Before a loop of constant length whose iterations do not depend on one another. In-place kernels read an element
// before they write it at the same index, which this allows too. (clang's own assume_safety warns, in the user's file,
// wherever a loop cannot be vectorised; without it clang checks for overlap at run time.)
#if defined(__clang__)
#define NEAP_LANES _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define NEAP_LANES _Pragma("GCC ivdep")
#else
#define NEAP_LANES
#endif

// Before a template for host and device that may be called with functors of the host only.
#if defined(__CUDACC__)
#define NEAP_HD_CHECK_OFF _Pragma("nv_exec_check_disable")
#else
#define NEAP_HD_CHECK_OFF
#endif

namespace neap { inline namespace v0 {

/// Reduction operators for Block::reduce and Block::reduce_each.
struct sum_op {
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct product_op {
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return a * b;
  }
};
/// The larger; a NaN wins.
struct max_op {
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return ((b > a) | (b != b)) ? b : a;
  }
};
/// The smaller; a NaN wins.
struct min_op {
  template <class T>
  NEAP_HD T operator()(T a, T b) const {
    return ((b < a) | (b != b)) ? b : a;
  }
};

/// What sums of many terms of type T are added up in.
template <class T>
using sum_t = std::conditional_t<std::is_same_v<T, float>, double, T>;
/// So many floats are added one after another.
inline constexpr int sum_run = 16;

namespace detail {
/// Whether a reduction by Op in T is one of many roundings that may add up.
template <class T, class Op>
inline constexpr bool sums_in_runs = std::is_same_v<Op, sum_op> && !std::is_same_v<T, sum_t<T>>;
}  // namespace detail

struct host_block {
  // Partial results of a reduction: several vectors, to hide the latency of an addition. More than 16, because g++ -O3
  // unrolls shorter loops before it can vectorise them.
  static constexpr int lanes = 32;

  std::int64_t id = 0;  // which block: [0, blocks of the launch)
  int worker = 0;       // which thread runs it, [0, threads): an index into scratch; results must not depend on it

  /// A value of type T for each of the indices [0, N) of a block's loops, as place()[i]: an array on the host; on a GPU
  /// the thread that owns the index keeps it, in a register where it owns one.
  template <class T, int N>
  struct slots {
    T at[N];
    NEAP_HD NEAP_INLINE T* place() { return at; }
  };

  /// f(i) for i in [0, n), in any order; calls must not depend on one another.
  NEAP_HD_CHECK_OFF
  template <class F>
  NEAP_HD NEAP_INLINE void each(std::int64_t n, F&& f) const {
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      NEAP_LANES
      for (int j = 0; j < lanes; ++j) f(i + j);
    }
    int const rest = static_cast<int>(n - i);
    for (int j = 0; j < rest; ++j) f(i + j);
  }

  /// f() in one thread of the block.
  NEAP_HD_CHECK_OFF
  template <class F>
  NEAP_HD NEAP_INLINE void once(F&& f) const {
    f();
  }

  /// Combines one value from each thread of the block: on the host there is one.
  template <class T, class Op>
  NEAP_HD T reduce(T value, Op const&) const {
    return value;
  }

  /// op over f(0), ..., f(n - 1) and `init`, which must be neutral for op. The order depends on n alone.
  NEAP_HD_CHECK_OFF
  template <class T, class F, class Op>
  NEAP_HD NEAP_INLINE T reduce_each(std::int64_t n, T init, F&& f, Op const& op) const {
    constexpr bool in_runs = detail::sums_in_runs<T, Op>;
    // A 0 that compilers do not know of: they would clear the lanes in memory, by strings of stores that take long.
    T zero = init;
    if constexpr (in_runs) zero = static_cast<T>(n >> 62);
    T part[lanes], total[in_runs ? lanes : 1];
    [[maybe_unused]] sum_t<T> sum{};
    for (T& p : part) p = zero;
    if (in_runs && n > run_terms)
      for (T& t : total) t = zero;
    std::int64_t i = 0;
    for ([[maybe_unused]] int runs = 0;;) {
      std::int64_t const stop = in_runs && n - i > run_terms ? i + run_terms : n;
      for (; i + lanes <= stop; i += lanes) {
        NEAP_LANES
        for (int j = 0; j < lanes; ++j) part[j] = op(part[j], static_cast<T>(f(i + j)));
      }
      if (stop == n) break;
      if constexpr (in_runs) {
        NEAP_LANES
        for (int j = 0; j < lanes; ++j) total[j] += part[j];
        for (T& p : part) p = zero;
        if (++runs % sum_run == 0) {
          sum += combined<lanes>(total, op);
          for (T& t : total) t = zero;
        }
      }
    }
    int const rest = static_cast<int>(n - i);
    for (int j = 0; j < rest; ++j) part[j] = op(part[j], static_cast<T>(f(i + j)));
    if constexpr (in_runs)
      if (n > run_terms) {
        for (int j = 0; j < lanes; ++j) total[j] += part[j];
        return static_cast<T>(sum + combined<lanes>(total, op));
      }
    return combined<lanes>(part, op);
  }

  /// reduce_each of terms that come piece by piece.
  template <class T, class Op>
  class pieces {
   public:
    NEAP_HD explicit pieces(T init) : init_(init) {
      for (T& p : part_) p = init;
      for (T& t : total_) t = init;
    }
    NEAP_HD NEAP_INLINE void add(T x) {
      if (in_runs && at_ == run_terms) end_run();
      T& p = part_[at_ % lanes];
      p = Op{}(p, x);
      ++at_;
    }
    /// The next n terms. Those before are a multiple of `lanes`.
    NEAP_HD_CHECK_OFF
    template <class F>
    NEAP_HD NEAP_INLINE void add_each(std::int64_t n, F const& f) {
      for (std::int64_t i = 0; i < n;) {
        if (in_runs && at_ == run_terms) end_run();
        std::int64_t const stop = in_runs && n - i > run_terms - at_ ? i + run_terms - at_ : n;
        at_ += stop - i;
        for (; i + lanes <= stop; i += lanes) {
          NEAP_LANES
          for (int j = 0; j < lanes; ++j) part_[j] = Op{}(part_[j], f(i + j));
        }
        for (int j = 0; i < stop; ++i, ++j) part_[j] = Op{}(part_[j], f(i));
      }
    }
    NEAP_HD T result() {
      if constexpr (!in_runs) return combined<lanes>(part_, Op{});
      end_run();
      return static_cast<T>(sum_ + combined<lanes>(total_, Op{}));
    }

   private:
    static constexpr bool in_runs = detail::sums_in_runs<T, Op>;
    NEAP_HD void end_run() {
      if (runs_ == sum_run) {
        sum_ += combined<lanes>(total_, Op{});
        for (T& t : total_) t = init_;
        runs_ = 0;
      }
      for (int j = 0; j < lanes; ++j) total_[j] += part_[j], part_[j] = init_;
      ++runs_;
      at_ = 0;
    }
    T init_, part_[lanes], total_[lanes];
    sum_t<T> sum_ = 0;
    std::int64_t at_ = 0;
    int runs_ = 0;
  };

  /// y[i] = f(x[i]...) for i in [0, n): on a GPU by 16 bytes where all addresses are multiples of them. The elements of y
  /// and x have one size; y may lie exactly on an x.
  NEAP_HD_CHECK_OFF
  template <class T, class F, class... X>
  NEAP_HD NEAP_INLINE void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
    each(n, [=](std::int64_t i) { y[i] = f(x[i]...); });
  }
  /// reduce_each over f(x[i]...), read as transform reads. The order does not depend on addresses.
  NEAP_HD_CHECK_OFF
  template <class T, class F, class Op, class... X>
  NEAP_HD NEAP_INLINE T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, X const*... x) const {
    return reduce_each(
        n, init, [=](std::int64_t i) { return f(x[i]...); }, op);
  }

  /// All threads of the block get here before any goes on.
  NEAP_HD void sync() const {}

 private:
  static constexpr std::int64_t run_terms = lanes * sum_run;

  NEAP_HD_CHECK_OFF
  template <int N, class T, class Op>
  NEAP_HD NEAP_INLINE static T combined(T* part, Op const& op) {
    if constexpr (N == 1) return part[0];
    else {
      for (int j = 0; j < N / 2; ++j) part[j] = op(part[j], part[j + N / 2]);
      return combined<N / 2>(part, op);
    }
  }
};

/// A host_block that takes one element after another, with the same results: for kernels on types that the host stores
/// and converts but does not compute in (bf16 and f16). Lanes would cost their compilation more than that of f32 and f64.
struct host_block_in_order : host_block {
  NEAP_HD_CHECK_OFF
  template <class F>
  NEAP_HD NEAP_INLINE void each(std::int64_t n, F&& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  NEAP_HD_CHECK_OFF
  template <class T, class F, class Op>
  NEAP_HD NEAP_INLINE T reduce_each(std::int64_t n, T init, F&& f, Op const&) const {
    pieces<T, Op> all(init);
    for (std::int64_t i = 0; i < n; ++i) all.add(static_cast<T>(f(i)));
    return all.result();
  }
  NEAP_HD_CHECK_OFF
  template <class T, class F, class... X>
  NEAP_HD NEAP_INLINE void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
    each(n, [=](std::int64_t i) { y[i] = f(x[i]...); });
  }
  NEAP_HD_CHECK_OFF
  template <class T, class F, class Op, class... X>
  NEAP_HD NEAP_INLINE T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, X const*... x) const {
    return reduce_each(
        n, init, [=](std::int64_t i) { return f(x[i]...); }, op);
  }
};

}}  // namespace neap::v0
