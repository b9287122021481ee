# nvcc compiles what .cu files reach, each header of the folders below but two and the umbrella, without warnings, for
# sm_80, sm_90 and PTX.
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
set(targets -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90])
execute_process(COMMAND ${NVCC} -std=c++20 ${targets} -I${SOURCE_DIR}/include -Werror=all-warnings
  -Xcompiler=-Wall,-Wextra,-Werror -c ${SCRATCH}/all.cu -o ${SCRATCH}/all.o
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
list(LENGTH headers count)
message("nvcc: ${count} headers\n${output}")
if(failed)
  message(FATAL_ERROR "nvcc does not compile what .cu files reach")
endif()
