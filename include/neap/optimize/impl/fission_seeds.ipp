// The bodies of <neap/optimize/fission_seeds.hpp>.
#pragma once

#include <neap/optimize/fission_seeds.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool fission_seeds::refine(bytes_t target) {
  if (reach_ == 0) return false;
  auto best = ranked(target);
  if (best.size() > numbers_.refined) best.resize(numbers_.refined);
  for (auto const& o : best) take(o.base, sweeps_[o.base]->front_near(o.what.what, reach_));
  reach_ /= numbers_.refinement;
  return true;
}

NEAP_FUNC plain_vector<fission_seeds::option> fission_seeds::ranked(bytes_t target) const {
  plain_vector<option> all;
  for (auto const& o : options_)
    if (!o.tried) all.push_back(o);
  auto const rank = [&](option const& o) {
    bool const meets = goal_.limits_memory ? o.what.peak <= target : o.what.latency <= goal_.latency;
    bool const quickest = goal_.limits_memory && meets;
    return std::pair(meets ? 0 : 1, quickest ? o.what.latency : static_cast<double>(o.what.peak));
  };
  detail::sort_list(all, [&](option const& a, option const& b) { return rank(a) < rank(b); });
  auto const same = [](option const& a, option const& b) {
    return a.what.peak == b.what.peak && a.what.latency == b.what.latency;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  if (goal_.limits_memory) return all;
  auto const slower = std::find_if(all.begin(), all.end(), [&](option const& o) { return rank(o).first == 1; });
  plain_vector<option> in_turn;
  for (auto a = all.begin(), b = slower; a != slower || b != all.end();) {
    if (a != slower) in_turn.push_back(*a++);
    if (b != all.end()) in_turn.push_back(*b++);
  }
  return in_turn;
}

NEAP_FUNC plain_vector<fission_seeds::option> fission_seeds::quicker(bytes_t target, seconds_t latency) const {
  auto all = options_;
  detail::sort_list(all, [](option const& a, option const& b) {
    return a.what.latency != b.what.latency ? a.what.latency < b.what.latency : a.what.peak < b.what.peak;
  });
  plain_vector<option> front, some;
  for (auto const& o : all)
    if (o.what.latency < latency && o.what.peak > target && (front.empty() || o.what.peak < front.back().what.peak))
      front.push_back(o);
  // From those that are nearly small enough, each larger than the one before by a sixth, then by a third.
  auto const most = numbers_.max_quicker;
  for (; !front.empty() && some.size() < most; front.pop_back())
    if (auto const& o = front.back();
        some.empty() || static_cast<double>(o.what.peak) >=
                            (some.size() < most / 2 ? numbers_.quicker_step : numbers_.quicker_large_step) *
                                static_cast<double>(some.back().what.peak))
      some.push_back(o);
  return some;
}

}}}  // namespace neap::v0::detail
