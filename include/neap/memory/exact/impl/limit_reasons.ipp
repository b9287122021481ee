// The bodies of <neap/memory/exact/limit_reasons.hpp>.
#pragma once

#include <neap/memory/exact/limit_reasons.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void limit_reasons::lifted(limit_frame& f, limit_entry const* x, limit_entry& head, std::int64_t least) {
  if (!kept()) return;
  sets_.clear();
  if (precise_) {
    meeting const meets(problem_, head.record);
    auto const* const sizes = problem_.size.data();
    auto const n = static_cast<std::uint32_t>(problem_.count());
    sets_.add_reason(head.reason, head.limit + 1);
    for (std::uint32_t i = 0; i < n; ++i)
      if (i != head.record && sizes[i] < least && meets(i)) sets_.add(i);
    for (std::uint32_t k = 1; k < f.count; ++k) sets_.remove(x[k].record);
    for (std::uint32_t k = 1; k < f.count; ++k)
      if (meets(x[k].record)) sets_.add_reason(x[k].reason, least - sizes[x[k].record]);
  } else {
    add_placed(f, x);
  }
  set(f, head, least);
}

}}}  // namespace neap::v0::detail
