// The operators that can be steps of fused programs, for programs that draw some of them.
#pragma once

#include <neap/ir/operators/fused.hpp>
#include <neap/ir/standard_operators.hpp>

#include <cstddef>
#include <vector>

namespace neap::testing {

/// In the order of op::detail::step_list.
inline std::vector<op::detail::step_operator const*> const& fused_steps() {
  static auto const all = [] {
    std::vector<op::detail::step_operator const*> steps(op::detail::step_list::size);
    for (std::size_t row = 0; row < op::standard_list::size; ++row)
      if (int const place = op::detail::step_place(static_cast<int>(row)); place >= 0)
        steps[static_cast<std::size_t>(place)] = op::detail::step_at(static_cast<int>(row));
    return steps;
  }();
  return all;
}

}  // namespace neap::testing
