// The threads of a host backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace neap { inline namespace v0 { namespace detail {

/// A fixed team of workers; the calling thread takes part. A job is a number of pieces, which the members claim one by
/// one, so a member that is late, because it slept or its core is busy elsewhere, delays no other.
///
/// `ticket_` holds the job's number in its high half and the pieces not yet claimed in its low half. A thread that takes a
/// piece by a compare-exchange knows that the job cannot end, hence its description cannot change, before that piece is
/// done.
class thread_team {
 public:
  /// Throws neap::error if the system does not start so many; those that it has started are ended.
  explicit thread_team(int threads);
  thread_team(thread_team const&) = delete;
  thread_team& operator=(thread_team const&) = delete;
  ~thread_team();
  int size() const { return size_; }

  using piece_call = void (*)(void const* context, std::uint32_t piece, int worker);

  /// call(context, piece, worker) for piece in [0, pieces), each once; returns when all are done. From inside a job, or
  /// while another thread runs one, the caller does the work alone.
  void run(std::uint32_t pieces, piece_call call, void const* context);

  /// One for each core of this machine; 0 if that is not known.
  static int cores();

 private:
  struct threads;  // <thread> is read where they are started alone
  static constexpr std::uint64_t one_job = std::uint64_t{1} << 32;
  static constexpr int patience = 2000;  // spins before sleeping: some tens of microseconds

  void end();
  void take_part(int worker);
  void work(int worker);

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
  alignas(64) std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};
  void const* context_ = nullptr;
  piece_call call_ = nullptr;
  int size_ = 1;  // the caller's included
  std::unique_ptr<threads> workers_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/backend/impl/thread_team.ipp>
#endif
