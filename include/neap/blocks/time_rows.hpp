// The rows of rk-Rotor's table: times of classes of sub-chains by memory, worked out in chunks and kept in slabs.
#pragma once

#include <neap/blocks/row_minima.hpp>
#include <neap/plan/chain_profile.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The times of a class of sub-chains for m in [0, chunks * width_), and 0 from `saturated` on.
struct time_row {
  double* times = nullptr;
  slots_t saturated = 0;
  std::int32_t chunks = 0, room = 0;
  std::int32_t whole = 0;   // chunks that hold all that is not 0
  std::uint32_t guess = 0;  // the j, from a, that was best last
};

/// Memory for rows, up to a limit; and what is read of them. A row may be read from `width` elements before its first on.
class time_rows {
 public:
  struct too_large {};

  explicit time_rows(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// True if so many bytes more are too many.
  bool charge(std::size_t bytes) {
    used_bytes_ += static_cast<std::int64_t>(bytes);
    return used_bytes_ > max_bytes_;
  }
  /// Elements of a chunk, a multiple of row_run; chunks that a row has at most.
  void start(int width, slots_t max_chunks) {
    width_ = width, max_chunks_ = max_chunks;
    zeros_.assign(2 * static_cast<std::size_t>(width_) + row_run, 0.0);
  }
  int width() const { return width_; }

  /// A row in which nothing need be recomputed.
  double const* zeros() const { return zeros_.data() + width_; }
  /// The same for rows without any, which are never written.
  double* no_times() { return zeros_.data() + width_; }

  /// `width` times from m >= 0 on; known ones, all of them. `row_run` more may be read, and mean nothing.
  double const* row(time_row const& c, slots_t m) const {
    return m >= slots_t{c.whole} * width_ ? zeros() : c.times + m;
  }
  /// The time with m, or null where it was never needed.
  double const* known(time_row const& c, slots_t m) const {
    if (m < 0) return &infinite_;
    if (m >= c.saturated) return zeros();
    return m < slots_t{c.chunks} * width_ ? c.times + m : nullptr;
  }

  void make_room(time_row& c, slots_t chunks) {
    if (chunks <= c.room) return;
    slots_t const all = c.whole;
    auto room = std::max<slots_t>(chunks, std::min<slots_t>(c.room + c.room / 2 + 1, max_chunks_));
    if (room >= all) room = all + 1;  // and zeros to read beyond
    double* const times = take(static_cast<std::size_t>(room));
    auto* const rest = std::copy(c.times, c.times + slots_t{c.chunks} * width_, times);
    std::fill(rest, times + room * width_ + row_run, 0.0);  // what lies beyond all that is not 0, too
    if (c.room > 0) free_[static_cast<std::size_t>(c.room)].push_back(c.times);
    c.times = times;
    c.room = static_cast<std::int32_t>(room);
  }
  static bool known_to(time_row const& c, slots_t chunk) { return c.chunks > chunk || c.chunks >= c.whole; }

 private:
  double* take(std::size_t chunks) {
    if (chunks >= INT32_MAX ||
        chunks > static_cast<std::size_t>(max_bytes_) / (static_cast<std::size_t>(width_) * sizeof(double)))
      throw too_large{};
    if (free_.size() <= chunks) free_.resize(chunks + 1);
    if (auto& f = free_[chunks]; !f.empty()) {
      auto* const times = f.back();
      f.pop_back();
      return times;
    }
    auto const width = static_cast<std::size_t>(width_);
    std::size_t const count = chunks * width + row_run;
    if (slab_left_ < count) {
      std::size_t const slab = std::max<std::size_t>(count + width + row_run,
                                                     std::size_t{1} << std::min<std::size_t>(12 + slabs_.size(), 15));
      if (charge(slab * sizeof(double))) throw too_large{};
      slabs_.push_back(std::unique_ptr<double[]>(new double[slab]));
      slab_at_ = slabs_.back().get() + width;  // rows may be pointed to from before their first element
      while (reinterpret_cast<std::uintptr_t>(slab_at_) % (row_run * sizeof(double)) != 0) ++slab_at_;
      slab_left_ = slab - width - row_run;
    }
    auto* const times = slab_at_;
    slab_at_ += count;
    slab_left_ -= count;
    return times;
  }

  std::int64_t max_bytes_, used_bytes_ = 0;
  int width_ = 64;
  slots_t max_chunks_ = 1;
  std::vector<std::unique_ptr<double[]>> slabs_;
  double* slab_at_ = nullptr;
  std::size_t slab_left_ = 0;
  std::vector<std::vector<double*>> free_;  // by chunks
  std::vector<double> zeros_;
  double infinite_ = HUGE_VAL;
};

}}}  // namespace neap::v0::detail
