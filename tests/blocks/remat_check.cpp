#include <neap/blocks/remat_check.hpp>

#include <neap/blocks/remat_branch_and_bound.hpp>

#include <doctest/doctest.h>

#include <string>

#include "remat_blocks.hpp"

using namespace neap;
using action = remat_step::action;

namespace {

/// a -> b -> c, and c reads a too; c is kept. Times 1, 2, 4; 10, 3 and 5 bytes; b's op needs 2 bytes more.
remat_problem three() {
  remat_problem p;
  p.values = {{10}, {3}, {5, true}};
  p.ops = {{.time = 1, .outputs = {0}},
           {.time = 2, .workspace_bytes = 2, .inputs = {0}, .outputs = {1}},
           {.time = 4, .inputs = {0, 1}, .outputs = {2}}};
  p.pause_after = 1;
  return p;
}
remat_answer good() {
  remat_answer a;
  a.steps = {{action::compute, 0}, {action::compute, 1}, {action::drop, 0}, {action::compute, 0},
             {action::compute, 2}, {action::drop, 0},    {action::drop, 1}};
  a.time = 8, a.peak_bytes = 18, a.saved_bytes = 3, a.status = remat_status::feasible, a.lower_bound = 7;
  return a;
}
bool refused(remat_answer const& a, std::string const& why, remat_problem const& p = three(),
             remat_limits l = {18, 3}) {
  auto const judged = verify(p, l, a);
  INFO(judged.message());
  CHECK(judged.message() == why);
  return !judged.ok();
}

}  // namespace

TEST_CASE("a right answer passes, each kind of mutant is refused with its place") {
  CHECK_MESSAGE(verify(three(), {18, 3}, good()).ok(), verify(three(), {18, 3}, good()).message());
  CHECK(in_phases(three(), good().steps));
  auto const with = [](auto change) {
    auto a = good();
    change(a);
    return a;
  };
  CHECK(refused(good(), "step 4: 18 bytes while op 2 runs; the limit is 17", three(), {17, 3}));
  CHECK(refused(good(), "3 bytes saved in the pause; the limit is 2", three(), {18, 2}));
  auto p = three();
  p.ops[0].again = false;
  CHECK(refused(good(), "step 3: op 0 runs again, and may not", p));
  CHECK(refused(with([](auto& a) { a.steps.erase(a.steps.begin()); }), "step 0: op 1 runs before op 0"));
  CHECK(refused(with([](auto& a) { a.steps.erase(a.steps.begin() + 3); }),
                "step 3: op 2 reads value 0, which is not alive"));
  CHECK(refused(with([](auto& a) { a.steps.resize(4); }), "op 2 never runs"));
  CHECK(refused(with([](auto& a) {
                  a.steps.insert(a.steps.begin() + 3, {action::drop, 0});
                }),
                "step 3: value 0 is dropped, but is not alive"));
  CHECK(refused(with([](auto& a) { a.steps.push_back({action::drop, 2}); }), "value 2 is kept, but gone at the end"));
  CHECK(refused(with([](auto& a) {
                  a.steps.push_back({action::drop, 7});
                }),
                "step 7: it drops a value that is not of this block"));
  CHECK(refused(with([](auto& a) {
                  a.steps.push_back({action::compute, 3});
                }),
                "step 7: it computes an op that is not of this block"));
  CHECK(refused(with([](auto& a) { a.peak_bytes = 15; }), "the answer has another peak than 18"));
  CHECK(refused(with([](auto& a) { a.saved_bytes = 2; }), "the answer has other saved bytes than 3"));
  CHECK(refused(with([](auto& a) { a.time = 7; }), "the answer has another time than 8.000000"));
  CHECK(refused(with([](auto& a) { a.lower_bound = 9; }), "the answer takes less time than its lower bound"));
  CHECK(refused(with([](auto& a) { a.status = remat_status::optimal; }),
                "the answer is called optimal, but takes more time than its lower bound"));
  CHECK(refused(with([](auto& a) { a.status = remat_status::infeasible; }), "an answer that is infeasible has steps"));
}

TEST_CASE("recomputations in descending order are right, but not of the model") {
  remat_problem p;
  p.values = {{1}, {1}, {1, true}};
  p.ops = {{.time = 1, .outputs = {0}}, {.time = 1, .outputs = {1}}, {.time = 1, .inputs = {0, 1}, .outputs = {2}}};
  std::vector<remat_step> steps{
      {action::compute, 0}, {action::compute, 1}, {action::compute, 1}, {action::compute, 0}, {action::compute, 2}};
  CHECK_FALSE(in_phases(p, steps));
  std::swap(steps[2], steps[3]);
  CHECK(in_phases(p, steps));
}

TEST_CASE("steps of random answers that are changed anywhere are refused, or right by their own count") {
  random_stream draw(9);
  int wrong = 0, tried = 0;
  for (int round = 0; round < 300; ++round) {
    auto const p = testing::random_block(draw, 8);
    remat_limits const limits{testing::peak_once(p) - draw.below(3)};
    auto const a = remat_branch_and_bound{}(p, limits);
    if (!has_steps(a) || a.steps.empty()) continue;
    REQUIRE(verify(p, limits, a).ok());
    for (int k = 0; k < 10; ++k, ++tried) {
      auto b = a;
      auto const s = draw.below(static_cast<std::uint32_t>(b.steps.size()));
      if (b.steps[s].what == action::compute) b.steps.erase(b.steps.begin() + s);
      else b.steps[s].what = action::compute;
      // A computation less or more changes the time, unless it takes none.
      if (!verify(p, limits, b).ok()) ++wrong;
    }
  }
  CHECK(tried > 1000);
  CHECK(wrong * 10 > tried * 8);
}

TEST_CASE("what a problem must be") {
  CHECK(check(three()).ok());
  auto const why = [](auto change) {
    auto p = three();
    change(p);
    return check(p).message();
  };
  CHECK(why([](auto& p) { p.values[1].bytes = -1; }) == "value 1: its bytes are negative");
  CHECK(why([](auto& p) { p.values[1].bytes = std::int64_t{1} << 62, p.values[0].bytes = std::int64_t{1} << 62; }) ==
        "value 1: bytes of all values do not fit into 63 bits");
  CHECK(why([](auto& p) { p.ops[1].time = -1; }) == "op 1: its time is negative or not a number");
  CHECK(why([](auto& p) { p.ops[1].time = 0.0 / 0.0; }) == "op 1: its time is negative or not a number");
  CHECK(why([](auto& p) { p.ops[1].time = 1e308, p.ops[2].time = 1e308; }) == "op 2: times add up to no finite number");
  CHECK(why([](auto& p) { p.ops[1].workspace_bytes = -1; }) == "op 1: its workspace is negative");
  CHECK(why([](auto& p) { p.ops[1].outputs = {9}; }) == "op 1: an output is no value of this block");
  CHECK(why([](auto& p) { p.ops[1].outputs = {0}; }) == "value 0: two ops make it");
  CHECK(why([](auto& p) { p.ops[1].outputs = {1, 1}; }) == "op 1: it makes a value twice");
  CHECK(why([](auto& p) { p.ops[0].inputs = {1}; }) == "value 1: it is read before it is made");
  CHECK(why([](auto& p) { p.ops[2].inputs = {0, 0}; }) == "op 2: it reads a value twice");
  CHECK(why([](auto& p) { p.ops[2].inputs = {2}; }) == "op 2: it reads what it makes");
  CHECK(why([](auto& p) { p.pause_after = 3; }) == "the pause is after an op that is not there");
}
