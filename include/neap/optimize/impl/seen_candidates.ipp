// The bodies of <neap/optimize/seen_candidates.hpp>.
#pragma once

#include <neap/optimize/seen_candidates.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::optional<digest> candidate_digest::operator()(op_graph const& g, schedule const& order) {
  auto const places = places_of(g, order);
  if (!is_order_) return std::nullopt;
  return g.digest().mix(places);
}

NEAP_FUNC std::uint64_t candidate_digest::places_of(op_graph const& g, schedule const& order) {
  auto const n = g.op_count();
  is_order_ = order.size() == n;
  if (!is_order_) return 0;
  at_.assign(n, no_id);
  std::uint64_t sum = 0;
  bool after_all = true;
  for (std::uint32_t p = 0; p < n; ++p) {
    op_id const o = order[p];
    if (index(o) >= n || at_[o] != no_id) return is_order_ = false, 0;
    std::uint64_t x = g.digest(o).low ^ p;
    for (auto v : g.inputs(o)) {
      auto const by = g.producer(v);
      auto const where = by == nothing<op_id> ? n : at_[by];
      after_all &= where != no_id;
      x = (x ^ where) * 0x9fb21c651e98df25ull;
      x ^= x >> 32;
    }
    for (auto before : g.order_after(o)) after_all &= at_[before] != no_id;
    for (auto v : g.outputs(o)) x += g.is_kept(v);
    at_[o] = p;
    sum += scramble(x);
  }
  is_order_ = after_all;
  return sum;
}

NEAP_FUNC bool seen_candidates::add(digest const& d) {
  auto const before = digests_.size();
  set_.find_or_add(
      digest_hash{}(d), [&](std::uint32_t n) { return digests_[n] == d; },
      [&] { return digests_.push_back(d), before; });
  return digests_.size() > before;
}

}}  // namespace neap::v0
