// Lesson 13: which values of a block to compute again, under a limit in bytes. A solver is any function object from a
// block and limits to an answer; one's own joins the library's in comparisons and in combinators.
#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/blocks/remat_solver.hpp>
#include <neap/blocks/use_gap.hpp>

#include <chrono>
#include <cstdio>

// Textbook checkpointing: keep each n-th value of the forward half, compute the others again; the smallest n
// that fits. answer_of() turns the ops that run into steps, with drops as early as can be.
struct every_nth {
  neap::remat_answer operator()(neap::remat_problem const& p, neap::remat_limits const& limits) const {
    auto const maker = neap::producers(p);
    for (std::uint32_t n = 1; n <= p.ops.size(); ++n) {
      std::vector<std::uint32_t> sequence;
      std::vector<bool> alive(p.values.size());
      auto const run = [&](auto const& self, std::uint32_t op) -> void {
        for (auto v : p.ops[op].inputs)
          if (!alive[v]) self(self, maker[v]);
        for (auto v : p.ops[op].outputs) alive[v] = true;
        sequence.push_back(op);
      };
      for (std::uint32_t t = 0; t < p.ops.size(); ++t) {
        run(run, t);
        for (std::size_t v = 0; v < alive.size(); ++v)
          if (maker[v] < p.ops.size() / 2 && maker[v] % n != 0 && maker[v] != t) alive[v] = false;
      }
      auto answer = neap::answer_of(p, sequence);
      answer.lower_bound = neap::time_once(p);
      if (answer.peak_bytes <= limits.peak_bytes && answer.saved_bytes <= limits.saved_bytes) return answer;
    }
    return {};
  }
};
static_assert(neap::remat_solver<every_nth>);

// Twelve ops and their backward; every fourth makes a large value, every third takes long.
neap::remat_problem block() {
  std::uint32_t const length = 12;
  neap::remat_problem p;
  for (std::uint32_t i = 0; i < 2 * length; ++i) {
    neap::remat_op op{.time = i % 3 ? 1.0 : 4.0, .workspace_bytes = 16};
    std::uint32_t const forward = i < length ? i : 2 * length - 1 - i;  // a backward op reads what its forward op read
    if (i > 0) op.inputs.push_back(i - 1);
    if (forward > 0 && forward - 1 != i - 1) op.inputs.push_back(forward - 1);
    op.outputs = {i};
    p.ops.push_back(op);
    p.values.push_back({.bytes = forward % 4 ? 64 : 256, .kept = i + 1 == 2 * length});
  }
  p.pause_after = length - 1;
  return p;
}

int main() {
  auto const p = block();
  auto const whole = every_nth{}(p, {});
  neap::remat_limits const limits{.peak_bytes = whole.peak_bytes * 6 / 10};
  std::printf("at once: %.0f ms, %lld bytes; limit %lld bytes\n", whole.time, static_cast<long long>(whole.peak_bytes),
              static_cast<long long>(limits.peak_bytes));

  auto const measure = [&](char const* name, neap::remat_solver auto const& solver) {
    auto const begin = std::chrono::steady_clock::now();
    auto const a = solver(p, limits);
    double const us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%-18s %7.0f us: %3.0f ms, at least %3.0f (%s), %4lld bytes\n", name, us, a.time, a.lower_bound,
                name_of(a.status), static_cast<long long>(a.peak_bytes));
    return verify(p, limits, a).ok() ? a.time : -1;
  };
  double const own = measure("every nth", every_nth{});
  double const gaps = measure("use gaps", neap::use_gap{.budget = {.work = 3000}});
  double const best = measure("branch and bound", neap::remat_branch_and_bound{});
  double const both = measure("own, then improved", seed_then_improve(every_nth{}, neap::remat_branch_and_bound{}));
  return best > 0 && best == both && best <= own && best <= gaps ? 0 : 1;
}
