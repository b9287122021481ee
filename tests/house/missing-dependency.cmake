# Without range-v3, our build (WHO = build) and the installed package (WHO = package) say what to install.
file(REMOVE_RECURSE ${SCRATCH})
set(source ${SOURCE_DIR})
if(WHO STREQUAL "package")
  set(source ${SOURCE_DIR}/tests/house/consumer)
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${SCRATCH} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
  -DWAY=package -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_DISABLE_FIND_PACKAGE_range-v3=ON -DNEAP_CUDA=OFF
  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE text)
string(REGEX REPLACE "[ \n]+" " " text "${text}")
if(NOT failed)
  message(FATAL_ERROR "configured without range-v3")
endif()
if(NOT text MATCHES "neap: range-v3 not found: apt-get install librange-v3-dev")
  message(FATAL_ERROR "no word of what to install: ${text}")
endif()
