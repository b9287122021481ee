// A container with rules of its own.
#pragma once

#include <neap/capture/tracked_sequence.hpp>

#include <cstddef>
#include <deque>
#include <utility>

namespace neap {
/// A container of another kind is tracked by its rules.
struct newest_first {
  std::deque<tensor> all;
};
template <>
struct sequence_rules<newest_first> {
  using value_type = tensor;
  static std::size_t size(newest_first const& c) { return c.all.size(); }
  static tensor const& at(newest_first const& c, std::size_t i) { return c.all[c.all.size() - 1 - i]; }
  static void insert(newest_first& c, std::size_t i, tensor x) {
    c.all.insert(c.all.end() - static_cast<std::ptrdiff_t>(i), std::move(x));
  }
  static void erase(newest_first& c, std::size_t i) { c.all.erase(c.all.end() - 1 - static_cast<std::ptrdiff_t>(i)); }
};
}  // namespace neap
