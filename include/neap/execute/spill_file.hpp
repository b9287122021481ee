// The spill file: where the host backend's `store` puts tensors and `load` gets them back, on a thread of its own, so that
// computing goes on meanwhile. Each stored block carries a checksum that a load checks. A full, unwritable or lying disk
// is reported by the next wait() as one line that names the file; nothing is lost silently.
//
// Requests run in the order they were issued; saves, which have time, run when there is no other request, or when they
// are waited for. Nothing is allocated after construction.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/posix.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

namespace neap { inline namespace v0 {

class spill_file {
 public:
  using ticket = std::uint64_t;  // of a request; tickets grow, those of saves by themselves

  /// Creates a file in `folder`, at once unlinked, so that it goes with the process. `slots`: bytes of each block;
  /// `max_in_flight`, `max_saves`: requests, and saves, that may wait at one time. Throws neap::error where the folder
  /// cannot be written.
  spill_file(std::string const& folder, std::vector<bytes_t> const& slots, std::size_t max_in_flight,
             std::size_t max_saves = 0);
  spill_file(spill_file const&) = delete;
  spill_file& operator=(spill_file const&) = delete;
  ~spill_file();

  /// Starts writing a slot from memory, which must stay as it is until the ticket is waited for.
  ticket store(std::size_t slot, void const* from) { return issue(transfers_, {slot, const_cast<void*>(from), true}); }
  /// Starts reading a slot into memory.
  ticket load(std::size_t slot, void* to) { return issue(transfers_, {slot, to, false}); }
  /// Returns when the request is done; throws neap::error if it, or another that was done by then, failed.
  void wait(ticket t) { wait_for(transfers_, t); }
  /// Writes a slot from memory in idle moments; wait_saved() as wait() for the others, and before they go on.
  ticket save(std::size_t slot, void const* from) { return issue(saves_, {slot, const_cast<void*>(from), true}); }
  void wait_saved(ticket t) { wait_for(saves_, t); }
  /// Waits for all requests, forgets a failure: ready for another step.
  void settle();
  bytes_t bytes_written() const { return written_; }
  bytes_t bytes_read() const { return read_; }

 private:
  struct slot_state {
    bytes_t offset, bytes;
    digest sum;
    bool stored;
  };
  struct request {
    std::size_t slot;
    void* memory;
    bool writes;
  };

  struct queue {
    plain_vector<request> ring{};
    ticket issued = 0, finished = 0, awaited = 0;  // the last request of each kind
    bool idle() const { return finished == issued; }
    bool is_awaited() const { return finished < std::min(awaited, issued); }
  };

  ticket issue(queue& q, request r);

  void wait_for(queue& q, ticket t);

  void work();

  static digest checksum(void const* memory, bytes_t bytes);

  /// Why it failed, with errno set or 0; nullptr: it did not.
  char const* write(request const& r);
  char const* read(request const& r);

  std::string path_;
  int file_ = -1;
  plain_vector<slot_state> slots_;
  queue transfers_, saves_;
  bool closing_ = false;
  std::string failure_;
  std::atomic<bytes_t> written_ = 0, read_ = 0;
  struct worker_thread;  // and what it is woken by: <thread> and its relatives are read by the bodies alone
  std::unique_ptr<worker_thread> worker_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/spill_file.ipp>
#endif
