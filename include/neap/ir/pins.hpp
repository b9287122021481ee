// Pins: what a planner may not do to a value or an op, whatever it would save.
//
//   keep            a value is computed once, as a whole, and stays in memory until its last use: it is neither computed
//                   again, nor swapped out, nor made in parts
//   run_once        an op runs exactly once, as a whole: a collective, a log, a side effect
//   never_in_parts  no fission cuts the op; it may run again
//   never_out       a value is never swapped out; it may be computed again
//   run_again       an op may run again, with the same result, though it is said to have effects or an external graph does
//                   not call it recomputable. A permission, no duty. It excludes keep and run_once
//
// No rewrite rule matches an op with a pin other than run_again. A pinned value is pinned with what it is a view of, and
// its op has its pins too. Copies and parts of an op have its pins; the digest of a graph takes account of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

enum class pin : std::uint8_t { keep = 1, run_again = 2, run_once = 4, never_in_parts = 8, never_out = 16 };

inline constexpr std::array<std::string_view, 5> pin_names{"keep", "run_again", "run_once", "never_in_parts",
                                                           "never_out"};
constexpr std::string_view name_of(pin p) {
  return pin_names[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint8_t>(p)))];
}
/// The pin of a name; nothing if there is none.
std::optional<pin> pin_of(std::string_view name);

/// A set of pins, in a byte.
class pin_set {
 public:
  constexpr pin_set() = default;
  constexpr pin_set(pin p) : bits_(static_cast<std::uint8_t>(p)) {}
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(pin p) const { return (bits_ & static_cast<std::uint8_t>(p)) != 0; }
  constexpr bool has_any(pin_set of) const { return (bits_ & of.bits_) != 0; }
  constexpr std::uint8_t bits() const { return bits_; }
  /// Those of them that are pins of a value, or of an op alone.
  constexpr pin_set of_value() const;
  constexpr pin_set of_op() const;
  friend constexpr pin_set operator|(pin_set a, pin_set b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr pin_set operator&(pin_set a, pin_set b) {
    a.bits_ &= b.bits_;
    return a;
  }
  constexpr pin_set& operator|=(pin_set b) { return bits_ |= b.bits_, *this; }
  friend constexpr bool operator==(pin_set, pin_set) = default;

 private:
  std::uint8_t bits_ = 0;
};
constexpr pin_set operator|(pin a, pin b) { return pin_set(a) | b; }

constexpr pin_set pin_set::of_value() const { return *this & (pin::keep | pin::never_out); }
constexpr pin_set pin_set::of_op() const { return *this & (pin::run_again | pin::run_once | pin::never_in_parts); }

/// "keep, never_out"; empty if there are none.
std::string to_string(pin_set pins);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/pins.ipp>
#endif
