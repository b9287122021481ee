// Pins in a model (ir/pins.hpp): what a planner may not do to a tensor, or to the op that makes it. They count in traced
// programs; a tensor that is computed at once is handed through.
//
//   auto h = neap::keep(up(x));                    // computed once, and in memory until its last use
//   auto total = neap::run_once(all_reduce(h));    // a user's operator that runs exactly once
//   neap::pin_scope const whole(neap::pin::never_in_parts);   // every op that is traced while it lives
#pragma once

#include <neap/ir/pins.hpp>
#include <neap/model/trace.hpp>

#include <source_location>

namespace neap { inline namespace v0 {

/// The tensor, pinned. Throws neap::error for pins that exclude each other, or need an op where none makes the tensor.
tensor pinned(tensor const& t, pin_set pins, std::source_location at = std::source_location::current());

/// Computed once, as a whole, and in memory until its last use: not computed again, not swapped out.
tensor keep(tensor const& t, std::source_location at = std::source_location::current());
/// The op that makes it runs exactly once, as a whole.
tensor run_once(tensor const& t, std::source_location at = std::source_location::current());
/// The op that makes it may run again, whatever else is known of it.
tensor run_again(tensor const& t, std::source_location at = std::source_location::current());
/// The op that makes it is not cut into parts.
tensor never_in_parts(tensor const& t, std::source_location at = std::source_location::current());
/// It is not swapped out.
tensor never_out(tensor const& t, std::source_location at = std::source_location::current());

/// Pins every op that the active trace adds while the scope lives; scopes add up. Without a trace it does nothing.
class pin_scope {
 public:
  explicit pin_scope(pin_set pins);
  pin_scope(pin_scope const&) = delete;
  pin_scope& operator=(pin_scope const&) = delete;
  ~pin_scope();

 private:
  tracer* trace_;
  pin_set before_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/pins.ipp>
#endif
