// The bodies of <neap/blocks/remat_solver.hpp>.
#pragma once

#include <neap/blocks/remat_solver.hpp>

#include <neap/core/separate_compilation.hpp>

#include <string>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC void keep_better(remat_answer& best, remat_answer other) {
  double const bound = std::max(best.lower_bound, other.lower_bound);
  auto const work = best.work + other.work;
  bool const better = has_steps(other) ? !has_steps(best) || other.time < best.time
                                       : !has_steps(best) && other.status == remat_status::infeasible;
  if (better) best = std::move(other);
  best.work = work;
  best.lower_bound = has_steps(best) ? std::min(bound, best.time) : bound;
  if (has_steps(best) && best.lower_bound >= best.time * (1 - 1e-12)) best.status = remat_status::optimal;
}

NEAP_FUNC void require_agreement(remat_problem const& p, remat_answer const& a, remat_answer const& b,
                                 std::string_view who) {
  if (!check(p)) return;
  for (auto const& [known, proof] : {std::pair{&a, &b}, {&b, &a}}) {
    bool const none = proof->status == remat_status::infeasible;
    if (!has_steps(*known) || (!none && proof->lower_bound <= known->time * (1 + 1e-9))) continue;
    if (!in_phases(p, known->steps)) continue;
    auto const found = " for a block of " + std::to_string(p.ops.size()) +
                       " ops, where another has an answer that takes " + std::to_string(known->time);
    if (none) throw_error({who, " says that nothing fits", found});
    throw_error({who, " gave the lower bound ", std::to_string(proof->lower_bound), found});
  }
}

}  // namespace detail

NEAP_FUNC std::vector<remat_answer> pareto(std::vector<remat_answer> answers) {
  std::erase_if(answers, [](remat_answer const& a) { return !has_steps(a); });
  std::stable_sort(answers.begin(), answers.end(), [](remat_answer const& a, remat_answer const& b) {
    return std::tuple(a.time, a.peak_bytes, a.saved_bytes) < std::tuple(b.time, b.peak_bytes, b.saved_bytes);
  });
  std::vector<remat_answer> kept;
  for (auto& a : answers) {
    bool const beaten = std::any_of(kept.begin(), kept.end(), [&](remat_answer const& k) {
      return k.peak_bytes <= a.peak_bytes && k.saved_bytes <= a.saved_bytes;
    });
    if (!beaten) kept.push_back(std::move(a));
  }
  return kept;
}

}}  // namespace neap::v0
