// The bodies of <neap/model/pins.hpp>.
#pragma once

#include <neap/model/pins.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor pinned(tensor const& t, pin_set pins, std::source_location at) {
  if (auto* trace = tracer::active(); trace && t.is_traced()) {
    auto const v = trace->value(t, at);
    detail::with_place(at, [&] { trace->editor().add_pins(v, pins); });
  }
  return t;
}

NEAP_FUNC tensor keep(tensor const& t, std::source_location at) { return pinned(t, pin::keep, at); }

NEAP_FUNC tensor run_once(tensor const& t, std::source_location at) { return pinned(t, pin::run_once, at); }

NEAP_FUNC tensor run_again(tensor const& t, std::source_location at) { return pinned(t, pin::run_again, at); }

NEAP_FUNC tensor never_in_parts(tensor const& t, std::source_location at) { return pinned(t, pin::never_in_parts, at); }

NEAP_FUNC tensor never_out(tensor const& t, std::source_location at) { return pinned(t, pin::never_out, at); }

NEAP_FUNC pin_scope::pin_scope(pin_set pins) : trace_(tracer::active()) {
  if (trace_) before_ = trace_->pin_new_ops(pins);
}

NEAP_FUNC pin_scope::~pin_scope() {
  if (trace_ && tracer::active() == trace_) trace_->restore_pins(before_);
}

}}  // namespace neap::v0
