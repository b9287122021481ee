// HiGHS as a linear_solver, by its C interface. Not in neap/neap.hpp: a program that includes this links to neap::highs,
// which CMake makes where HiGHS is installed (an own build, Debian's package, or PyPI's highsbox).
#pragma once

#include <neap/blocks/linear_solver.hpp>

#include <interfaces/highs_c_api.h>

#include <limits>
#include <vector>

namespace neap { inline namespace v0 {

/// One thread, no output, deterministic but for the clock.
struct highs {
  double seconds = std::numeric_limits<double>::infinity();

  linear_answer operator()(linear_problem const& p) const {
    struct handle {
      void* it = Highs_create();
      handle() = default;
      handle(handle const&) = delete;
      handle& operator=(handle const&) = delete;
      ~handle() { Highs_destroy(it); }
    } const solver;
    linear_answer out;
    Highs_setBoolOptionValue(solver.it, "output_flag", 0);
    Highs_setIntOptionValue(solver.it, "threads", 1);
    Highs_setStringOptionValue(solver.it, "parallel", "off");
    Highs_setDoubleOptionValue(solver.it, "mip_rel_gap", 0);
    if (seconds < std::numeric_limits<double>::infinity()) Highs_setDoubleOptionValue(solver.it, "time_limit", seconds);

    double const far = Highs_getInfinity(solver.it);
    auto const bounded = [&](std::vector<double> values) {
      for (double& x : values) x = x >= linear_problem::unbounded ? far : x <= -linear_problem::unbounded ? -far : x;
      return values;
    };
    auto const lower = bounded(p.lower), upper = bounded(p.upper);
    auto const row_lower = bounded(p.row_lower), row_upper = bounded(p.row_upper);
    std::vector<HighsInt> const begin(p.row_begin.begin(), p.row_begin.end()), index(p.column.begin(), p.column.end()),
        integral(p.integral.begin(), p.integral.end());
    bool whole = false;
    for (auto i : integral) whole = whole || i != 0;
    auto const count = [](std::size_t n) { return static_cast<HighsInt>(n); };
    auto const passed =
        Highs_passModel(solver.it, count(p.columns()), count(p.rows()), count(p.factor.size()), 0,
                        kHighsMatrixFormatRowwise, kHighsHessianFormatTriangular, kHighsObjSenseMinimize, 0,
                        p.cost.data(), lower.data(), upper.data(), row_lower.data(), row_upper.data(), begin.data(),
                        index.data(), p.factor.data(), nullptr, nullptr, nullptr, whole ? integral.data() : nullptr);
    if (passed == kHighsStatusError || Highs_run(solver.it) == kHighsStatusError) {
      out.status = linear_status::failed;
      out.why = "HiGHS could not solve the program";
      return out;
    }
    auto const status = Highs_getModelStatus(solver.it);
    if (status == kHighsModelStatusInfeasible) {
      out.status = linear_status::infeasible;
      return out;
    }
    bool const optimal = status == kHighsModelStatusOptimal || status == kHighsModelStatusModelEmpty;
    HighsInt found = 0;
    Highs_getIntInfoValue(solver.it, "primal_solution_status", &found);
    if (found == kHighsSolutionStatusFeasible || optimal) {
      out.status = optimal ? linear_status::optimal : linear_status::feasible;
      out.values.resize(p.columns());
      std::vector<double> duals(p.columns()), rows(p.rows()), row_duals(p.rows());
      Highs_getSolution(solver.it, out.values.data(), duals.data(), rows.data(), row_duals.data());
      out.cost = Highs_getObjectiveValue(solver.it);
      if (optimal) out.lower_bound = out.cost;
    }
    double bound = 0;
    if (whole && Highs_getDoubleInfoValue(solver.it, "mip_dual_bound", &bound) != kHighsStatusError && bound > -far)
      out.lower_bound = optimal ? std::min(bound, out.cost) : bound;
    return out;
  }
};

}}  // namespace neap::v0
