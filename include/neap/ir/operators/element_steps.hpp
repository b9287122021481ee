// The operators that can be steps of programs (ir/element_program.hpp), and what these know of them.
#pragma once

#include <neap/ir/operator.hpp>
#include <neap/ir/operators/binary.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace neap { inline namespace v0 {

namespace detail {
/// What programs know of an operator that can be a step. (Its facets would bring its kernel along.)
struct step_operator {
  std::string_view name;
  std::uint32_t code = 0;  // of the name: files and digests have it, so that rows may be added and moved
  int row = -1, arguments = 0;
  std::uint32_t size = 0;  // bytes of its attributes
  double flops = 0;
  void (*construct)(void*) = nullptr;
  void (*infer)(void const*, shape_context&) = nullptr;
  std::span<attribute_field const> attributes;
};
}  // namespace detail

namespace op::detail {

using neap::detail::max_step_bytes, neap::detail::step_at, neap::detail::step_operator;

using op::step_list;

/// The place in step_list of the standard operator in this row; -1: it can be no step.
int step_place(int row);

}  // namespace op::detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/element_steps.ipp>
#endif
