// Frozen weights in planned training: peaks, batches of other sizes, and what a trainer says when freezing changes.
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

using namespace neap;
using neap::testing::message_of;

namespace {
struct net {
  std::vector<nn::linear> trunk;
  nn::linear head{32, 5};
  net() {
    trunk.emplace_back(8, 32);
    for (int i = 0; i < 5; ++i) trunk.emplace_back(32, 32);
    initialise(*this, 3);
  }
  tensor operator()(tensor x) const {
    for (auto const& l : trunk) x = gelu(l(x));
    return head(x);
  }
  friend auto neap_fields(net& n) { return std::tie(n.trunk, n.head); }
  static constexpr std::array neap_names{"trunk", "head"};
};
std::pair<tensor, tensor> batch(std::int64_t n) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back(i % 5);
  return {tensor::randn({n, 8}, 1), tensor::from(labels, {n})};
}
}  // namespace

TEST_CASE("a frozen trunk keeps no activations for its gradient, and trains in batches of every size") {
  net whole, frozen;
  requires_gradient(frozen.trunk, false);
  auto const all = training_step(whole, batch(64), cross_entropy{}, sgd{.rate = 0.1}),
             some = training_step(frozen, batch(64), cross_entropy{}, sgd{.rate = 0.1});
  auto const a = plan_in_order(all.program), b = plan_in_order(some.program);
  auto const layer = bytes_t{64 * 32 * 4};
  CHECK(a.arena_bytes - a.resident_bytes >= 7 * layer);
  CHECK(b.arena_bytes - b.resident_bytes <= 4 * layer);
  host_backend backend(1);
  trainer run(some, b, backend);
  net eager = frozen;
  training_state state;
  auto const trunk = frozen.trunk[2].weight.values<float>();
  for (std::int64_t n : {64, 24, 7, 64}) {
    double const planned = run(batch(n));
    CHECK(planned == eager_step(eager, batch(n), cross_entropy{}, sgd{.rate = 0.1}, state).item<double>());
  }
  CHECK(frozen.trunk[2].weight.values<float>() == trunk);
  CHECK(frozen.head.weight.values<float>() == eager.head.weight.values<float>());
}

TEST_CASE("a trainer says that freezing has changed since its step was made") {
  net m;
  requires_gradient(m.head, false);
  auto const step = training_step(m, batch(8), cross_entropy{}, sgd{});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  run(batch(8));
  requires_gradient(m.head, true);
  for (std::int64_t n : {8, 4}) {
    auto const told = message_of([&] { run(batch(n)); });
    CHECK(told.find("trainer: requires_gradient has freed the weight \"head.weight\" since the step was made") !=
          std::string::npos);
  }
  CHECK(message_of([&] { run.prepare(batch(4)); }).find("has freed the weight") != std::string::npos);
  requires_gradient(m.head, false);
  run(batch(4));
  requires_gradient(m.trunk[1], false);
  CHECK(message_of([&] { run(batch(8)); }).find("has frozen the weight \"trunk.1.weight\"") != std::string::npos);
}
