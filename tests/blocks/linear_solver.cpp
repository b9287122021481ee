#include <neap/blocks/linear_solver.hpp>

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("values that break a bound, a row, wholeness or their own cost are refused") {
  linear_problem p;
  auto const x = p.add_column(0, 3, 2, true), y = p.add_column(-1, 1, 1, false);
  p.add_row(1, {{x, 1}, {y, 2}}, 4);
  REQUIRE(p.rows() == 1);
  auto const why = [&](double a, double b, double cost) {
    linear_answer answer;
    answer.values = {a, b};
    answer.cost = cost;
    answer.status = linear_status::feasible;
    return verify(p, answer).message();
  };
  CHECK(why(2, 0.5, 4.5) == "");
  CHECK(why(4, 0, 8) == "column 0: out of its bounds");
  CHECK(why(1.5, 0.5, 3.5) == "column 0: not whole");
  CHECK(why(0, 0, 0) == "row 0: out of its bounds");
  CHECK(why(3, 1, 7) == "row 0: out of its bounds");
  CHECK(why(2, 0.5, 4) == "it costs something else");
  CHECK(verify(p, {}).ok());  // no values: nothing to check
}
