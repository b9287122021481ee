// What tests of the verifier share of fuse(), which makes one operator of several: plans that fuse are right, recomputed, swapped and in parts, and plans with another operator in the place
// of a fused one are refused.
#pragma once

#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "fused_plans.hpp"
#include "judged.hpp"
#include "plain_run.hpp"
#include "random_fission.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace neap::testing {

inline roofline const fusing_device = roofline::h100_like();

inline verification verdict_on(graph const& original, candidate const& c) {
  return verify_plan(original, make_plan(c, original, memory_options{}), fusing_device);
}

/// A candidate after up to three moves that recompute or swap.
inline candidate moved(candidate c, std::uint64_t seed) {
  random_stream draw(seed, 3);
  constexpr auto moves = chain(rematerialize{}, neap::swap{});
  for (int step = 0; step < 3; ++step) {
    std::vector<mutation_of<stream_of<std::remove_const_t<decltype(moves)>>>> all;
    auto stream = moves(c);
    while (auto m = stream.next()) all.push_back(*m);
    if (all.empty()) break;
    auto e = apply_mutation(all[draw.below(static_cast<std::uint32_t>(all.size()))], c);
    if (e) c = judged(std::move(e->graph), std::move(e->order), fusing_device);
  }
  return c;
}

struct refusals {
  std::size_t refused = 0, alike = 0;  // alike: dead, or the same by algebra
};
/// Puts other operators in the places of fused ones, `tries` times: the plans are refused, or their numbers are the
/// original's. Of those of a kind: change(op, layouts of its inputs, draw): another operator; none where there is none in that place.
template <class Made, class Kind, class Change>
void check_other_operators(graph const& original, Made const& made, std::uint64_t seed, int tries,
                           Kind const& is_of_kind, Change const& change, refusals& seen) {
  auto const right = planned_from(original, made);
  auto const fused = fused_ops(right, is_of_kind);
  if (fused.empty()) return;
  random_stream draw(seed, 5);
  host_backend backend;
  auto const sources = random_sources(original, seed);
  auto const expected = run_plainly(original, given_order{}(original), sources, backend);
  for (int k = 0; k < tries; ++k) {
    auto const o = fused[draw.below(static_cast<std::uint32_t>(fused.size()))];
    std::vector<tensor_layout> in;
    for (auto v : right.inputs(o)) in.push_back(right.layout(v));
    std::optional<op::fused> const other = change(*right.template as<op::fused>(o), in, draw);
    if (!other) continue;
    std::optional<graph> wrong;
    try {
      shape_context c("fused", in);
      other->infer(c);
      wrong = with_operator(right, o, view_of(*other));
    } catch (error const&) { continue; }  // no operator, or another type than readers take
    if (!verify(static_cast<op_graph const&>(*wrong)).ok()) continue;
    auto const v = verdict_on(original, judged_in_order(*wrong, fusing_device));
    if (!v.ok()) {
      ++seen.refused;
      continue;
    }
    ++seen.alike;
    auto const got = run_plainly(*wrong, given_order{}(*wrong), sources, backend);
    CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
  }
}

/// Whether plan checks say that an op has a pinned one as a step.
inline bool tells_of_pinned_step(verification const& v) {
  for (auto const& broken : v.violations())
    if (broken.kind == violation_kind::broken_pin && broken.message.find("as a step") != std::string::npos) return true;
  return false;
}

/// Runs a random stretch of a fused graph in parts, if some can be cut: the plan is right, and the numbers are. How
/// many fused ops of a kind run in parts.
template <class Kind>
std::size_t check_fused_parts(graph const& original, std::uint64_t seed, Kind const& is_of_kind) {
  auto c = judged_in_order(original, fusing_device);
  random_stream draw(seed, 6);
  for (int tries = 0; tries < 12; ++tries)
    if (auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw))
      if (auto e = f->apply(c)) {
        c = judged(std::move(e->graph), std::move(e->order), fusing_device);
        break;
      }
  std::size_t parts = 0;
  for (auto o : fused_ops(c.graph, is_of_kind)) parts += c.graph.record(o).part != nothing<part_id>;
  auto const v = verdict_on(original, c);
  REQUIRE_MESSAGE(v.ok(), v.message());
  host_backend backend;
  auto const sources = random_sources(original, seed);
  auto const expected = run_plainly(original, given_order{}(original), sources, backend),
             got = run_plainly(c.graph, c.order, sources, backend);
  CHECK(error_of(original, expected.kept, got.kept) < 1e-2);
  return parts;
}

}  // namespace neap::testing
