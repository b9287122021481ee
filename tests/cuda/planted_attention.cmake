# Writes copies of attention's kernels (include/neap/cuda/kernels/attention_{forward,backward}.cuh), each in a namespace of
# its own with one fault planted in it: what tests/cuda/planted_attention.cpp must catch. A text that is not found is an
# error: change the fault with the kernel.
#   cmake -DKERNELS=<folder of the headers> -DOUTPUT=<header> -P planted_attention.cmake
foreach(header forward backward)
  file(READ ${KERNELS}/attention_${header}.cuh text)
  string(REGEX REPLACE "#(pragma once|include)[^\n]*\n" "" text_${header} "${text}")
endforeach()
set(copies "")
set(instances "")

function(plant header name from to)
  string(FIND "${text_${header}}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "attention_${header}.cuh has no '${from}': ${name} cannot be planted")
  endif()
  string(REPLACE "${from}" "${to}" text "${text_${header}}")
  string(REPLACE "namespace neap { inline namespace v0 { namespace detail {" "namespace neap { inline namespace v0 { namespace detail::planted::${name} {" text
                 "${text}")
  set(copies "${copies}${text}" PARENT_SCOPE)
  set(of neap::detail::planted::${name}::attention_${header}<neap::bf16,\ 32)
  if(header STREQUAL forward)
    set(all "INSTANCE(${of}>)\n")
  else()
    set(all "INSTANCE(${of}, true>)\nINSTANCE(${of}, false>)\n")
  endif()
  set(instances "${instances}${all}" PARENT_SCOPE)
endfunction()

plant(forward no_barrier_before_keys [=[__syncthreads();  // the keys have come]=] [=[// the keys have come]=])
plant(forward no_barrier_before_values [=[__syncthreads();  // the values have come]=] [=[// the values have come]=])
plant(forward keys_not_awaited [=[wait_copies<0>();
      __syncthreads();  // the keys]=] [=[wait_copies<1>();
      __syncthreads();  // the keys]=])
plant(forward values_not_awaited [=[wait_copies<0>();
      __syncthreads();  // the values]=] [=[wait_copies<1>();
      __syncthreads();  // the values]=])
plant(forward diagonal_left_out [=[static_cast<int>(first - key) + 1 : others]=] [=[static_cast<int>(first - key) : others]=])
plant(forward diagonal_too_far [=[static_cast<int>(first - key) + 1 : others]=] [=[static_cast<int>(first - key) + 2 : others]=])
plant(forward key_too_many [=[static_cast<int>(min(p.keys - key, std::int64_t{others}))]=]
      [=[static_cast<int>(min(p.keys - key + 1, std::int64_t{others}))]=])
plant(forward tail_of_keys_not_masked [=[keys_left < others || before]=] [=[before]=])
plant(forward last_tile_left_out [=[(seen + others - 1) / others]=] [=[max(std::int64_t{1}, seen / others)]=])
plant(forward query_too_many [=[if (query >= p.queries) continue;]=] [=[if (query > p.queries) continue;]=])
plant(forward sum_not_corrected [=[sum[m][half] * correction + part]=] [=[sum[m][half] + part]=])
plant(forward result_not_corrected [=[out[m][n][2 * half + 1] *= correction;]=] [=[]=])
plant(forward copies_of_keys_too_early [=[      wait_copies<0>();
      __syncthreads();  // the values have come, and the keys are used
      if (i + 1 < count) load(k_tile, k, i + 1, p.depth);
      commit_copies();]=] [=[      if (i + 1 < count) load(k_tile, k, i + 1, p.depth);
      commit_copies();
      wait_copies<0>();
      __syncthreads();]=])
plant(forward head_of_keys_of_query [=[kh = h / (p.heads / p.key_heads)]=] [=[kh = min(h, p.key_heads - 1)]=])

plant(backward no_barrier [=[__syncthreads();  // this stage has come]=] [=[// this stage has come]=])
plant(backward stage_not_awaited [=[wait_copies<0>();
      __syncthreads();  // this stage]=] [=[wait_copies<1>();
      __syncthreads();  // this stage]=])
plant(backward stages_not_exchanged [=[stage = 1 - stage;]=] [=[]=])
plant(backward loaded_over_stage [=[load(loaded, 1 - stage);]=] [=[load(loaded, stage);]=])
plant(backward diagonal_left_out [=[(OfKeys ? r <= c : c <= r)]=] [=[(OfKeys ? r < c : c < r)]=])
plant(backward mask_of_own_warp_missing [=[left < others || (p.causal]=] [=[left < others || (p.causal && warp > 0]=])
plant(backward tail_not_masked [=[c < left && (!p.causal]=] [=[(!p.causal]=])
plant(backward first_tile_left_out [=[static_cast<int>(own / others) : 0]=] [=[static_cast<int>(own / others) + 1 : 0]=])
plant(backward tail_of_own_written [=[if (mine >= (OfKeys ? p.keys : p.queries)) continue;]=]
      [=[if (mine > (OfKeys ? p.keys : p.queries)) continue;]=])
plant(backward last_head_left_out [=[OfKeys ? static_cast<int>(group) : 1]=] [=[OfKeys ? static_cast<int>(max(group - 1, std::int64_t{1})) : 1]=])
plant(backward delta_left_out [=[(d - of.delta)]=] [=[d]=])
plant(backward numbers_of_neighbour [=[8 * c))
                         : "memory");]=] [=[8 * (c ^ 1)))
                         : "memory");]=])

file(WRITE ${OUTPUT} "// Made by planted_attention.cmake.\n${copies}\n#define NEAP_PLANTED_INSTANCES \\\n")
string(REPLACE "\n" " \\\n" instances "${instances}")
file(APPEND ${OUTPUT} "${instances}\n")
