#include <neap/mutate/default_moves.hpp>

#include <neap/ir/standard_operators.hpp>
#include <neap/model/model.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/training_step.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;

namespace {

// Pipelines are constants, and say what they allow: a search recomputes and transfers only where they do.
static_assert(default_moves.allows().recompute && default_moves.allows().swap == 16e9);
static_assert(default_moves_at(2e9).allows().swap == 2e9 && default_moves_at(0).allows().swap == 0);
static_assert(default_moves_with_fission(3e9).allows().cut && default_moves_with_fission(3e9).allows().swap == 3e9);
static_assert(!default_moves.allows().cut && !default_moves_with_fission(3e9, 0).allows().cut);
static_assert(mutator<decltype(default_moves)> && mutator<decltype(fission_later)>);
static_assert(mutator<decltype(default_moves_with_fission())>);

struct network {
  std::vector<nn::linear> layers{{32, 32}, {32, 32}, {32, 32}, {32, 32}, {32, 32}, {32, 8}};
  tensor operator()(tensor x) const {
    for (auto const& l : layers) x = gelu(l(x));
    return x;
  }
};

template <class M>
std::vector<std::string> drawn(M const& moves, candidate const& c) {
  std::vector<std::string> out;
  auto stream = moves(c);
  while (auto m = stream.next()) out.push_back(describe(*m, c));
  return out;
}

}  // namespace

TEST_CASE("default moves: recomputation and swaps of any candidate, fission of one that the search returns to") {
  network model;
  auto const x = tensor::randn({256, 32}, 1);
  auto const step = training_step(model, std::pair{x, tensor::zeros({256, 8})}, mse{}, sgd{});
  candidate c{step.program, given_order{}(step.program), {}};
  c.result = simulate(c.graph, c.order, roofline::host(1));

  auto const quick = drawn(default_moves, c);
  CHECK(quick.size() > 1);
  CHECK(quick.size() <= 32);
  CHECK(drawn(default_moves_with_fission(), c) == quick);  // the same link
  CHECK(drawn(fission_later, c).empty());

  c.visits = 1;
  auto const fissions = drawn(fission_later, c);
  CHECK(!fissions.empty());
  CHECK(fissions.size() <= 8);
  auto both = quick;
  both.insert(both.end(), fissions.begin(), fissions.end());
  CHECK(drawn(default_moves_with_fission(), c) == both);
}

TEST_CASE("default moves meet a limit that the order alone does not") {
  network model;
  auto const x = tensor::randn({256, 32}, 1);
  auto const step = training_step(model, std::pair{x, tensor::zeros({256, 8})}, mse{}, sgd{});
  search_options options;
  options.iterations = 200;
  auto const found = optimize(step, default_moves, memory_limit::of_original(0.75), options);
  CHECK(found.fits);
  CHECK(!found.placed.graph.runs_in_parts());
}
