# Writes a copy of the kernel of reductions of programs (include/neap/cuda/kernels/fused_reduction.cuh), in the namespace
# planted, that has the fault that its program names (tests/support/faulty_program.hpp): what
# tests/cuda/planted_reduction.cpp must catch. A text that is not found is an error: change the fault with the kernel.
#   cmake -DKERNELS=<folder of the headers> -DOUTPUT=<header> -P planted_reduction.cmake
file(READ ${KERNELS}/fused_reduction.cuh text)
string(REGEX REPLACE "#(pragma once|include)[^\n]*\n" "" text "${text}")
string(FIND "${text}" "namespace neap { inline namespace v0 { namespace detail {" end REVERSE)
string(SUBSTRING "${text}" 0 ${end} text)
string(REPLACE "namespace neap { inline namespace v0 { namespace detail {" "namespace neap { inline namespace v0 { namespace detail::planted {" text "${text}")

# FAULT in `to` is whether the program names the fault.
function(plant name from to)
  string(FIND "${text}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "fused_reduction.cuh has no '${from}': ${name} cannot be planted")
  endif()
  string(REPLACE FAULT "this->program.has(neap::testing::reduction_fault::${name})" to "${to}")
  string(REPLACE "${from}" "${to}" text "${text}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

plant(tail_not_clamped [=[return self->add(line, k, end < last ? end : last);]=]
      [=[return self->add(line, k, self->program.has(neap::testing::reduction_fault::tail_not_clamped) || end < last ? end : last);]=])
plant(term_too_many [=[last = terms * (split + 1) / sums.splits;]=] [=[last = terms * (split + 1) / sums.splits + FAULT;]=])
plant(first_term_left_out [=[first = terms * split / sums.splits,]=] [=[first = terms * split / sums.splits + FAULT,]=])
plant(last_pack_left_out [=[packs = (last - first + length - 1) / length;]=] [=[packs = (last - first + (FAULT ? 0 : length - 1)) / length;]=])
plant(column_too_many [=[device_tile ? width - column : device_tile;]=] [=[device_tile ? width - column + FAULT : device_tile;]=])
plant(column_left_out [=[line % tiles * device_tile;]=] [=[line % tiles * (device_tile + FAULT);]=])
plant(tail_counted [=[if (j < n) sum.add]=] [=[if (FAULT || j < n) sum.add]=])
plant(tail_of_x_written [=[if (j < n) store_element(]=] [=[if (FAULT || j < n) store_element(]=])
plant(slot_of_neighbour [=[sum.add(y.at[j])]=] [=[sum.add(FAULT && j + 1 < length ? y.at[j + 1] : y.at[j])]=])
plant(packs_anywhere [=[!Across && by_packs && n == length]=] [=[!Across && (FAULT || by_packs) && n == length]=])
plant(packs_at_any_term [=[k % length == 0;]=] [=[(FAULT || k % length == 0);]=])
plant(pack_off_by_one [=[first + i * length,]=]
      [=[first + (i + self->program.has(neap::testing::reduction_fault::pack_off_by_one)) * length,]=])
plant(splits_meet [=[self->sums.put(line, split, sum);]=]
      [=[self->sums.put(line, self->program.has(neap::testing::reduction_fault::splits_meet) ? 0 : split, sum);]=])
# The next line's term is read back without a barrier.
plant(x_of_neighbour [=[      if (keeps_x) store(y, output, k, n);]=] [=[      if (keeps_x) store(y, output, k, n);
      if (FAULT && keeps_x && output + 1 < sums.outputs) y.at[0] = load_element<C>(x.place(x.result, output + 1, k), element);]=])

file(WRITE ${OUTPUT} "// Made by planted_reduction.cmake.\n${text}")
