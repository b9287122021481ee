#include <neap/blocks/chain_simulator.hpp>

#include "../support/random_chain.hpp"

#include <neap/blocks/rotor.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace neap;

namespace {

/// Two blocks; the second one has an option that saves less and takes longer back.
chain_profile two_blocks() {
  return {{{10, 1, 3, {{1.5, 4, 50, 5, 7}}}, {20, 2, 0, {{2, 6, 30, 1, 2}, {2.5, 9, 8, 4, 11}}}}, 16};
}

std::string said(chain_profile const& chain, std::string const& text) {
  auto const sequence = parse_chain_sequence(text);
  REQUIRE_MESSAGE(sequence.ok(), sequence.message());
  return simulate(chain, *sequence).message();
}

}  // namespace

TEST_CASE("chain simulator: times and peaks worked out by hand") {
  auto const chain = two_blocks();
  auto const at = [&](std::string const& text) {
    auto const r = simulate(chain, *parse_chain_sequence(text));
    REQUIRE_MESSAGE(r.ok(), r.message());
    return *r;
  };
  // x0 10, saved 50 with x1 in it, saved 30: 90 before the loss, y2 16 after it.
  // B1: 90 + y2 16 + y1 20 + 2 = 128. B0: x0 10 + 50 + y1 20 + y0 10 + 7 = 97.
  CHECK(at("E0.0 E1.0 L B1 B0").time == 13.5);
  CHECK(at("E0.0 E1.0 L B1 B0").peak == 128);
  // C0: 10 + 20 + 3. E1.1: 30 + 8 + 4. L: 38 + 16. B1: 38 + 16 + 20 + 11 = 85. E0: 10 + y1 20 + 50 + 5 = 85.
  // B0: 10 + 20 + 50 + 10 + 7 = 97.
  CHECK(at("C0 E1.1 L B1 E0.0 B0").time == 18.0);
  CHECK(at("C0 E1.1 L B1 E0.0 B0").peak == 97);
  // x2 that was made without saving is there to the end: B0 with it.
  CHECK(at("C0 N1 L C0 E1.1 B1 E0.0 B0").peak == 97 + 16);
  CHECK(at("C0 N1 L C0 E1.1 B1 E0.0 B0").time == 1 + 2 + 1 + 2.5 + 9 + 5.5);
}

TEST_CASE("chain simulator: each thing that cannot be run is told with its step") {
  auto const chain = two_blocks();
  CHECK(said(chain, "E1.0") == "step 0 (E1.0): its input is not there");
  CHECK(said(chain, "N1") == "step 0 (N1): its input is not there");
  CHECK(said(chain, "C7") == "step 0 (C7): the chain has 2 blocks");
  CHECK(said(chain, "E4294967295.0") == "step 0 (E4294967295.0): the chain has 2 blocks");
  CHECK(said(chain, "E0.1") == "step 0 (E0.1): the block has no such option");
  CHECK(said(chain, "C0 C0") == "step 1 (C0): its output is there already");
  CHECK(said(chain, "C0 E0.0") == "step 1 (E0.0): its output is there already");
  CHECK(said(chain, "E0.0 E0.0") == "step 1 (E0.0): its output is there already");
  CHECK(said(chain, "E0.0 N1") == "step 1 (N1): its input is kept for the backward before it");
  CHECK(said(chain, "C0 N1 N1") == "step 2 (N1): its input is not there");
  CHECK(said(chain, "L") == "step 0 (L): the output of the last block is not there");
  CHECK(said(chain, "E0.0 E1.0 B1") == "step 2 (B1): the gradient of its output is not there");
  CHECK(said(chain, "E0.0 E1.0 L L") == "step 3 (L): the loss was run before");
  CHECK(said(chain, "E0.0 E1.0 L B0") == "step 3 (B0): the gradient of its output is not there");
  CHECK(said(chain, "E0.0 E1.0 L B1 B1") == "step 4 (B1): nothing was saved for it");
  CHECK(said(chain, "C0 E1.0 L B1 B0") == "step 4 (B0): nothing was saved for it");
  CHECK(said(chain, "E0.0 E1.0 L B1 B0 B0") == "step 5 (B0): its input is not there");
  CHECK(said(chain, "") == "the loss is never run");
  CHECK(said(chain, "E0.0 E1.0 L B1") == "the gradient of the chain's input is never made");
}

TEST_CASE("chain simulator: right sequences with one fault are refused") {
  random_stream draw(11);
  int faults = 0;
  for (int round = 0; round < 300; ++round) {
    auto const chain = neap::testing::random_chain(draw, {.blocks = 8, .options = 2, .wild = round % 2 == 0});
    auto const solved = rotor::solve(chain, 60);
    REQUIRE(solved.ok());
    auto const right = solved->sequence(static_cast<slots_t>(20 + draw.below(40)));
    if (right.empty()) continue;
    CAPTURE(to_string(right));
    REQUIRE(simulate(chain, right).ok());
    auto const refused = [&](chain_sequence const& wrong) {
      CAPTURE(to_string(wrong));
      CHECK(!simulate(chain, wrong).ok());
      ++faults;
    };
    for (std::size_t i = 0; i < right.size(); ++i) {
      auto wrong = right;
      wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
      refused(wrong);  // left out
      wrong = right;
      wrong.insert(wrong.begin() + static_cast<std::ptrdiff_t>(i), right[i]);
      refused(wrong);  // twice
      wrong = right;
      wrong.resize(i);
      refused(wrong);  // broken off
      if (right[i].step != chain_step::loss) {
        wrong = right;
        wrong[i].block = static_cast<std::uint32_t>(chain.size());
        refused(wrong);  // of no block
      }
      if (right[i].step == chain_step::save) {
        wrong = right;
        wrong[i].option = 17;
        refused(wrong);
        wrong[i] = {chain_step::pass_keep, right[i].block, 0};
        refused(wrong);  // saves nothing
      }
      if (i > 0 && right[i].step == chain_step::backward) {
        wrong = right;
        std::swap(wrong[i], wrong[i - 1]);
        refused(wrong);  // before what it needs
      }
    }
  }
  CHECK(faults > 5000);
}
