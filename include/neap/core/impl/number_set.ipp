// The bodies of <neap/core/number_set.hpp>.
#pragma once

#include <neap/core/number_set.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void number_set::grow() {
  plain_vector<slot> old(slots_.empty() ? 16 : 2 * slots_.size());
  old.swap(slots_);
  for (auto const& s : old)
    if (s.taken) {
      auto at = s.hash & (slots_.size() - 1);
      while (slots_[at].taken) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = s;
    }
}

}}  // namespace neap::v0
