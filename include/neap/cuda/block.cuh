// The block of backend/block.hpp on a GPU: a thread block, a warp, or one of several thread blocks that share the indices
// of a row. All threads call the functor. Sums are added in a fixed order: thread t of T adds indices t, t + T, ... one
// after another (of reduce_transform: 16 bytes of elements each, then what is left; floats in runs of sum_run, and the runs
// in double), lanes of a warp are added as a binary tree of neighbours, and the warps in order (cub::BlockReduce).
#pragma once

#include <neap/backend/block.hpp>
#include <neap/cuda/grid.hpp>

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {
/// The values of indices [0, N) that loops of Threads threads deal out (host_block::slots).
template <class T, int N, int Threads>
struct cuda_slots {
  static constexpr int own = (N + Threads - 1) / Threads;
  struct owned {
    T* at;
    NEAP_HD NEAP_INLINE T& operator[](std::int64_t i) const { return at[own == 1 ? 0 : i / Threads]; }
  };
  T at[own];
  NEAP_HD NEAP_INLINE owned place() { return {at}; }
};

/// An operator that is a sum or another one, as is known when it runs.
template <class Op>
concept may_be_sum = std::is_same_v<Op, sum_op> || requires { typename Op::may_be_sum; };

/// What a thread combines: floats in runs, and these in double.
template <class T, class Op>
struct thread_terms {
  static constexpr bool in_runs = may_be_sum<Op> && !std::is_same_v<T, sum_t<T>>;
  Op const& op;
  T init, part;
  sum_t<T> total;
  int count = 0;
  NEAP_HD NEAP_INLINE thread_terms(T start, Op const& combine) : op(combine), init(start), part(start), total(start) {}
  NEAP_HD NEAP_INLINE void add(T x) { part = op(part, x); }
  /// After n terms more, a divisor of sum_run.
  NEAP_HD NEAP_INLINE void after(int n) {
    if constexpr (in_runs) {
      count += n;
      if (count < sum_run) return;
      total = op(total, static_cast<sum_t<T>>(part));
      part = init, count = 0;
    }
  }
  /// `ended`: whether there may have been as many as sum_run; for all threads of a warp alike.
  NEAP_HD NEAP_INLINE T result(bool ended) const {
    if constexpr (in_runs)
      if (ended) return static_cast<T>(op(total, static_cast<sum_t<T>>(part)));
    return part;
  }
};

/// 16 bytes of elements, moved at once.
template <class T>
struct alignas(16) cuda_pack {
  static constexpr int length = 16 / int{sizeof(T)};
  T at[length];
};

/// Whether all are multiples of 16 bytes.
template <class... P>
__device__ bool aligned_to_packs(P const*... p) {
  return ((reinterpret_cast<std::uintptr_t>(p) | ...) % 16) == 0;
}

/// The k-th pack. By a type of CUDA's: the compiler would take a struct of ours apart.
template <class T>
__device__ cuda_pack<T> load_pack(T const* from, std::int64_t k) {
  return __builtin_bit_cast(cuda_pack<T>, reinterpret_cast<uint4 const*>(from)[k]);
}

/// Calls f(pack of x...) for the packs that are this thread's; read element by element where addresses demand it.
template <int Threads, class F, class... X>
__device__ void each_pack(int thread, std::int64_t packs, bool aligned, F const& f, X const*... x) {
  if (aligned) {
#pragma unroll 2
    for (std::int64_t k = thread; k < packs; k += Threads) f(k, load_pack(x, k)...);
    return;
  }
  auto const gathered = [](auto const* p, std::int64_t k) {
    cuda_pack<std::remove_cvref_t<decltype(*p)>> pack;
#pragma unroll
    for (int j = 0; j < pack.length; ++j) pack.at[j] = p[k * pack.length + j];
    return pack;
  };
#pragma unroll 1
  for (std::int64_t k = thread; k < packs; k += Threads) f(k, gathered(x, k)...);
}

template <int Threads, class T, class F, class... X>
__device__ void transform_by_packs(int thread, std::int64_t n, T* y, F const& f, X const*... x) {
  static_assert(((sizeof(X) == sizeof(T)) && ...), "transform: elements of one size");
  using pack = cuda_pack<T>;
  std::int64_t const packs = n / pack::length;
  bool const aligned = aligned_to_packs(y, x...);
  each_pack<Threads>(
      thread, packs, aligned,
      [=](std::int64_t k, cuda_pack<X> const&... in) {
        pack out;
#pragma unroll
        for (int j = 0; j < pack::length; ++j) out.at[j] = f(in.at[j]...);
        if (aligned) {
          reinterpret_cast<uint4*>(y)[k] = __builtin_bit_cast(uint4, out);
          return;
        }
#pragma unroll
        for (int j = 0; j < pack::length; ++j) y[k * pack::length + j] = out.at[j];
      },
      x...);
  for (std::int64_t i = packs * pack::length + thread; i < n; i += Threads) y[i] = f(x[i]...);
}

template <int Threads, class T, class F, class Op, class First, class... X>
__device__ T reduce_by_packs(int thread, std::int64_t n, T init, F const& f, Op const& op, First const* first,
                             X const*... x) {
  static_assert(((sizeof(X) == sizeof(First)) && ...), "reduce_transform: elements of one size");
  constexpr int length = cuda_pack<First>::length;
  std::int64_t const packs = n / length;
  thread_terms<T, Op> terms(init, op);
  auto* const all = &terms;
  each_pack<Threads>(
      thread, packs, aligned_to_packs(first, x...),
      [=](std::int64_t, cuda_pack<First> const& a, cuda_pack<X> const&... in) {
#pragma unroll
        for (int j = 0; j < length; ++j) all->add(static_cast<T>(f(a.at[j], in.at[j]...)));
        all->after(length);
      },
      first, x...);
  for (std::int64_t i = packs * length + thread; i < n; i += Threads) terms.add(static_cast<T>(f(first[i], x[i]...)));
  return terms.result(n >= std::int64_t{Threads} * (sum_run - length - 1));
}
}  // namespace detail

/// A thread block of Threads threads.
template <int Threads>
class cuda_block {
 public:
  static constexpr int threads = Threads;
  static constexpr int shared_bytes = 512;
  template <class T, int N>
  using slots = detail::cuda_slots<T, N, Threads>;

  std::int64_t id = 0;  // which row
  int worker = 0;

  /// `room`: shared_bytes of shared memory, aligned to 16.
  __device__ explicit cuda_block(void* room) : room_(static_cast<char*>(room)) {}

  template <class F>
  NEAP_HD void each(std::int64_t n, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = threadIdx.x; i < n; i += Threads) f(i);
#endif
  }
  template <class F>
  NEAP_HD void once(F&& f) const {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x == 0) f();
#endif
  }
  NEAP_HD void sync() const {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }

  /// op over the values of all threads, in a fixed order; all threads get it. A barrier.
  template <class T, class Op>
  NEAP_HD T reduce(T value, Op const& op) const {
#if defined(__CUDA_ARCH__)
    using reduction = cub::BlockReduce<T, Threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    constexpr int result_bytes = 16;
    static_assert(sizeof(T) <= result_bytes && sizeof(typename reduction::TempStorage) + result_bytes <= shared_bytes);
    T* const result = reinterpret_cast<T*>(room_);
    T const total =
        reduction(*reinterpret_cast<typename reduction::TempStorage*>(room_ + result_bytes)).Reduce(value, op);
    if (threadIdx.x == 0) *result = total;
    __syncthreads();
    // The next reduction has a barrier between its first write to the room and the one to the result: none is needed here.
    return *result;
#else
    return value;
#endif
  }

  /// The sum of the values of this thread and those before it, in a fixed order. A barrier.
  template <class T>
  NEAP_HD T inclusive_sum(T value) const {
#if defined(__CUDA_ARCH__)
    using scan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_WARP_SCANS>;
    static_assert(sizeof(typename scan::TempStorage) <= shared_bytes);
    T sum;
    __syncthreads();
    scan(*reinterpret_cast<typename scan::TempStorage*>(room_)).InclusiveSum(value, sum);
    __syncthreads();
    return sum;
#else
    return value;
#endif
  }

  template <class T, class F, class Op>
  NEAP_HD T reduce_each(std::int64_t n, T init, F&& f, Op const& op) const {
#if defined(__CUDA_ARCH__)
    detail::thread_terms<T, Op> terms(init, op);
    for (std::int64_t i = threadIdx.x; i < n; i += Threads) terms.add(static_cast<T>(f(i))), terms.after(1);
    return reduce(terms.result(n >= std::int64_t{Threads} * (sum_run - 1)), op);
#else
    return init;
#endif
  }

  template <class T, class F, class... X>
  NEAP_HD void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
#if defined(__CUDA_ARCH__)
    detail::transform_by_packs<threads>(static_cast<int>(threadIdx.x), n, y, f, x...);
#endif
  }
  template <class T, class F, class Op, class... X>
  NEAP_HD T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, X const*... x) const {
#if defined(__CUDA_ARCH__)
    return reduce(detail::reduce_by_packs<threads>(static_cast<int>(threadIdx.x), n, init, f, op, x...), op);
#else
    return init;
#endif
  }

 private:
  char* room_;
};

/// A warp of a thread block.
class cuda_warp {
 public:
  static constexpr int threads = cuda_warp_threads;
  template <class T, int N>
  using slots = detail::cuda_slots<T, N, threads>;

  std::int64_t id = 0;
  int worker = 0;

  template <class F>
  NEAP_HD void each(std::int64_t n, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = lane(); i < n; i += threads) f(i);
#endif
  }
  template <class F>
  NEAP_HD void once(F&& f) const {
#if defined(__CUDA_ARCH__)
    if (lane() == 0) f();
#endif
  }
  NEAP_HD void sync() const {
#if defined(__CUDA_ARCH__)
    __syncwarp();
#endif
  }
  template <class T, class Op>
  NEAP_HD T reduce(T value, Op const& op) const {
#if defined(__CUDA_ARCH__)
    using reduction = cub::WarpReduce<T>;
    typename reduction::TempStorage none;  // shuffles need no memory
    T const total = reduction(none).Reduce(value, op);
    __syncwarp();
    return cub::ShuffleIndex<threads>(total, 0, 0xffffffffu);
#else
    return value;
#endif
  }
  template <class T>
  NEAP_HD T inclusive_sum(T value) const {
#if defined(__CUDA_ARCH__)
    using scan = cub::WarpScan<T>;
    typename scan::TempStorage none;  // shuffles need no memory
    T sum;
    scan(none).InclusiveSum(value, sum);
    return sum;
#else
    return value;
#endif
  }
  template <class T, class F, class Op>
  NEAP_HD T reduce_each(std::int64_t n, T init, F&& f, Op const& op) const {
#if defined(__CUDA_ARCH__)
    detail::thread_terms<T, Op> terms(init, op);
    for (std::int64_t i = lane(); i < n; i += threads) terms.add(static_cast<T>(f(i))), terms.after(1);
    return reduce(terms.result(n >= std::int64_t{threads} * (sum_run - 1)), op);
#else
    return init;
#endif
  }

  template <class T, class F, class... X>
  NEAP_HD void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
#if defined(__CUDA_ARCH__)
    detail::transform_by_packs<threads>(lane(), n, y, f, x...);
#endif
  }
  template <class T, class F, class Op, class... X>
  NEAP_HD T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, X const*... x) const {
#if defined(__CUDA_ARCH__)
    return reduce(detail::reduce_by_packs<threads>(lane(), n, init, f, op, x...), op);
#else
    return init;
#endif
  }

 private:
#if defined(__CUDA_ARCH__)
  __device__ static int lane() { return static_cast<int>(threadIdx.x % threads); }
#endif
};

/// One of `parts` thread blocks that share the indices of a row. There is no barrier between them: for kernels that loop
/// with each alone.
class cuda_block_part {
 public:
  static constexpr int threads = cuda_block_threads;

  std::int64_t id = 0;
  int worker = 0;

  __device__ cuda_block_part(std::int64_t part, std::int64_t parts)
      : first_(part * threads),
        stride_(parts * threads) {}

  template <class F>
  NEAP_HD void each(std::int64_t n, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = first_ + threadIdx.x; i < n; i += stride_) f(i);
#endif
  }

 private:
  std::int64_t first_, stride_;
};

}}  // namespace neap::v0
