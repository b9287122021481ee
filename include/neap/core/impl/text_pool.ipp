// The bodies of <neap/core/text_pool.hpp>.
#pragma once

#include <neap/core/text_pool.hpp>

#include <neap/core/separate_compilation.hpp>

#include <utility>

namespace neap { inline namespace v0 {

NEAP_FUNC void text_pool::share() {
  if (own_.size() < 4096 || 4 * own_.size() < shared_size()) return;
  auto all = std::make_shared<plain_vector<char>>();
  all->reserve(shared_size() + own_.size());
  if (shared_) all->append(shared_->data(), shared_->size());
  all->append(own_.data(), own_.size());
  shared_ = std::move(all);
  own_ = {};
}

}}  // namespace neap::v0
