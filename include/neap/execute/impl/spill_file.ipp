// The bodies of <neap/execute/spill_file.hpp>.
#pragma once

#include <neap/execute/spill_file.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace neap { inline namespace v0 {

struct spill_file::worker_thread {
  std::mutex mutex;
  std::condition_variable wake, done;
  std::thread thread;
};

NEAP_FUNC spill_file::spill_file(std::string const& folder, std::vector<bytes_t> const& slots,
                                 std::size_t max_in_flight, std::size_t max_saves)
    : path_(folder + "/neap-spill-XXXXXX"),
      transfers_{.ring = plain_vector<request>(max_in_flight + 1)},
      saves_{.ring = plain_vector<request>(max_saves + 1)},
      worker_(std::make_unique<worker_thread>()) {
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
  worker_->thread = std::thread([this] { work(); });
}

NEAP_FUNC void spill_file::settle() {
  std::unique_lock lock(worker_->mutex);
  worker_->done.wait(lock, [&] { return transfers_.idle() && saves_.idle(); });
  failure_.clear();
}

NEAP_FUNC spill_file::ticket spill_file::issue(queue& q, request r) {
  std::unique_lock lock(worker_->mutex);
  worker_->done.wait(lock, [&] { return q.issued - q.finished < q.ring.size(); });
  q.ring[q.issued % q.ring.size()] = r;
  ticket const t = ++q.issued;
  lock.unlock();
  worker_->wake.notify_one();
  return t;
}

NEAP_FUNC void spill_file::wait_for(queue& q, ticket t) {
  std::unique_lock lock(worker_->mutex);
  q.awaited = std::max(q.awaited, t);
  worker_->done.wait(lock, [&] { return q.finished >= t; });
  if (!failure_.empty()) throw_error({failure_});
}

NEAP_FUNC void spill_file::work() {
  for (;;) {
    std::unique_lock lock(worker_->mutex);
    worker_->wake.wait(lock, [&] { return closing_ || !transfers_.idle() || !saves_.idle(); });
    if (transfers_.idle() && saves_.idle()) return;  // closing
    auto& q = transfers_.idle() || saves_.is_awaited() ? saves_ : transfers_;
    request const r = q.ring[q.finished % q.ring.size()];
    bool const failed_before = !failure_.empty();
    lock.unlock();
    char const* what = failed_before ? nullptr : r.writes ? write(r) : read(r);
    int const code = errno;
    lock.lock();
    if (what)
      failure_ = "spill file " + path_ + ": " + what + (code ? std::string(": ") + std::strerror(code) : std::string());
    ++q.finished;
    lock.unlock();
    worker_->done.notify_all();
  }
}

NEAP_FUNC digest spill_file::checksum(void const* memory, bytes_t bytes) {
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

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC spill_file::~spill_file() {
  {
    std::lock_guard lock(worker_->mutex);
    closing_ = true;
  }
  worker_->wake.notify_all();
  worker_->thread.join();
  ::close(file_);
}

NEAP_FUNC char const* spill_file::write(request const& r) {
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

NEAP_FUNC char const* spill_file::read(request const& r) {
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

}}  // namespace neap::v0
