#include <neap/blocks/checkmate_milp.hpp>

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_solver.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "../support/message.hpp"
#include "remat_blocks.hpp"

using namespace neap;

namespace {

/// Tries all values of the whole columns, each 0 or 1; the others take the least value that the rows ask for, which is
/// right where they stand in rows "at least" with factor 1 and else only add to what is limited.
struct try_everything {
  linear_answer operator()(linear_problem const& p) const {
    linear_answer best;
    best.status = linear_status::infeasible;
    std::vector<double> x = p.lower;
    search(p, 0, x, best);
    best.lower_bound = best.cost;
    return best;
  }
  static void search(linear_problem const& p, std::size_t at, std::vector<double>& x, linear_answer& best) {
    while (at < p.columns() && (!p.integral[at] || p.lower[at] == p.upper[at])) ++at;
    if (at == p.columns()) return finish(p, x, best);
    for (double value : {0.0, 1.0}) {
      x[at] = value;
      search(p, at + 1, x, best);
    }
  }
  static void finish(linear_problem const& p, std::vector<double> x, linear_answer& best) {
    for (bool raised = true; raised;) {
      raised = false;
      for (std::size_t r = 0; r < p.rows(); ++r) {
        double sum = 0;
        std::uint32_t least = 0xffffffffu;
        for (auto k = p.row_begin[r]; k < p.row_begin[r + 1]; ++k) {
          sum += p.factor[k] * x[p.column[k]];
          if (!p.integral[p.column[k]] && p.factor[k] == 1) least = std::min(least, k);
        }
        if (sum >= p.row_lower[r] - 1e-9) continue;
        if (least == 0xffffffffu) return;
        x[p.column[least]] += p.row_lower[r] - sum;
        raised = true;
      }
    }
    linear_answer a;
    a.values = x;
    a.status = linear_status::optimal;
    for (std::size_t i = 0; i < p.columns(); ++i) a.cost += p.cost[i] * x[i];
    if (verify(p, a).ok() && (best.values.empty() || a.cost < best.cost)) best = a;
  }
};
static_assert(linear_solver<try_everything> && remat_solver<checkmate<try_everything>>);
static_assert(!linear_solver<remat_branch_and_bound>);

std::size_t free_columns(linear_problem const& p) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < p.columns(); ++i) n += p.integral[i] && p.lower[i] < p.upper[i];
  return n;
}

}  // namespace

TEST_CASE("the least cost of the program is the least time of the block") {
  random_stream draw(21);
  int solved = 0, dearer = 0, impossible = 0;
  for (int round = 0; round < 4000; ++round) {
    auto const p = testing::random_block(draw, 4);
    remat_limits limits{testing::drawn_peak(draw, p)};
    if (p.pause_after >= 0 && draw.below(2) == 0) limits.saved_bytes = draw.below(20);
    if (p.values.size() > 8 || free_columns(make_checkmate_program(p, limits).program) > 10) continue;
    double const least = testing::least_time(p, limits);
    auto const a = checkmate<try_everything>{}(p, limits);
    CAPTURE(round);
    auto const right = verify(p, limits, a);
    CHECK_MESSAGE(right.ok(), right.message());
    if (least < std::numeric_limits<double>::infinity()) {
      CHECK(a.status == remat_status::optimal);
      CHECK(a.time == doctest::Approx(least));
      ++solved;
      dearer += a.time > time_once(p) + 1e-9;
    } else {
      CHECK(a.status == remat_status::infeasible);
      ++impossible;
    }
  }
  CHECK(solved > 300);
  CHECK(dearer > 10);
  CHECK(impossible > 100);
  MESSAGE(solved, " solved, ", dearer, " with recomputation, ", impossible, " impossible");
}

TEST_CASE("what solves no linear program is told") {
  auto const failing = [](linear_problem const&) {
    linear_answer a;
    a.status = linear_status::failed;
    a.why = "out of order";
    return a;
  };
  auto const a = checkmate<decltype(failing)>{failing}(testing::skip_chain(3, 0, 1), {});
  CHECK(a.status == remat_status::budget_spent);
  CHECK(a.why == "out of order");
}

TEST_CASE("a linear solver whose answer is wrong is refused in one line") {
  remat_problem const p{.ops = {{.time = 1, .outputs = {0}}}, .values = {{.bytes = 1, .kept = true}}};
  auto const told = [&](auto const& change) {
    auto const lies = [&](linear_problem const& q) {
      auto a = try_everything{}(q);
      change(a);
      return a;
    };
    return testing::message_of([&] { (void)checkmate<decltype(lies)>{lies}(p, {}); });
  };
  std::string const who = "checkmate: the linear solver gave a wrong answer: ";
  CHECK(told([](linear_answer&) {}) == "no error");
  CHECK(told([](linear_answer& a) { a.values.clear(); }) == who + "the answer has another number of columns");
  CHECK(told([](linear_answer& a) { a.values[0] = -7; }).starts_with(who + "column 0: "));
  CHECK(told([](linear_answer& a) { a.cost += 1; }).starts_with(who));
}
