// Training steps that were rewritten, recomputed and swapped at random, and those that a search has planned with rules,
// beside the same steps taken eagerly: the same losses and weights to rounding, and every plan is verified.
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/magis_moves.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../../examples/models/densenet.hpp"
#include "../../examples/models/lstm.hpp"
#include "../../examples/models/vit.hpp"
#include "../support/beside_eager.hpp"
#include "../support/numbers.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;
using neap::testing::check_beside_eager;
using neap::testing::whole_numbers;

namespace {

sgd const descent{.rate = 0.01};

/// Runs a plan of a model's training step and the same steps eagerly.
template <class Model, class Sample, class Loss, class Program>
void check_run(Model& model, Program const& program, plan const& p, Sample const& sample, Loss const& loss) {
  auto const verdict = verify_plan(program.program, p);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  auto eager = model;
  trainer train(program, p, eager_context::current().backend());
  check_beside_eager(train, model, eager, sample, loss, descent, 3);
}

using moves_t = any_mutator;

/// Walks of up to 8 mutations, then three steps; how many rewrites a walk were made.
template <class Model, class Sample, class Loss>
double check_walks(Model model, Sample const& sample, Loss const& loss, std::uint64_t walks) {
  initialise(model, 5);
  std::size_t rewrites = 0;
  moves_t const algebra = checked(taso_rules{}),
                others = chain(zip(rematerialize{}, neap::swap{}), undo_moves, reorder{});
  if (testing::sanitized) walks = 2;
  for (std::uint64_t walk = 0; walk < walks; ++walk) {
    auto trained = model;
    auto const program = training_step(trained, sample, loss, descent);
    auto order = reverse_post_order{}(program.program);
    candidate c{program.program, order, simulate(program.program, order, roofline::h100_like())};
    random_stream draw(walk, 9);
    std::string path;
    for (int step = 0; step < 8; ++step) {
      bool const rewrite = draw.below(3) != 0;
      auto stream = (rewrite ? algebra : others)(c);
      auto skip = draw.below(rewrite ? 40 : 20);
      std::optional<edited> e;
      std::string how;
      for (auto m = stream.next(); m; m = stream.next())
        if (auto made = apply_mutation(*m, c)) {
          e = std::move(made), how = describe(*m, c);
          if (skip-- == 0) break;
        }
      if (!e) continue;
      path += "; " + how;
      rewrites += rewrite;
      auto r = simulate(e->graph, e->order, roofline::h100_like());
      c = {std::move(e->graph), std::move(e->order), std::move(r)};
    }
    CAPTURE(path);
    check_run(trained, program, make_plan(c, program.program), sample, loss);
  }
  return static_cast<double>(rewrites) / static_cast<double>(walks);
}

}  // namespace

TEST_CASE("transformers, rewritten at random") {
  std::pair<tensor, tensor> const text{whole_numbers({2, 8}, 1, 16), whole_numbers({2, 8}, 2, 16)};
  CHECK(check_walks(zoo::gpt(zoo::gpt_config::toy()), text, cross_entropy{}, 6) > 3);
  auto apart = zoo::gpt_config::toy();
  apart.fused_attention = false, apart.tied_head = false, apart.dropout = 0.1;
  CHECK(check_walks(zoo::gpt(apart), text, cross_entropy{}, 6) > 3);
  CHECK(check_walks(zoo::llama(zoo::llama_config::toy()), text, cross_entropy{}, 6) > 3);
}
TEST_CASE("nets of images and recurrent nets, rewritten at random") {
  std::pair<tensor, tensor> const images{tensor::randn({2, 3, 16, 16}, 1), whole_numbers({2}, 2, 4)};
  CHECK(check_walks(zoo::vit(zoo::vit_config::toy()), images, cross_entropy{}, 4) > 2.5);
  CHECK(check_walks(zoo::densenet(zoo::densenet_config::toy()), images, cross_entropy{}, 4) > 2.5);
  std::pair<tensor, tensor> const text{whole_numbers({2, 8}, 1, 16), whole_numbers({2, 8}, 2, 16)};
  CHECK(check_walks(zoo::lstm(zoo::lstm_config::toy()), text, cross_entropy{}, 3) > 1);
}

TEST_CASE("MAGIS's pipelines plan training steps, rules and fission together, and every plan is verified") {
  auto apart = zoo::gpt_config::toy();
  apart.fused_attention = false;
  auto model = zoo::gpt(apart);
  initialise(model, 5);
  std::pair<tensor, tensor> const text{whole_numbers({8, 8}, 1, 16), whole_numbers({8, 8}, 2, 16)};
  auto const program = training_step(model, text, cross_entropy{}, descent);
  std::vector<moves_t> const pipelines{magis_default, magis_bounded, magis_in_turn, magis_fission,
                                       magis_without_fission};
  for (auto const& moves : pipelines) {
    for (double limit : {0.9, 0.7}) {
      if (testing::sanitized && limit > 0.8) continue;
      search_options search;
      search.memory_at_most = memory_limit::of_original(limit);
      search.iterations = 150;
      auto const found = optimize(program, moves, search);
      check_run(model, program, found.placed, text, cross_entropy{});
      CHECK(found.lower_bound_bytes <= found.placed.peak_bytes);
    }
  }
}
