// Axes as arguments: one number, or several in braces.
#pragma once

#include <neap/core/tensor_type.hpp>

#include <concepts>
#include <cstdint>

namespace neap { inline namespace v0 {

/// sum(x, 1), sum(x, {1, 2}), sum(x, -1): negative axes count from the end. A truth value is no axis.
class axis_list : public extents {
 public:
  using extents::extents;
  constexpr axis_list() = default;
  constexpr axis_list(extents const& axes) : extents(axes) {}
  template <std::integral I>
  constexpr axis_list(I axis) : extents{static_cast<std::int64_t>(axis)} {
    static_assert(!std::same_as<I, bool>, "neap: axes come before keepdim: sum(x, 1, true), or sum(x, {}, true)");
  }
};

}}  // namespace neap::v0
