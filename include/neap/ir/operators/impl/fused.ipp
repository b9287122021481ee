// The bodies of <neap/ir/operators/fused.hpp>.
#pragma once

#include <neap/ir/operators/fused.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::op {

NEAP_FUNC std::string fused::fault(std::size_t arity) const {
  using neap::detail::text_of;
  if (arity < 1 || arity > most_inputs || static_cast<std::size_t>(inputs) != arity)
    return text_of({"its program is of ", inputs, " inputs, 1 to ", most_inputs, " are possible, was given ", arity});
  if (step_count() == 0 || (more_steps.rank() > 0 && steps.rank() < max_rank))
    return "its program has no steps, or a gap";
  std::uint32_t used = 0;
  int constant = 0;
  for (int k = 0; k < step_count(); ++k) {
    auto const s = step(k);
    auto const* f = detail::step_at(s.row);
    if (!f || packed(k) >> 48 != 0) return text_of({"step ", k, " is no elementwise operator"});
    for (int i = 0; i < fused_step::most_operands; ++i) {
      auto const x = s.operands[static_cast<std::size_t>(i)];
      if (i < f->arguments ? x >= inputs + k : x != 0)
        return text_of({"step ", k, " (", f->name, ") reads what is not there: operand ", x});
      if (i < f->arguments) used |= 1u << x;
    }
    if (s.row == neap::detail::standard_row<cast>) continue;
    for (auto const& a : f->attributes) {
      if (constant == constants.rank()) return text_of({"step ", k, " (", f->name, ") lacks a constant"});
      auto const x = constants[constant++];
      if (a.form == neap::detail::member_form::boolean && x != 0 && x != 1)
        return text_of({"step ", k, " (", f->name, "): ", a.name, " is neither 0 nor 1"});
    }
  }
  if (constant != constants.rank())
    return text_of({"its program has ", constants.rank(), " constants, its steps take ", constant});
  for (int x = 0; x + 1 < static_cast<int>(inputs) + step_count(); ++x)
    if ((used >> x & 1) == 0)
      return text_of({x < inputs ? "input " : "step ", x < inputs ? x : x - static_cast<int>(inputs), " is not read"});
  std::array<int, most_steps> of_step{};
  if (auto const needed = rooms(of_step); needed > most_rooms)
    return text_of({needed, " results wait at once, at most ", most_rooms, " may"});
  return {};
}

NEAP_FUNC int fused::rooms(std::array<int, most_steps>& of_step) const {
  int last_read[most_steps]{}, most = 0;
  for (int k = 0; k < step_count(); ++k)
    for (int x : step(k).operands)
      if (x >= inputs) last_read[x - inputs] = k;
  for (int k = 0; k + 1 < step_count(); ++k) {
    std::uint32_t taken = 0;  // by results that are read after this step
    for (int x = 0; x < k; ++x)
      if (last_read[x] > k) taken |= 1u << of_step[static_cast<std::size_t>(x)];
    int const room = std::countr_one(taken);
    of_step[static_cast<std::size_t>(k)] = room;
    most = std::max(most, room + 1);
  }
  return most;
}

}  // namespace neap::inline v0::op
