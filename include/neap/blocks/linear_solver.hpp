// Linear programs with integers as plain data, and the concept of what solves them. neap needs no such solver; where one
// is installed it joins by this door (neap/blocks/highs.hpp), and no type of it is seen elsewhere.
#pragma once

#include <neap/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Minimise cost * x where lower <= x <= upper and row_lower <= A x <= row_upper; x is whole where `integral` says so.
/// A lies in sparse rows: row r has entries [row_begin[r], row_begin[r + 1]).
struct linear_problem {
  static constexpr double unbounded = std::numeric_limits<double>::infinity();

  std::vector<double> lower, upper, cost;  ///< a column each
  std::vector<char> integral;
  std::vector<double> row_lower, row_upper;
  std::vector<std::uint32_t> row_begin{0};
  std::vector<std::uint32_t> column;  ///< of each entry
  std::vector<double> factor;

  std::size_t columns() const { return lower.size(); }
  std::size_t rows() const { return row_lower.size(); }

  std::uint32_t add_column(double from, double to, double price, bool whole) {
    lower.push_back(from), upper.push_back(to), cost.push_back(price), integral.push_back(whole);
    return static_cast<std::uint32_t>(columns() - 1);
  }
  /// One more entry of the row that end_row() closes. Each column at most once a row.
  void add_entry(std::uint32_t at, double by) { column.push_back(at), factor.push_back(by); }
  void end_row(double from, double to) {
    row_lower.push_back(from), row_upper.push_back(to);
    row_begin.push_back(static_cast<std::uint32_t>(column.size()));
  }
  void add_row(double from, std::initializer_list<std::pair<std::uint32_t, double>> entries, double to) {
    for (auto const& [at, by] : entries) add_entry(at, by);
    end_row(from, to);
  }
};

enum class linear_status : std::uint8_t {
  optimal,       ///< values, and nothing is cheaper
  feasible,      ///< values; whether something is cheaper is not known
  infeasible,    ///< proved
  budget_spent,  ///< nothing found, nothing proved
  failed,        ///< the solver itself failed; `why` says how
};

struct linear_answer {
  std::vector<double> values{};  ///< of the columns; empty unless optimal or feasible
  double cost = 0;
  double lower_bound = -linear_problem::unbounded;  ///< proved
  linear_status status = linear_status::budget_spent;
  std::string why{};
};

/// A function object from a linear_problem to an answer.
/// Promise: values pass verify(problem, answer); what it calls optimal or infeasible is so, up to its tolerance.
template <class S>
concept linear_solver = requires(S const& solver, linear_problem const& problem) {
  { solver(problem) } -> std::same_as<linear_answer>;
};

/// Whether the values keep bounds, rows and wholeness within `tolerance`, and cost what the answer says.
inline status verify(linear_problem const& p, linear_answer const& a, double tolerance = 1e-5) {
  if (a.status != linear_status::optimal && a.status != linear_status::feasible) return {};
  if (a.values.size() != p.columns()) return failure{"the answer has another number of columns"};
  double cost = 0;
  for (std::size_t i = 0; i < p.columns(); ++i) {
    double const x = a.values[i];
    if (!(x >= p.lower[i] - tolerance && x <= p.upper[i] + tolerance))
      return failure{"column " + std::to_string(i) + ": out of its bounds"};
    if (p.integral[i] && std::abs(x - std::round(x)) > tolerance)
      return failure{"column " + std::to_string(i) + ": not whole"};
    cost += p.cost[i] * x;
  }
  for (std::size_t r = 0; r < p.rows(); ++r) {
    double sum = 0, size = 1;
    for (auto k = p.row_begin[r]; k < p.row_begin[r + 1]; ++k) {
      sum += p.factor[k] * a.values[p.column[k]];
      size = std::max(size, std::abs(p.factor[k]));
    }
    if (!(sum >= p.row_lower[r] - tolerance * size && sum <= p.row_upper[r] + tolerance * size))
      return failure{"row " + std::to_string(r) + ": out of its bounds"};
  }
  if (std::abs(cost - a.cost) > tolerance * std::max(1.0, std::abs(cost))) return failure{"it costs something else"};
  return {};
}

}}  // namespace neap::v0
