# Compiles one .cu file with every header of backend and of the kernels, and cuda.hpp if there is one.
file(GLOB_RECURSE headers RELATIVE ${SOURCE_DIR}/include
  ${SOURCE_DIR}/include/neap/backend/*.hpp ${SOURCE_DIR}/include/neap/backend/*.cuh
  ${SOURCE_DIR}/include/neap/ir/kernels/*.hpp ${SOURCE_DIR}/include/neap/ir/kernels/*.cuh)
if(EXISTS ${SOURCE_DIR}/include/neap/cuda.hpp)
  list(APPEND headers neap/cuda.hpp)
endif()
set(text "")
foreach(header ${headers})
  string(APPEND text "#include <${header}>\n")
endforeach()
file(WRITE ${SCRATCH}/all.cu "${text}")
execute_process(COMMAND ${NVCC} -std=c++20 -arch=sm_90 -I${SOURCE_DIR}/include -Xcompiler=-Wall -c ${SCRATCH}/all.cu
  -o ${SCRATCH}/all.o RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
list(LENGTH headers count)
message("nvcc: ${count} headers\n${output}")
if(failed)
  message(FATAL_ERROR "nvcc does not compile what .cu files reach")
endif()
