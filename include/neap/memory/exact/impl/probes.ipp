// The bodies of <neap/memory/exact/probes.hpp>.
#pragma once

#include <neap/memory/exact/probes.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void probes_ahead::look_ahead(capacity_walk walk, probe asked, std::int64_t left,
                                        stop_condition const& stop) {
  asked_.clear(), next_ = 0;
  for (;;) {
    asked_.push_back(asked);
    walk.learn(asked, feasibility::unknown, 0), left -= asked.nodes;
    if (asked_.size() == searches_.size() || walk.done() || left <= 0) break;
    asked = walk.next();
    asked.nodes = std::min(asked.nodes, left);
  }
  answers_.assign(asked_.size(), {});
  auto const last = first_decided(&team_, asked_.size(), stop, [&](std::size_t k, stop_condition const& inner) {
    answers_[k] = searches_[k](asked_[k], nullptr, inner);
    return answers_[k].fits != feasibility::unknown;
  });
  asked_.resize(std::min(last + 1, asked_.size()));
}

}}}  // namespace neap::v0::detail
