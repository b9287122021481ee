#include <neap/plan/chain_profile.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;

TEST_CASE("chain profile: each fault is one line that says where") {
  chain_profile const right{{{1, 1, 1, {{1, 1, 1, 1, 1}}}, {0, 0, 0, {{}, {1, 2, 3, 4, 5}}}}, 3};
  CHECK(check(right).ok());
  CHECK(right.input(0) == 1);
  CHECK(right.input(2) == 3);
  CHECK(least_time(right) == 2);
  using fault = std::pair<std::function<void(chain_profile&)>, std::string>;
  for (auto const& [spoil, line] :
       std::vector<fault>{{[](auto& c) { c.blocks.clear(); }, "the chain has no blocks"},
                          {[](auto& c) { c.output = -1; }, "the output's size must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[1].input = max_slots + 1; },
                           "block 1: the input's size must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[0].pass_temporary = INT64_MIN; },
                           "block 0: temporary memory of the plain forward must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[0].pass_time = HUGE_VAL; },
                           "block 0: the time of the plain forward must be from 0 to 1e30"},
                          {[](auto& c) { c.blocks[0].options.clear(); }, "block 0: has no options"},
                          {[](auto& c) { c.blocks[1].options[1].saved = -5; },
                           "block 1: option 1: what is saved must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[1].options[0].forward_temporary = INT64_MAX; },
                           "block 1: option 0: temporary memory must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[1].options[0].backward_temporary = -1; },
                           "block 1: option 0: temporary memory must be from 0 to 2^40 slots"},
                          {[](auto& c) { c.blocks[1].options[1].forward_time = std::nan(""); },
                           "block 1: option 1: times must be from 0 to 1e30"},
                          {[](auto& c) { c.blocks[1].options[1].backward_time = -1e-9; },
                           "block 1: option 1: times must be from 0 to 1e30"}}) {
    auto wrong = right;
    spoil(wrong);
    CHECK(check(wrong).message() == line);
  }
}

TEST_CASE("chain profile: larger slots round every size up, and change no time") {
  chain_profile const chain{{{10, 1, 0, {{1, 2, 21, 30, 1}}}}, 29};
  CHECK(in_slots(chain, 10) == chain_profile{{{1, 1, 0, {{1, 2, 3, 3, 1}}}}, 3});
  CHECK(in_slots(chain, 1) == chain);
  CHECK(in_slots({{{10, 1, 0, {{}}, 11}}, 0}, 10) == chain_profile{{{1, 1, 0, {{}}, 2}}, 0});
  CHECK(in_slots({{{max_slots, 0, 0, {{}}}}, 1}, INT64_MAX) == chain_profile{{{1, 0, 0, {{}}}}, 1});
}
