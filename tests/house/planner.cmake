# A program that plans and does not run reads no kernel: compiled apart, neap/planner.hpp reaches no header of
# neap/backend and none of neap/model, and neither do the operators' own headers.
#   cmake -DCXX= -DOPTIONS= -DSOURCE_DIR= -DSCRATCH= -P planner.cmake
cmake_minimum_required(VERSION 3.25)
set(include ${SOURCE_DIR}/include)

# The headers of these folders of neap that a file with these #include lines reaches.
function(reached result lines)
  file(WRITE ${SCRATCH}/reached.cpp "${lines}")
  execute_process(COMMAND ${CXX} @${OPTIONS} -DNEAP_SEPARATE_COMPILATION -M ${SCRATCH}/reached.cpp
    RESULT_VARIABLE failed OUTPUT_VARIABLE rule ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "not preprocessed:\n${lines}\n${said}")
  endif()
  set(found "")
  foreach(folder ${ARGN})
    string(REGEX MATCHALL "neap/${folder}/[^ \n\\]+" headers "${rule}")
    list(APPEND found ${headers})
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(expect_none what)
  if(ARGN)
    list(JOIN ARGN "\n  " headers)
    message(FATAL_ERROR "${what} reaches\n  ${headers}")
  endif()
endfunction()

# Where there are such headers they are found.
reached(kernels "#include <neap/ir/operators/kernels/standard.hpp>\n" backend)
reached(models "#include <neap/model/tensor.hpp>\n" model)
list(LENGTH kernels of_backend)
list(LENGTH models of_model)
if(of_backend LESS 20 OR of_model LESS 2)
  message(FATAL_ERROR "of neap/backend ${of_backend} headers are found, of neap/model ${of_model}")
endif()

reached(found "#include <neap/planner.hpp>\n" backend model train capture execute)
expect_none(neap/planner.hpp ${found})
reached(found "#include <neap/ir/standard_operators.hpp>\n" backend model)
expect_none(neap/ir/standard_operators.hpp ${found})

file(GLOB operators RELATIVE ${include} ${include}/neap/ir/operators/*.hpp)
list(TRANSFORM operators REPLACE "^.+$" "#include <\\0>\n")
list(LENGTH operators count)
list(JOIN operators "" lines)
reached(found "${lines}" backend model)
expect_none("a header of neap/ir/operators" ${found})
message(STATUS "neap/planner.hpp and ${count} headers of operators reach no kernel")
