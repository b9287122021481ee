// The spill file: where the host backend's `store` puts tensors and `load` gets them back, on a thread of its own, so that
// computing goes on meanwhile. Each stored block carries a checksum that a load checks. A full, unwritable or lying disk
// is reported by the next wait() as one line that names the file; nothing is lost silently.
//
// Requests run in the order they were issued; saves, which have time, run when there is no other request, or when they
// are waited for. Nothing is allocated after construction.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/digest.hpp>
#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/posix.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace neap::inline v0 {

class spill_file {
 public:
  using ticket = std::uint64_t;  // of a request; tickets grow, those of saves by themselves

  /// Creates a file in `folder`, at once unlinked, so that it goes with the process. `slots`: bytes of each block;
  /// `most_in_flight`, `most_saves`: requests, and saves, that may wait at one time. Throws neap::error where the folder
  /// cannot be written.
  NEAP_ONCE spill_file(std::string const& folder, std::vector<bytes_t> const& slots, std::size_t most_in_flight,
                       std::size_t most_saves = 0)
      : path_(folder + "/neap-spill-XXXXXX"),
        transfers_{.ring = plain_vector<request>(most_in_flight + 1)},
        saves_{.ring = plain_vector<request>(most_saves + 1)} {
    file_ = ::mkstemp(path_.data());
    if (file_ < 0) throw_error({"spill file ", path_, ": cannot be created: ", std::strerror(errno)});
    ::unlink(path_.c_str());
    bytes_t at = 0;
    for (auto b : slots) {
      slots_.push_back({at, b, {}, false});
      at = checked_add(at, align_up(b, 4096));
    }
    if (int const code = at > 0 ? detail::posix::posix_fallocate(file_, 0, at) : 0;
        code != 0) {  // a full disk is known before a step
      ::close(file_);
      throw_error({"spill file ", path_, ": no room for ", at, " bytes: ", std::strerror(code)});
    }
    worker_ = std::thread([this] { work(); });
  }
  spill_file(spill_file const&) = delete;
  spill_file& operator=(spill_file const&) = delete;
  ~spill_file() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    worker_.join();
    ::close(file_);
  }

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
  NEAP_ONCE void settle() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return transfers_.idle() && saves_.idle(); });
    failure_.clear();
  }
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

  NEAP_ONCE ticket issue(queue& q, request r) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return q.issued - q.finished < q.ring.size(); });
    q.ring[q.issued % q.ring.size()] = r;
    ticket const t = ++q.issued;
    lock.unlock();
    wake_.notify_one();
    return t;
  }

  NEAP_ONCE void wait_for(queue& q, ticket t) {
    std::unique_lock lock(mutex_);
    q.awaited = std::max(q.awaited, t);
    done_.wait(lock, [&] { return q.finished >= t; });
    if (!failure_.empty()) throw_error({failure_});
  }

  NEAP_ONCE void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closing_ || !transfers_.idle() || !saves_.idle(); });
      if (transfers_.idle() && saves_.idle()) return;  // closing
      auto& q = transfers_.idle() || saves_.is_awaited() ? saves_ : transfers_;
      request const r = q.ring[q.finished % q.ring.size()];
      bool const failed_before = !failure_.empty();
      lock.unlock();
      char const* what = failed_before ? nullptr : r.writes ? write(r) : read(r);
      int const code = errno;
      lock.lock();
      if (what)
        failure_ =
            "spill file " + path_ + ": " + what + (code ? std::string(": ") + std::strerror(code) : std::string());
      ++q.finished;
      lock.unlock();
      done_.notify_all();
    }
  }

  NEAP_ONCE static digest checksum(void const* memory, bytes_t bytes) {
    auto const* p = static_cast<unsigned char const*>(memory);
    digest lanes[4] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    bytes_t i = 0;
    for (; i + 32 <= bytes; i += 32)
      for (int k = 0; k < 4; ++k) {
        std::uint64_t x;
        std::memcpy(&x, p + i + 8 * k, 8);
        lanes[k].low = (lanes[k].low ^ x) * 0x9fb21c651e98df25ull;
        lanes[k].high = (lanes[k].high + lanes[k].low) ^ (lanes[k].high >> 29);
      }
    digest d;
    for (auto l : lanes) d = d.mix(l);
    for (; i < bytes; ++i) d = d.mix(p[i]);
    return d;
  }

  /// Why it failed, with errno set or 0; nullptr: it did not.
  char const* write(request const& r) {
    auto& s = slots_[r.slot];
    s.stored = false;
    auto const* p = static_cast<std::byte const*>(r.memory);
    for (bytes_t done = 0; done < s.bytes;) {
      auto const n = ::pwrite(file_, p + done, static_cast<std::size_t>(s.bytes - done), s.offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return "cannot be written";
      done += n;
    }
    s.sum = checksum(r.memory, s.bytes);
    s.stored = true;
    written_ += s.bytes;
    return nullptr;
  }
  char const* read(request const& r) {
    auto& s = slots_[r.slot];
    errno = 0;
    if (!s.stored) return "a block is read that was never written";
    auto* p = static_cast<std::byte*>(r.memory);
    for (bytes_t done = 0; done < s.bytes;) {
      auto const n = ::pread(file_, p + done, static_cast<std::size_t>(s.bytes - done), s.offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return "cannot be read";
      if (n == 0) return "is shorter than what was written";
      done += n;
    }
    errno = 0;
    if (checksum(r.memory, s.bytes) != s.sum) return "came back with other bytes than were written";
    read_ += s.bytes;
    return nullptr;
  }

  std::string path_;
  int file_ = -1;
  plain_vector<slot_state> slots_;
  queue transfers_, saves_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool closing_ = false;
  std::string failure_;
  std::atomic<bytes_t> written_ = 0, read_ = 0;
  std::thread worker_;
};

}  // namespace neap::inline v0
