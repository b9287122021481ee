// Pins of an external graph, by its graph_traits.
#include <neap/optimize/external.hpp>

#include <neap/blocks/solver_seeds.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/message.hpp"
#include "../support/sanitized.hpp"
#include "pinned_net.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;
using neap::testing::pinned_net;

namespace {

search_options limited(double ratio) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.iterations = 150;
  return o;
}

std::vector<std::size_t> runs_of(engine::net const& g, external_plan const& p) {
  std::vector<std::size_t> n(g.ops.size());
  for (auto const& s : p.steps)
    if (s.op != nothing<op_id>) ++n[index(s.op)];
  return n;
}

}  // namespace

TEST_CASE("pins of an external graph's ops and values hold") {
  constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{5e5} | truncate(16));
  std::size_t again = 0, out = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(150u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    pinned_net g(engine::random_net(seed, t));
    engine::truth same;
    pinned_net const plain(engine::random_net(seed, same));
    random_stream draw(seed, 3);
    for (std::size_t o = 0; o < g.ops.size(); ++o) {
      if (draw.below(3) == 0) g.of_op[o] |= pin::run_once;
      if (draw.below(4) == 0)
        for (auto v : g.ops[o].out) g.of_value[v] |= draw.below(2) == 0 ? pin::keep : pin::never_out;
    }
    auto options = limited(0.5);
    if (seed % 2 == 0) options.set(solver_seeds());
    auto const check = [&](external_plan const& p, bool pinned) {
      auto const runs = runs_of(g, p);
      std::size_t wrong = 0, stored = 0;
      for (std::size_t o = 0; o < runs.size(); ++o) {
        bool once = g.of_op[o].has(pin::run_once);
        for (auto v : g.ops[o].out) once = once || g.of_value[v].has(pin::keep);
        wrong += once && runs[o] != 1;
      }
      for (auto const& s : p.steps)
        if (s.kind == external_step::store)
          for (std::size_t v = 0; v < g.lies_in.size(); ++v)
            if (t.root[v] == t.root[index(s.inputs[0].value)])  // the same bytes
              stored += g.of_value[v].has_any(pin::keep | pin::never_out);
      if (pinned) CHECK(wrong + stored == 0);
      else again += wrong, out += stored;
    };
    check(optimize(g, moves, options).placed, true);
    check(optimize(plain, moves, options).placed, false);
  }
  MESSAGE("without pins: ", again, " run again, ", out, " out");
  if (testing::cases(150u) == 150u) CHECK(std::min(again, out) > 0);
}

TEST_CASE("an op that the graph does not call recomputable runs again where it is pinned so") {
  engine::truth t;
  std::size_t plainly = 0, allowed = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    pinned_net g(engine::random_net(seed, t = {}, {.may_repeat = false}));
    auto const copies = [&] {
      std::size_t n = 0;
      for (auto const& s : optimize(g, rematerialize{}, limited(0.4)).placed.steps)
        n += s.copy > 0 && !g.ops[index(s.op)].view;
      return n;
    };
    plainly += copies();
    auto const image = image_of(g, [](op_id) { return 1.0; }).program;
    for (std::size_t o = 0; o < g.ops.size(); ++o) {
      bool writes = false;  // in place: it may not be pinned so
      for (auto v : image.outputs(id_at<op_id>(o))) writes = writes || image.record(v).alias == alias_kind::update;
      if (!writes) g.of_op[o] = pin::run_again;
    }
    allowed += copies();
  }
  CHECK(plainly == 0);
  if (testing::cases(60u) == 60u) CHECK(allowed > 0);
}

TEST_CASE("rules by pattern and id go with external graphs, and pins that exclude each other are told") {
  engine::truth t;
  pinned_net g(engine::random_net(2, t));
  g.of_op[3] = pin::run_once | pin::run_again;
  CHECK(testing::message_of([&] { (void)optimize(g, rematerialize{}, limited(0.5)); }) ==
        "external graph: op 3 cannot be pinned run_again, run_once: they exclude each other, or it writes in place");
  g.of_op[3] = {};
  CHECK(testing::message_of([&] {
          (void)optimize(g, rematerialize{}, limited(0.5), pin_rules{{pin::keep, "nothing*"}});
        }) == "pin keep: no op or value matches \"nothing*\"");
  auto const found = optimize(g, rematerialize{}, limited(0.5), pin_rules{{pin::run_once, id_at<op_id>(3)}});
  CHECK(runs_of(g, found.placed)[3] == 1);
}
