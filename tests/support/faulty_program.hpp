// A program for the kernel of reductions of programs, in place of the interpreter of programs, that names one of the faults
// that tests/cuda/planted_reduction.cmake plants in a copy of the kernel.
#pragma once

#include <neap/cuda/kernels/fused_reduction.cuh>

namespace neap::testing {

enum class reduction_fault {
  none,
  tail_not_clamped,
  term_too_many,
  first_term_left_out,
  last_pack_left_out,
  column_too_many,
  column_left_out,
  tail_counted,
  tail_of_x_written,
  slot_of_neighbour,
  packs_anywhere,
  packs_at_any_term,
  pack_off_by_one,
  splits_meet,
  x_of_neighbour,
  end
};

/// Squares.
struct faulty_program {
  reduction_fault planted;

  struct values {
    float at[neap::detail::computed_pack<float>::length];
  };
  NEAP_HD bool has(reduction_fault f) const { return planted == f; }
  template <class Load>
  NEAP_HD void interpret(values& y, Load const& load) const {
    load(y, 0);
    for (float& a : y.at) a *= a;
  }
};

}  // namespace neap::testing
