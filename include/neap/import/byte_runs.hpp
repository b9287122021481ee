// Which bytes of a buffer tensors cover: sorted runs [begin, end) of bytes that touch no other run.
#pragma once

#include <neap/core/tensor_type.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace io::detail {

class byte_runs {
 public:
  byte_runs() = default;
  /// Those of a layout. O(n log n) for n runs of elements that lie side by side; at most one an element.
  explicit byte_runs(tensor_layout const& l) {
    auto const& dims = l.type.dims;
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent: the smallest stride first
    for (int a = 0; a < dims.rank(); ++a) {
      if (dims[a] == 0) return;
      if (dims[a] > 1 && l.strides[a] != 0) axes.emplace_back(l.strides[a], dims[a]);
    }
    std::int64_t first = l.offset;
    for (auto& [stride, extent] : axes)
      if (stride < 0) first += stride * (extent - 1), stride = -stride;
    std::sort(axes.begin(), axes.end());
    std::int64_t together = 1;
    std::size_t inner = 0;
    for (; inner < axes.size() && axes[inner].first <= together; ++inner)
      together = std::max(together, axes[inner].first * (axes[inner].second - 1) + together);
    auto const bits = bits_of(l.type.element);
    if (bits < 8) {  // elements share bytes: all from the first to the last
      std::int64_t last = first;
      for (auto const& [stride, extent] : axes) last += stride * (extent - 1);
      runs_.emplace_back(first * bits / 8, (last * bits + bits + 7) / 8);
      return;
    }
    auto const size = size_of(l.type.element);
    std::vector<std::int64_t> at(axes.size(), 0);
    for (;;) {
      std::int64_t begin = first;
      for (auto k = inner; k < axes.size(); ++k) begin += at[k] * axes[k].first;
      runs_.emplace_back(begin * size, (begin + together) * size);
      auto k = inner;
      for (; k < axes.size() && ++at[k] == axes[k].second; ++k) at[k] = 0;
      if (k == axes.size()) break;
    }
    join();
  }

  /// The first byte that both cover; -1: none.
  std::int64_t first_shared(byte_runs const& other) const {
    auto a = runs_.begin(), b = other.runs_.begin();
    while (a != runs_.end() && b != other.runs_.end()) {
      if (a->second <= b->first) ++a;
      else if (b->second <= a->first) ++b;
      else return std::max(a->first, b->first);
    }
    return -1;
  }
  bool empty() const { return runs_.empty(); }
  bool covers(byte_runs const& other) const {
    auto a = runs_.begin();
    for (auto const& b : other.runs_) {
      while (a != runs_.end() && a->second < b.second) ++a;
      if (a == runs_.end() || a->first > b.first) return false;
    }
    return true;
  }
  void add(byte_runs const& other) {
    runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
    join();
  }

 private:
  void join() {
    std::sort(runs_.begin(), runs_.end());
    std::size_t n = 0;
    for (auto const& r : runs_)
      if (n > 0 && r.first <= runs_[n - 1].second) runs_[n - 1].second = std::max(runs_[n - 1].second, r.second);
      else runs_[n++] = r;
    runs_.resize(n);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> runs_;
};

}}}  // namespace neap::v0::io::detail
