# A missing package is reported in one line that names what to install: by our build (WHO = build), whose tests need
# range-v3, and by the installed package (WHO = package), which needs neither range-v3 nor TBB.
set(source ${SOURCE_DIR})
if(WHO STREQUAL "package")
  set(source ${SOURCE_DIR}/tests/house/consumer)
endif()

# Configures without the packages named; leaves `failed` and the text of errors.
function(configure_without)
  file(REMOVE_RECURSE ${SCRATCH})
  list(TRANSFORM ARGN REPLACE "^.+$" "-DCMAKE_DISABLE_FIND_PACKAGE_\\0=ON" OUTPUT_VARIABLE without)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${SCRATCH} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DWAY=package -DCMAKE_PREFIX_PATH=${PREFIX} -DEXPECTED_VERSION=${VERSION} -DNEAP_CUDA=OFF ${without}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(failed ${failed} PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()
function(expect_refusal message)
  if(NOT failed)
    message(FATAL_ERROR "configured, in place of '${message}'")
  endif()
  string(FIND "${text}" "${message}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected '${message}' in: ${text}")
  endif()
endfunction()

configure_without(NeapOpenBLAS)
expect_refusal("neap: OpenBLAS not found: apt-get install libopenblas-dev")
configure_without(range-v3 TBB)
if(WHO STREQUAL "build")
  expect_refusal("neap: range-v3, TBB not found: apt-get install librange-v3-dev libtbb-dev")
elseif(failed)
  message(FATAL_ERROR "the package needs range-v3 or TBB: ${text}")
endif()
