// A GPU's block on the host, in an order that is as bad as it may be: all threads of the block run the functor, each on a
// stack of its own, and take turns at random between iterations and at barriers. Sums are added in the device's order
// (cuda/block.cuh). A kernel that forgets a barrier, lets two threads write one place, or keeps in one thread what another
// needs, gives other bits from seed to seed, or others than the host.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/standard.cuh>

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::testing {

// Where _FORTIFY_SOURCE is defined, the declared _longjmp ends the program when the stack changes.
extern "C" [[noreturn]] void change_stack(jmp_buf, int) noexcept __asm__("_longjmp");

/// Threads that take turns in random order. `run` throws std::logic_error if some end while others wait at a barrier.
class taking_turns {
 public:
  explicit taking_turns(std::uint64_t seed) : random_(seed) {}

  void run(int threads, std::function<void(int)> const& body) {
    body_ = &body;
    while (static_cast<int>(threads_.size()) < threads) threads_.push_back(std::make_unique_for_overwrite<thread>());
    std::vector<int> ready, waiting;
    int ended = 0;
    for (int t = 0; t < threads; ++t) ready.push_back(t);
    while (!ready.empty()) {
      std::size_t const k = random_.below(static_cast<std::uint32_t>(ready.size()));
      now_ = ready[k];
      state_ = state::ended;
      resume(now_);
      if (state_ != state::paused) {
        (state_ == state::waits ? waiting.push_back(now_) : void(++ended));
        ready[k] = ready.back();
        ready.pop_back();
      }
      if (!ready.empty() || waiting.empty()) continue;
      if (ended > 0) {
        threads_.clear();  // some are in the middle of this body
        throw std::logic_error("a barrier that not all threads reach");
      }
      ready.swap(waiting);
    }
  }

  // For the running thread.
  void pause() { leave(state::paused); }
  void barrier() { leave(state::waits); }
  bool one_in(std::uint32_t n) { return random_.below(n) == 0; }
  std::uint32_t below(std::uint32_t n) { return random_.below(n); }

 private:
  enum class state { ended, paused, waits };
  struct thread {
    jmp_buf at;  // where it goes on
    bool begun = false;
    alignas(16) char stack[64 * 1024];
  };

  // A thread begins by setcontext, and runs one body after the other. Turns are taken by _longjmp: swapcontext calls the
  // system each time.
  void resume(int t) {
    thread& x = *threads_[static_cast<std::size_t>(t)];
    if (_setjmp(scheduler_)) return;
    if (x.begun) change_stack(x.at, 1);
    x.begun = true;
    begin(x);
  }
  void begin(thread& x) {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = x.stack;
    context.uc_stack.ss_size = sizeof x.stack;
    context.uc_link = nullptr;
    auto const self = reinterpret_cast<std::uintptr_t>(this);  // makecontext passes ints
    makecontext(&context, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
    setcontext(&context);
  }
  static void enter(unsigned high, unsigned low) {
    auto* const self = reinterpret_cast<taking_turns*>(std::uintptr_t{high} << 32 | low);
    for (int const t = self->now_;;) {
      (*self->body_)(t);
      self->leave(state::ended);
    }
  }
  void leave(state s) {
    state_ = s;
    if (!_setjmp(threads_[static_cast<std::size_t>(now_)]->at)) change_stack(scheduler_, 1);
  }

  random_stream random_;
  std::vector<std::unique_ptr<thread>> threads_;
  jmp_buf scheduler_;
  std::function<void(int)> const* body_ = nullptr;
  int now_ = 0;
  state state_ = state::ended;
};

/// What the threads of a block share: the values of a reduction, those of two by turns, as a thread may be one ahead.
template <int Threads>
struct shuffled_room {
  taking_turns& turns;
  alignas(16) std::byte values[2][Threads][16]{};
  bool added[2]{};
};

/// One thread's view of a block of Threads threads.
template <int Threads>
class shuffled_block {
 public:
  static constexpr int threads = Threads;
  template <class T, int N>
  struct slots {
    T at[(N + Threads - 1) / Threads];
    struct owned {
      T* at;
      T& operator[](std::int64_t i) const { return at[i / Threads]; }
    };
    owned place() { return {at}; }
  };

  std::int64_t id = 0;
  int worker = 0;

  shuffled_block(shuffled_room<Threads>& room, int thread) : room_(&room), thread_(thread) {}

  template <class F>
  void each(std::int64_t n, F&& f) const {
    for (std::int64_t i = thread_; i < n; i += Threads) {
      f(i);
      if (room_->turns.one_in(8)) room_->turns.pause();
    }
  }
  template <class F>
  void once(F&& f) const {
    if (room_->turns.one_in(2)) room_->turns.pause();
    if (thread_ == 0) f();
  }
  void sync() const { room_->turns.barrier(); }

  template <class T, class Op>
  T reduce(T value, Op const& op) {
    static_assert(sizeof(T) <= 16);
    int const turn = reductions_++ % 2;
    auto& all = room_->values[turn];
    room_->added[turn] = false;
    std::memcpy(all[thread_], &value, sizeof value);
    sync();
    if (!room_->added[turn]) {
      T sum = of_warp<T>(turn, 0, op);
      for (int warp = 1; warp < Threads / 32; ++warp) sum = op(sum, of_warp<T>(turn, 32 * warp, op));
      std::memcpy(all[0], &sum, sizeof sum);
      room_->added[turn] = true;
    }
    T result;
    std::memcpy(&result, all[0], sizeof result);
    return result;
  }
  template <class T>
  T inclusive_sum(T value) {
    auto& all = room_->values[reductions_++ % 2];
    std::memcpy(all[thread_], &value, sizeof value);
    sync();
    T sum{};
    for (int t = 0; t <= thread_; ++t) {
      T x;
      std::memcpy(&x, all[t], sizeof x);
      sum += x;
    }
    return sum;
  }
  template <class T, class F, class Op>
  T reduce_each(std::int64_t n, T init, F&& f, Op const& op) {
    T part = init;
    for (std::int64_t i = thread_; i < n; i += Threads) {
      part = op(part, static_cast<T>(f(i)));
      if (room_->turns.one_in(8)) room_->turns.pause();
    }
    return reduce(part, op);
  }
  template <class T, class F, class... X>
  void transform(std::int64_t n, T* y, F const& f, X const*... x) const {
    dealt<sizeof(T)>(n, [&](std::int64_t i) { y[i] = f(x[i]...); });
  }
  template <class T, class F, class Op, class First, class... X>
  T reduce_transform(std::int64_t n, T init, F const& f, Op const& op, First const* first, X const*... x) {
    T part = init;
    dealt<sizeof(First)>(n, [&](std::int64_t i) { part = op(part, static_cast<T>(f(first[i], x[i]...))); });
    return reduce(part, op);
  }

 private:
  // This thread's indices where elements of so many bytes are dealt out by 16 bytes.
  template <std::size_t Bytes, class F>
  void dealt(std::int64_t n, F const& f) const {
    constexpr std::int64_t length = 16 / Bytes;
    std::int64_t const packs = n / length;
    for (std::int64_t k = thread_; k < packs; k += Threads) {
      for (std::int64_t j = 0; j < length; ++j) f(k * length + j);
      if (room_->turns.one_in(4)) room_->turns.pause();
    }
    for (std::int64_t i = packs * length + thread_; i < n; i += Threads) f(i);
  }

  template <class T, class Op>
  T of_warp(int turn, int first, Op const& op) const {
    T lane[32];
    for (int i = 0; i < 32; ++i) std::memcpy(&lane[i], room_->values[turn][first + i], sizeof(T));
    for (int step = 1; step < 32; step *= 2)
      for (int i = 0; i + step < 32; i += 2 * step) lane[i] = op(lane[i], lane[i + step]);
    return lane[0];
  }

  shuffled_room<Threads>* room_;
  int thread_;
  int reductions_ = 0;
};

/// A backend that runs kernels on shuffled blocks, in random order, of as many threads as the device takes for such rows,
/// or as `threads` says (32 or 256).
class shuffled_backend {
 public:
  static constexpr std::string_view name = "shuffled";
  static constexpr bool addresses_host_memory = false, runs_on_device = true;
  using block = shuffled_block<32>;

  explicit shuffled_backend(std::uint64_t seed, int threads = 0) : turns_(seed), fixed_threads_(threads) {}

  int launches = 0;

  /// As cuda_backend::scratch.
  void* scratch(std::int64_t bytes) {
    scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(bytes) / 16 + 1));
    return scratch_.data();
  }

  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t block_work = 0) {
    ++launches;
    bool const warps = fixed_threads_
                           ? fixed_threads_ == 32
                           : cuda_grid_of(blocks, neap::detail::rows_fill_blocks<K> ? 0 : block_work).warp_rows;
    for (std::int64_t id : shuffled(blocks)) {
      if (warps) run<32>(id, kernel);
      else run<256>(id, kernel);
    }
  }
  /// Ranges in random order.
  template <class F>
  void parallel_for(std::int64_t n, std::int64_t grain, F const& f) {
    for (std::int64_t r : shuffled((n + grain - 1) / grain)) {
      std::int64_t const begin = r * grain, end = std::min(n, begin + grain);
      if constexpr (requires { f(begin, end, 0); }) f(begin, end, 0);
      else f(begin, end);
    }
  }
  int threads() const { return 1; }

 private:
  template <int Threads, class K>
  void run(std::int64_t id, K const& kernel) {
    shuffled_room<Threads> room{turns_};
    turns_.run(Threads, [&](int thread) {
      shuffled_block<Threads> b(room, thread);
      b.id = id;
      kernel(b);
    });
  }
  std::vector<std::int64_t> shuffled(std::int64_t n) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < n; ++i) order.push_back(i);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[turns_.below(static_cast<std::uint32_t>(i))]);
    return order;
  }

  struct alignas(16) line {
    std::byte bytes[16];
  };
  taking_turns turns_;
  int fixed_threads_;
  std::vector<line> scratch_;
};

}  // namespace neap::testing
