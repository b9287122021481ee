// The bodies of <neap/optimize/warm_start.hpp>.
#pragma once

#include <neap/optimize/warm_start.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC warm_start::warm_start() = default;
NEAP_FUNC warm_start::warm_start(warm_start const&) = default;
NEAP_FUNC warm_start::warm_start(warm_start&&) noexcept = default;
NEAP_FUNC warm_start& warm_start::operator=(warm_start const&) = default;
NEAP_FUNC warm_start& warm_start::operator=(warm_start&&) noexcept = default;
NEAP_FUNC warm_start::~warm_start() = default;

NEAP_FUNC void warm_start::add(warm_start more) {
  for (auto& p : more.plans_) plans_.push_back(std::move(p));
}

NEAP_FUNC bool warm_start::runs_in_parts() const {
  return std::any_of(plans_.begin(), plans_.end(), [](auto const& p) { return p.graph.runs_in_parts(); });
}

NEAP_FUNC bool warm_start::is_rewritten() const {
  for (auto const& p : plans_)
    for (auto o : p.graph.ops())
      if (p.graph.record(o).rewritten) return true;
  return false;
}

NEAP_FUNC void warm_start::rebind(digest const& program, digest const& searched) {
  for (auto& p : plans_)
    if (p.original == program) p.original = searched;
}

}}  // namespace neap::v0
