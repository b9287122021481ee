// Functions of rows with programs before and after (op::fused): what the operators give one after another.
#pragma once

#include <neap/ir/standard_operators.hpp>

#include "fused_rows_programs.hpp"
#include "operator_check.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap::testing {

/// What the operators give one after another.
inline std::vector<array> by_operators(op::fused const& op, std::vector<array> const& in) {
  auto const run = [](auto const& one, std::vector<array> of) {
    return detail::run(view_of(one), host_kernel(facets_of<std::decay_t<decltype(one)>>), std::move(of));
  };
  auto const first = static_cast<std::ptrdiff_t>(op.prologue_inputs());
  auto const others = first + op.others(static_cast<int>(in.size()));
  auto const x = !op.prologue.empty() ? run(op::fused{op.prologue}, {in.begin(), in.begin() + first})[0] : in[0];
  std::vector<array> operands{x};
  operands.insert(operands.end(), in.begin() + first, in.begin() + others);
  std::vector<array> made;
  op.with_anchor([&](auto const& f) { made = run(f, operands); });
  std::vector<array> rest{made[0]};
  rest.insert(rest.end(), in.begin() + others, in.end());
  std::vector<array> out{!op.epilogue.empty() ? run(op::fused{op.epilogue}, rest)[0] : made[0]};
  if (op.keeps_x) out.push_back(x);
  if (op.keeps_y) out.push_back(made[0]);
  out.insert(out.end(), made.begin() + 1, made.end());
  return out;
}

}  // namespace neap::testing
