// The bodies of <neap/capture/expression.hpp>.
#pragma once

#include <neap/capture/expression.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::uint64_t expression_tape::key_of(expression const& e) {
  std::uint64_t key = 0;
  for (std::uint64_t part : {static_cast<std::uint64_t>(e.what), std::uint64_t{e.a}, std::uint64_t{e.b},
                             static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(e.call)), e.bits})
    key = (key ^ part) * 0x9e3779b97f4a7c15u, key ^= key >> 29;
  return key;
}

NEAP_FUNC std::uint32_t expression_tape::add(expression const& e) {
  auto key = key_of(e);
  for (;; ++key) {
    auto const seen = numbers_.find(key);
    if (seen == number_map::none) break;
    if (all_[seen] == e) return seen;
  }
  auto const number = static_cast<std::uint32_t>(all_.size());
  numbers_.add(key, number);
  all_.push_back(e);
  return number;
}

NEAP_FUNC std::uint64_t expression_tape::text(std::string_view x) {
  if (!texts_) texts_ = std::make_shared<std::set<std::string, std::less<>>>();
  auto at = texts_->find(x);
  if (at == texts_->end()) at = texts_->emplace(x).first;
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&*at));
}

NEAP_FUNC void expression_tape::truncate(std::size_t n) {
  all_.resize(n);
  numbers_.clear();
  for (std::uint32_t k = 0; k < n; ++k)
    for (auto key = key_of(all_[k]); !numbers_.add(key, k); ++key) {}
}

NEAP_FUNC std::uint32_t expression_tape::call(scalar_function f, std::uint32_t a, std::uint32_t b) {
  return add({expression::kind::call, a, b, f, 0});
}

NEAP_FUNC expression_values::expression_values(expression_tape const& tape, std::vector<std::uint64_t> const& scalars)
    : tape_(&tape),
      scalars_(&scalars),
      values_(tape.size()),
      known_(tape.size()) {}

NEAP_FUNC std::uint64_t expression_values::operator()(std::uint32_t k) {
  open_.assign(1, k);
  while (!open_.empty()) {
    auto const at = open_.back();
    auto const& e = (*tape_)[at];
    if (!known_[at] && e.what == expression::kind::call && !(known_[e.a] && known_[e.b])) {
      if (!known_[e.a]) open_.push_back(e.a);
      if (!known_[e.b]) open_.push_back(e.b);
      continue;
    }
    open_.pop_back();
    if (known_[at]) continue;
    known_[at] = true;
    if (e.what == expression::kind::constant) values_[at] = e.bits;
    else if (e.what == expression::kind::scalar) values_[at] = (*scalars_)[e.a];
    else values_[at] = e.call(values_[e.a], values_[e.b]);
  }
  return values_[k];
}

}}}  // namespace neap::v0::detail
