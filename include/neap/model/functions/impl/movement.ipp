// The bodies of <neap/model/functions/movement.hpp>.
#pragma once

#include <neap/model/functions/movement.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC tensor contiguous(tensor const& x, std::source_location at) {
  place_scope const here(at);
  return x.layout().is_dense() ? x : apply(op::copy{}, {x});
}

NEAP_FUNC tensor slice(tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop,
                       std::source_location at) {
  place_scope const here(at);
  int const k = detail::axis_of(x, axis, "slice", at);
  auto const from_end = [&](std::int64_t i) { return i < 0 ? i + x.size(k) : i; };
  return apply(op::slice{k, from_end(start), from_end(stop)}, {x});
}

}  // namespace neap::inline v0
