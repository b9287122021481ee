// Which operations have touched which bytes, and which of them nothing orders. Operations are points on chains (a stream,
// the host, a branch of a graph); the clock of an operation has, for each chain, the last point that happens before it.
#pragma once

#include "../ptx/device.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace neap::testing {

using ptx::access_range;

struct point {
  std::uint32_t chain = 0, at = 0;  // 0: no operation
  std::uint32_t operation = 0;
};

class vector_clock {
 public:
  void join(vector_clock const& o) {
    if (at_.size() < o.at_.size()) at_.resize(o.at_.size(), 0);
    for (std::size_t k = 0; k < o.at_.size(); ++k) at_[k] = std::max(at_[k], o.at_[k]);
  }
  void join(point const& p) {
    if (at_.size() <= p.chain) at_.resize(p.chain + 1, 0);
    at_[p.chain] = std::max(at_[p.chain], p.at);
  }
  bool covers(point const& p) const { return p.at == 0 || (p.chain < at_.size() && p.at <= at_[p.chain]); }

 private:
  std::vector<std::uint32_t> at_;  // by chain
};

class access_history {
 public:
  /// Calls found(earlier point, whether it writes, bytes) for the accesses of other operations that are not ordered
  /// before the one at `p`, whose clock is `known`, and records it.
  template <class F>
  void read(access_range bytes, point p, vector_clock const& known, F&& found) {
    over(bytes, [&](std::uint64_t begin, segment& s) {
      if (!known.covers(s.write)) found(s.write, true, access_range{begin, s.end});
      for (point& r : s.reads)
        if (r.chain == p.chain) {
          r = p;
          return;
        }
      s.reads.push_back(p);
    });
  }
  template <class F>
  void write(access_range bytes, point p, vector_clock const& known, F&& found) {
    if (bytes.begin == bytes.end) return;
    over(bytes, [&](std::uint64_t begin, segment& s) {
      if (!known.covers(s.write)) found(s.write, true, access_range{begin, s.end});
      for (point const& r : s.reads)
        if (!known.covers(r)) found(r, false, access_range{begin, s.end});
    });
    segments_.erase(segments_.find(bytes.begin), segments_.lower_bound(bytes.end));
    segments_[bytes.begin] = {bytes.end, p, {}};
  }
  /// The bytes are new ones: memory that was allocated or freed.
  void forget(access_range bytes) {
    split(bytes.begin);
    split(bytes.end);
    segments_.erase(segments_.lower_bound(bytes.begin), segments_.lower_bound(bytes.end));
  }

 private:
  struct segment {
    std::uint64_t end = 0;
    point write;
    std::vector<point> reads;  // the last one of each chain since the write
  };
  std::map<std::uint64_t, segment> segments_;  // by the first byte; they do not overlap

  void split(std::uint64_t at) {
    auto it = segments_.lower_bound(at);
    if (it == segments_.begin()) return;
    segment& before = std::prev(it)->second;
    if (before.end <= at) return;
    segment rest = before;
    before.end = at;
    segments_.emplace_hint(it, at, std::move(rest));
  }
  /// Calls f(first byte, segment) for segments that together are exactly these bytes.
  template <class F>
  void over(access_range bytes, F&& f) {
    if (bytes.begin >= bytes.end) return;
    split(bytes.begin);
    split(bytes.end);
    for (std::uint64_t at = bytes.begin; at < bytes.end;) {
      auto it = segments_.lower_bound(at);
      if (it == segments_.end() || it->first != at) {
        std::uint64_t const end = it == segments_.end() ? bytes.end : std::min(bytes.end, it->first);
        it = segments_.emplace_hint(it, at, segment{end, {}, {}});
      }
      f(at, it->second);
      at = it->second.end;
    }
  }
};

}  // namespace neap::testing
