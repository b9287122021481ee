// Dynamic sizes: one layout for a whole range of a symbol, such as the batch size.
//
// Sizes are affine in the symbol, and so is every offset, kept as its values at both ends of the range. If one record
// lies on another, its offset is at least the other's end at both ends, hence everywhere between: a comparison of two
// affine functions is decided at the ends. Which record lies on which is taken from a plan at one symbol; the layouts
// from the plans at the ends and the middle are compared by how far they are above their bounds.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

/// bytes(symbol) = base + slope * symbol
struct affine_size {
  std::int64_t base = 0, slope = 0;
  constexpr std::int64_t operator()(std::int64_t symbol) const { return base + slope * symbol; }
  friend constexpr bool operator==(affine_size, affine_size) = default;
};

struct dynamic_record {
  std::int64_t lower = 0, upper = 0;  ///< half-open life, the same for every symbol
  affine_size size{};
};

struct dynamic_plan {
  std::int64_t first_symbol = 0, last_symbol = 0;  ///< the range, both included
  std::int64_t alignment = 1;
  std::vector<std::int64_t> at_first, at_last;  ///< offsets at the ends of the range
  std::int64_t arena_at_first = 0, arena_at_last = 0;
  std::int64_t bound_at_first = 0, bound_at_last = 0;
  plan_fault why{};  ///< empty, or why there is no plan

  /// The offset of record i at a symbol of the range: the line between the ends, rounded up to the alignment. (Rounding
  /// up keeps order: sizes are multiples of the alignment, so ends move by what beginnings do.)
  constexpr std::int64_t offset(std::size_t i, std::int64_t symbol) const {
    return between(at_first[i], at_last[i], symbol);
  }
  /// An arena that holds the plan at a symbol.
  constexpr std::int64_t arena_bytes(std::int64_t symbol) const {
    return between(arena_at_first, arena_at_last, symbol);
  }

 private:
  constexpr std::int64_t between(std::int64_t a, std::int64_t b, std::int64_t symbol) const {
    if (symbol == first_symbol || first_symbol == last_symbol) return a;
    __extension__ typedef __int128 wide;
    wide const run = last_symbol - first_symbol, rise = static_cast<wide>(b - a) * (symbol - first_symbol);
    wide const step = run * alignment, exact = static_cast<wide>(a) * run + rise;
    return static_cast<std::int64_t>((exact + step - 1) / step * alignment);
  }
};

namespace detail {

/// Puts records down in the order of `base` offsets, each on the highest of those below it, at both ends at once.
constexpr void settle(std::span<dynamic_record const> records, std::vector<std::int64_t> const& base,
                      dynamic_plan& plan) {
  auto const n = records.size();
  std::vector<std::uint32_t> order(n, 0);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return base[a] != base[b] ? base[a] < base[b] : a < b; });
  plan.at_first.assign(n, 0), plan.at_last.assign(n, 0);
  plan.arena_at_first = plan.arena_at_last = 0;
  for (std::size_t k = 0; k < n; ++k) {
    auto const i = order[k];
    for (std::size_t j = 0; j < k; ++j) {
      auto const q = order[j];
      if (records[q].upper <= records[i].lower || records[i].upper <= records[q].lower) continue;
      plan.at_first[i] = std::max(plan.at_first[i], plan.at_first[q] + records[q].size(plan.first_symbol));
      plan.at_last[i] = std::max(plan.at_last[i], plan.at_last[q] + records[q].size(plan.last_symbol));
    }
    plan.arena_at_first = std::max(plan.arena_at_first, plan.at_first[i] + records[i].size(plan.first_symbol));
    plan.arena_at_last = std::max(plan.arena_at_last, plan.at_last[i] + records[i].size(plan.last_symbol));
  }
}

}  // namespace detail

/// One layout valid for every symbol from first to last. Base and slope of each size are rounded up to the alignment.
/// O(n^2) besides three runs of the planner. Fails (see `why`) on faulty lives, sizes negative within the range, bytes
/// beyond 2^56.
template <class Planner = default_planner>
constexpr dynamic_plan plan_dynamic(std::span<dynamic_record const> given, std::int64_t first, std::int64_t last,
                                    std::int64_t alignment = 1, Planner const& planner = {}) {
  static_assert(detail::check_planner<Planner>());
  dynamic_plan best;
  best.first_symbol = first, best.last_symbol = last, best.alignment = alignment;
  constexpr std::int64_t most = std::int64_t{1} << 56;
  if (alignment < 1 || alignment > most) return best.why = {"the alignment is below 1 or beyond 2^56"}, best;
  if (last < first || first < -most || last > most)
    return best.why = {"the range of the symbol is empty or beyond 2^56"}, best;
  std::vector<dynamic_record> records(given.begin(), given.end());
  for (std::size_t i = 0; i < records.size(); ++i) {
    affine_size& s = records[i].size;
    auto const rounded = [&](std::int64_t x) {
      return x >= 0 ? detail::align_up(x, alignment) : -(-x / alignment * alignment);
    };
    std::int64_t at_first = 0, at_last = 0;
    bool const fits = s.base > -most && s.base < most && s.slope > -most && s.slope < most &&
                      (s.base = rounded(s.base), s.slope = rounded(s.slope), true) &&
                      !__builtin_mul_overflow(s.slope, first, &at_first) &&
                      !__builtin_mul_overflow(s.slope, last, &at_last) && at_first > -most && at_first < most &&
                      at_last > -most && at_last < most;
    if (!fits || given[i].size(first) < 0 || given[i].size(last) < 0 || s(first) < 0 || s(last) < 0)
      return best.why = {"its size is negative in the range, or beyond 2^56", static_cast<std::int64_t>(i)}, best;
  }
  auto const at = [&](std::int64_t symbol) {
    std::vector<usage_record> fixed;
    for (auto const& r : records) fixed.push_back({.lower = r.lower, .upper = r.upper, .size = r.size(symbol)});
    return memory_problem(fixed);
  };
  for (auto symbol : {first, last})
    if (best.why = fault_of(at(symbol)); !best.why.empty()) return best;
  best.bound_at_first = load_lower_bound(at(first)).bytes;
  best.bound_at_last = load_lower_bound(at(last)).bytes;
  dynamic_plan tried = best;
  bool none = true;
  for (auto symbol : {last, first, first + (last - first) / 2}) {
    memory_plan const base = detail::ask(planner, at(symbol));
    if (!has_offsets(base)) return best.why = base.why, best;
    detail::settle(records, base.offsets, tried);
    auto const excess = [](dynamic_plan const& p) {  // relative to the bounds, the worse end
      auto const over = [](std::int64_t arena, std::int64_t bound) {
        return bound > 0 ? static_cast<double>(arena) / static_cast<double>(bound) : 1.0;
      };
      return std::max(over(p.arena_at_first, p.bound_at_first), over(p.arena_at_last, p.bound_at_last));
    };
    if (none || excess(tried) < excess(best)) best = tried;
    none = false;
  }
  return best;
}

}}  // namespace neap::v0
