// The bodies of <neap/backend/thread_team.hpp>.
#pragma once

#include <neap/backend/thread_team.hpp>

#include <neap/core/error.hpp>
#include <neap/core/separate_compilation.hpp>

#include <system_error>
#include <thread>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct thread_team::threads {
  std::vector<std::thread> all;
};

NEAP_FUNC thread_team::thread_team(int n) : size_(n), workers_(std::make_unique<threads>()) {
  workers_->all.reserve(static_cast<std::size_t>(n - 1));
  try {
    for (int i = 1; i < n; ++i) workers_->all.emplace_back([this, i] { work(i); });
  } catch (std::system_error const& e) {
    end();
    throw_error({"host_backend: the system started ", workers_->all.size() + 1, " of ", n, " threads: ", e.what()});
  }
}

NEAP_FUNC thread_team::~thread_team() { end(); }

NEAP_FUNC int thread_team::cores() { return static_cast<int>(std::thread::hardware_concurrency()); }

NEAP_FUNC void thread_team::end() {
  stop_.store(true, std::memory_order_relaxed);
  ticket_.fetch_add(one_job, std::memory_order_release);
  ticket_.notify_all();
  for (auto& w : workers_->all) w.join();
}

NEAP_FUNC void thread_team::run(std::uint32_t pieces, piece_call call, void const* context) {
  if (size_ == 1 || pieces <= 1 || busy_.exchange(true, std::memory_order_acquire)) {
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

NEAP_FUNC void thread_team::take_part(int worker) {
  auto ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(ticket) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    call_(context_, static_cast<std::uint32_t>(ticket) - 1, worker);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

NEAP_FUNC void thread_team::work(int worker) {
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

}}}  // namespace neap::v0::detail
