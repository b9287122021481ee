// Graphs of a few ops, and the best that order and recomputation can make of them, found by trying all there is.
#pragma once

#include <neap/simulate/flow_facts.hpp>

#include "random_graph.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::testing {

/// A graph of a few ops that each make one value, all of which may run again; what nobody reads is kept.
inline toy_graph small_graph(std::uint64_t seed) {
  random_stream draw(seed, 12);
  graph_editor e{toy_operators::facets};
  std::vector<value_id> made{e.add_source(role::input, {dtype::f32, {16, 16}})};
  std::vector<bool> read{true};
  auto const pick = [&] {
    auto const n = static_cast<std::uint32_t>(made.size());
    return draw.below(2) ? n - 1 : draw.below(n);
  };
  auto const layout = [&](std::uint32_t k) { return e.layout_of(made[k]); };
  auto const ops = 5 + draw.below(5);
  for (std::uint32_t i = 0; i < ops; ++i) {
    auto const which = static_cast<std::int32_t>(i);
    auto const x = pick(), z = pick();
    read[x] = true;
    value_id y{};
    if (draw.below(3) == 0 && layout(x).type.rank() == 2) y = e.add(toy::column_sum{}, {made[x]})[0];
    else if (z != x && layout(z) == layout(x)) read[z] = true, y = e.add(toy::binary{which}, {made[x], made[z]})[0];
    else y = e.add(toy::unary{which}, {made[x]})[0];
    made.push_back(y), read.push_back(false);
  }
  for (std::size_t k = 0; k < made.size(); ++k)
    if (!read[k]) e.keep(made[k], role::output);
  return toy_graph(std::move(e).finish());
}

/// All sets of results that may be there at once, and how one comes to them (a pebble game): any op may run any number of
/// times. Every op makes one storage, in a graph of small_graph(). No takeovers.
class pebble_game {
 public:
  explicit pebble_game(flow_facts const& facts) : facts_(facts), size_(std::size_t{1} << facts.op_count()) {
    for (std::size_t set = 0; set < size_.size(); ++set) {
      size_[set] = facts.resident_bytes();
      for (auto o : id_range<op_id>(facts.op_count()))
        if (set >> index(o) & 1) size_[set] += facts.bytes(facts.makes(o)[0]);
    }
    for (auto s : facts.kept_storages()) kept_ |= std::size_t{1} << index(facts.maker(s));
  }
  bytes_t least_peak() const {
    return best<bytes_t>(size_[0], [&](bytes_t so_far, std::size_t with, op_id o) {
      return std::max(so_far, size_[with] + facts_.workspace(o));
    });
  }
  /// The least time within a limit; infinite if none is.
  seconds_t least_time(bytes_t limit) const {
    constexpr auto never = std::numeric_limits<seconds_t>::infinity();
    return best<seconds_t>(0, [&](seconds_t so_far, std::size_t with, op_id o) {
      return size_[with] + facts_.workspace(o) > limit ? never : so_far + facts_.seconds(o);
    });
  }

 private:
  template <class T, class F>
  T best(T start, F&& after) const {
    constexpr T never =
        std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    std::vector<T> least(size_.size(), never);
    least[0] = start;
    for (bool changed = true; changed;) {
      changed = false;
      auto const reach = [&](std::size_t set, T what) {
        if (what < least[set]) least[set] = what, changed = true;
      };
      for (std::size_t set = 0; set < least.size(); ++set) {
        if (least[set] == never) continue;
        for (auto o : id_range<op_id>(facts_.op_count())) {
          auto const bit = std::size_t{1} << index(o);
          if (set & bit) {
            reach(set ^ bit, least[set]);
            continue;
          }
          bool ready = true;
          for (auto before : facts_.after(o)) ready = ready && (set >> index(before) & 1);
          if (ready) reach(set | bit, after(least[set], set | bit, o));
        }
      }
    }
    T found = never;
    for (std::size_t set = 0; set < least.size(); ++set)
      if ((set & kept_) == kept_) found = std::min(found, least[set]);
    return found;
  }

  flow_facts const& facts_;
  std::vector<bytes_t> size_;  // of each set
  std::size_t kept_ = 0;
};

}  // namespace neap::testing
