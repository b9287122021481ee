// What an outline of an edit is judged to be is what the edited graph is: every byte, every bit of every second.
#include <neap/simulate/outline_delta.hpp>
#include <neap/simulate/outlined_facts.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/recompute_segments.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/simulate/transfer_costs.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/judged.hpp"
#include "../support/padded_graph.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace neap;
using namespace neap::testing;

namespace {

/// Uneven times, the same for copies; transfers by bytes, slow enough to be waited for.
struct uneven_cost {
  double operator()(op_graph const& g, op_id o) const {
    if (flow::is_view(g, o)) return 0;
    if (flow::stream(g, o) == op_stream::compute) return 0.1 + 0.01 * static_cast<double>(index(g.origin(o)) * 7 % 13);
    auto const v = flow::stream(g, o) == op_stream::to_host ? g.inputs(o)[0] : g.outputs(o)[0];
    return 0.05 + 1e-4 * static_cast<double>(g.bytes(g.storage(v)));
  }
};

struct counts {
  std::size_t judged = 0, by_delta = 0, left_out = 0, with_transfers = 0, transfers = 0, waits = 0, taken_over = 0;
  std::size_t in_several_parts = 0, copies_there = 0, of_segments = 0;
};

std::size_t parts_that_run_again(op_graph const& g, graph_edit const& outline) {
  std::set<part_id> parts;
  for (auto const& r : outline.runs)
    if (r.what == graph_edit::kind::again && g.record(r.like).part != nothing<part_id>)
      parts.insert(g.record(r.like).part);
  return parts.size();
}

/// The edit of a mutation, whether a search judges it before it is built or not; false where it is impossible.
template <class M>
bool write_edit(M const& m, candidate const& c, replay_facts const& facts, graph_edit& out) {
  if constexpr (writes_edit<M>) return m.edit(c, facts, out);
  else return std::visit([&](auto const& x) { return x.edit(c, facts, out); }, m);
}

/// A walk of random moves; at each step every edit is compared with what is built of it.
inline void walk(op_graph g, schedule order, std::uint64_t seed, counts& n) {
  memory_options const memory{.alignment = seed % 3 ? 1 : 64, .takeover = seed % 4 != 0};
  auto result = simulate(g, order, uneven_cost{}, memory);
  candidate c{std::move(g), std::move(order), std::move(result)};
  random_stream draw(seed, 5);
  simulator built, outlined;
  transfer_costs costs;
  graph_edit outline;
  outline_delta delta;
  for (int step = 0; step < 5; ++step) {
    std::vector<edited> next;
    outlined_facts facts(c.graph, uneven_cost{}, memory);
    replay_facts const replay(c.graph, c.order);
    delta.assign(c, facts);
    auto const plain = built.judge(facts, c.order);
    auto const moves = chain(rematerialize{.max_ops = 8, .keep_ratio = seed % 2 ? 0.5f : 0.0f},
                             neap::swap{1e4} | truncate(seed % 3 ? 1000 : 0));
    auto const check = [&](auto const& m) {
      auto e = apply_mutation(m, c);
      REQUIRE(write_edit(m, c, replay, outline) == e.has_value());
      if (!e) return;
      CAPTURE(seed);
      CAPTURE(step);
      CAPTURE(describe(m, c));
      REQUIRE(check_order(e->graph, e->order));
      costs.tell(c.graph, uneven_cost{}, outline);
      for (auto const& r : outline.runs)
        n.transfers += r.what != graph_edit::kind::again, n.waits += r.what == graph_edit::kind::wait;
      facts.apply(c.order, outline);
      auto const would_be = outlined.judge(facts, facts.order());
      facts.take_back();
      flow_facts const really(e->graph, uneven_cost{}, memory);
      auto const is = built.judge(really, e->order);
      REQUIRE(would_be.peak_bytes == is.peak_bytes);
      REQUIRE(would_be.latency == is.latency);
      auto const a = outlined.judged_bytes(), b = built.judged_bytes();
      REQUIRE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
      if (delta.can_judge(facts, outline)) {
        auto const target = plain.peak_bytes / 2;
        facts.add_rows(outline);
        auto const by_delta = delta.judge(facts, replay.at, replay.values, outline, target);
        facts.take_back();
        REQUIRE(by_delta.peak_bytes == is.peak_bytes);
        REQUIRE(by_delta.latency == is.latency);
        double above = 0;
        for (auto x : b) above += static_cast<double>(std::max<bytes_t>(x - target, 0));
        REQUIRE(by_delta.excess_bytes == above);
        ++n.by_delta;
      }
      ++n.judged;
      n.left_out += !outline.left_out.empty();
      n.with_transfers += really.has_transfers();
      n.taken_over += !really.takeovers().empty();
      if (auto const parts = parts_that_run_again(c.graph, outline); parts > 1) {
        ++n.in_several_parts, n.copies_there += parts;
        REQUIRE(verify(e->graph).ok());
      }
      next.push_back(std::move(*e));
    };
    auto const check_all = [&](auto stream) {
      while (auto m = stream.next()) check(*m);
    };
    check_all(moves(c));
    auto const of_peak = next.size();
    for (auto const part : {4, 7}) {
      auto const target = c.result.peak_bytes / 10 * part;
      check(recompute_segments{.price = 1e-3, .tail_price = 1e-4, .budget = target});
      check(recompute_segments{.budget = target});
    }
    n.of_segments += next.size() - of_peak;
    auto const back = outlined.judge(facts, c.order);  // nothing is left of the outlines
    REQUIRE(back.peak_bytes == plain.peak_bytes);
    REQUIRE(back.latency == plain.latency);
    if (next.empty()) return;
    auto& e = next[draw.below(static_cast<std::uint32_t>(next.size()))];
    result = simulate(e.graph, e.order, uneven_cost{}, memory);
    c = {std::move(e.graph), std::move(e.order), std::move(result)};
  }
}

}  // namespace

TEST_CASE("outlined recomputations and swaps are judged as the edited graphs are, over walks on random graphs") {
  counts n;
  for (std::uint64_t seed = 0; seed < cases(6000u); ++seed) {
    random_graph_options o;
    o.copies = seed % 3;
    o.swaps = seed % 2;
    auto g = random_graph(seed, o);
    auto order = reverse_post_order{}(g);
    walk(std::move(g), std::move(order), seed, n);
  }
  MESSAGE(n.judged << " outlines, " << n.by_delta << " by what is different, " << n.left_out
                   << " that leave something out");
  CHECK(n.judged > cases(10'000));
  CHECK(n.by_delta > cases(10'000));
  CHECK(n.left_out > cases(2000));
  CHECK(n.with_transfers > cases(4000));
  CHECK(n.transfers > cases(4000));
  CHECK(n.waits > cases(500));
  CHECK(n.taken_over > cases(1000));
  CHECK(n.of_segments > cases(50));
}

TEST_CASE("and on graphs with views, padded buffers and updates in place") {
  counts n;
  for (std::uint64_t seed = 0; seed < cases(3000u); ++seed) {
    auto g = padded_graph(seed);
    auto order = reverse_post_order{}(g);
    walk(std::move(g), std::move(order), seed, n);
  }
  CHECK(n.judged > cases(50));
}

TEST_CASE("and in programs that run in parts, where all parts that are alike compute again together") {
  counts n;
  for (std::uint64_t seed = 0; seed < cases(200u); ++seed) {
    auto const g = random_model(seed, 12);
    auto c = judged(g, given_order{}(g));
    random_stream draw(seed, 21);
    int cuts = 0;
    for (int tries = 0; tries < 60 && cuts < 2; ++tries) {
      auto const f = random_fission(c, draw);
      if (!f) continue;
      if (auto e = f->apply(c)) c = judged(std::move(e->graph), std::move(e->order)), ++cuts;
    }
    if (cuts > 0) walk(c.graph, c.order, seed, n);
  }
  MESSAGE(n.judged << " outlines, " << n.in_several_parts << " of several parts, " << n.copies_there << " in all");
  CHECK(n.judged > cases(2000));
  CHECK(n.in_several_parts > cases(200));
}

TEST_CASE("what all parts compute again is the program still, and frees what lives in each of them") {
  std::size_t done = 0, freed = 0;
  for (std::uint64_t seed = 0; seed < cases(600u); ++seed) {
    auto const g = random_model(seed, 12);
    auto const start = judged(g, given_order{}(g));
    random_stream draw(seed, 22);
    std::optional<edited> cut;
    for (int tries = 0; tries < 60 && !cut; ++tries)
      if (auto const f = random_fission(start, draw)) cut = f->apply(start);
    if (!cut) continue;
    auto const c = judged(std::move(cut->graph), std::move(cut->order));
    replay_facts const facts(c.graph, c.order);
    auto stream = rematerialize{}(c);
    while (auto const m = stream.next()) {
      if (!m->in_all_parts) continue;
      auto const places = neap::detail::places_alike(c.graph, facts, {m->storage, m->resume});
      REQUIRE(!places.empty());
      auto const e = apply_mutation(*m, c);
      if (!e || places.size() < 2) continue;
      CAPTURE(seed);
      CAPTURE(describe(*m, c));
      auto const now = judged(e->graph, e->order);
      auto const p = make_plan(now, g);
      auto const verdict = verify_plan(g, p);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      ++done;
      // More is computed again than in the one part alone.
      auto const one = apply_mutation(recompute{m->storage, m->resume}, c);
      REQUIRE(one);
      freed += e->graph.op_count() > one->graph.op_count();
    }
  }
  CHECK(done > cases(100));
  CHECK(freed > done / 2);
}
