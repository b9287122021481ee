# nvcc compiles what .cu files reach, each header of the folders below but two and the umbrella, without warnings, to
# PTX of compute_90. (Kernels are compiled for compute_80 by the programs that have them, and by ptxas for sm_90.)
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR}/include
  ${SOURCE_DIR}/include/neap/backend/*.hpp ${SOURCE_DIR}/include/neap/backend/*.cuh
  ${SOURCE_DIR}/include/neap/cuda/*.hpp ${SOURCE_DIR}/include/neap/cuda/*.cuh)
list(APPEND headers neap/cuda.hpp)
# These reach the search: for .cpp files.
list(REMOVE_ITEM headers neap/cuda/compile.hpp neap/cuda/step_times.hpp)
if(NOT WITH_CUDNN)
  list(FILTER headers EXCLUDE REGEX "/cudnn[^/]*$")
endif()
set(text "")
foreach(header ${headers})
  string(APPEND text "#include <${header}>\n")
endforeach()
file(WRITE ${SCRATCH}/all.cu "${text}")
execute_process(COMMAND ${NVCC} -std=c++20 -gencode=arch=compute_90,code=compute_90 -I${SOURCE_DIR}/include -Werror=all-warnings
  -Xcompiler=-Wall,-Wextra,-Werror -c ${SCRATCH}/all.cu -o ${SCRATCH}/all.o
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
list(LENGTH headers count)
message("nvcc: ${count} headers\n${output}")
if(failed)
  message(FATAL_ERROR "nvcc does not compile what .cu files reach")
endif()
