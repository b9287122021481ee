// The bodies of <neap/memory/exact/feasibility_search.hpp>.
#pragma once

#include <neap/memory/exact/feasibility_search.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC portfolio::portfolio(memory_problem const& p, std::vector<std::vector<std::uint32_t>> const& orders,
                               std::int64_t unit, search_tricks tricks, std::int64_t capacity)
    : orders_(orders),
      unit_(unit) {
  problems_.reserve(orders.size());  // searches refer to them
  for (auto const& order : orders) problems_.push_back(packing_problem_of(p, order, unit));
  auto const& first = problems_.front();
  bool const plain = p.gap_begin.empty();
  for (std::size_t k = 0; k < orders.size(); ++k)
    add(std::make_unique<canonical_search>(problems_[k], tricks, plain && k >= exact_policy::unbroken_orders),
        first.count() <= exact_policy::max_explained ? exact_policy::ordered_weight : exact_policy::unexplained_weight);
  if (plain && tricks.skyline) add(std::make_unique<skyline_search>(first, tricks), exact_policy::skyline_weight);
  auto const units = std::min(capacity / unit, std::numeric_limits<std::int64_t>::max() / 2);
  for (auto& m : members_) m.search->start(units);
}

NEAP_FUNC probe_answer portfolio::operator()(std::int64_t max_nodes, worker_team* team, stop_condition const& stop,
                                             std::vector<std::int64_t>&& offsets) {
  probe_answer answer;
  auto const descent = nodes_of_descent(orders_.front().size());
  std::int64_t until = 0;
  for (auto slice = std::max(exact_policy::first_slice_nodes, descent); answer.nodes < max_nodes;
       slice = std::min(2 * slice, exact_policy::max_slice_nodes)) {
    auto const left = max_nodes - answer.nodes;
    std::int64_t weights = 0;
    for (auto const& m : members_) weights += m.over ? 0 : m.weight;
    if (weights == 0) break;
    // Shares in which no search gets to its end are of no use to any: where there is too little, the first get theirs.
    until += std::max(std::min(slice, left / weights + 1), until ? 0 : descent);
    share_out(until, left);
    auto const deciding = run_slices(team, stop, answer);
    if (answer.fits == feasibility::yes) {
      auto const& order = orders_[deciding < orders_.size() ? deciding : 0];
      for (std::size_t k = 0; k < order.size(); ++k) offsets[order[k]] = members_[deciding].search->offset(k) * unit_;
      answer.offsets = std::move(offsets);
    }
    if (deciding < members_.size() || stop.passed()) break;
  }
  return answer;
}

NEAP_FUNC std::size_t portfolio::run_slices(worker_team* team, stop_condition const& stop, probe_answer& answer) {
  for (auto& m : members_) m.fits = feasibility::unknown;
  auto const deciding = first_decided(team, members_.size(), stop, [&](std::size_t k, stop_condition const& inner) {
    auto& m = members_[k];
    if (m.most <= m.before) return false;
    m.fits = m.search->run(stop_condition::after_nodes(m.most, &inner));
    if (m.fits == feasibility::unknown && m.search->nodes() == m.before) m.over = true;
    return m.fits != feasibility::unknown;
  });
  for (std::size_t k = 0; k < members_.size() && k <= deciding; ++k)
    answer.nodes += members_[k].search->nodes() - members_[k].before;
  if (deciding < members_.size()) answer.fits = members_[deciding].fits;
  return deciding;
}

NEAP_FUNC feasibility_without_windows::feasibility_without_windows(memory_problem const& p, search_tricks tricks)
    : problem_(p),
      tricks_(tricks),
      unit_(granularity(p)) {
  plateau_facts const plateaus(p);
  for (rank_order order : search_orders) {
    auto by_rank = ranked(p, order, plateaus.total, plateaus.ranges);
    std::erase_if(by_rank, [&](std::uint32_t i) { return !p.ever_holds(i); });
    if (std::find(orders_.begin(), orders_.end(), by_rank) == orders_.end()) orders_.push_back(std::move(by_rank));
  }
}

}  // namespace detail
}}  // namespace neap::v0
