# format: rewrites our files by .clang-format; the test of that name fails where this would change something.
# tidy: clang-tidy over the tests of each layer (cmake --workflow --preset tidy).
find_program(NEAP_CLANG_FORMAT NAMES clang-format-16 clang-format-17 clang-format-18 clang-format-19 clang-format)
mark_as_advanced(NEAP_CLANG_FORMAT)
file(GLOB_RECURSE our_files CONFIGURE_DEPENDS
  include/neap/*.hpp include/neap/*.ipp include/neap/*.cuh tests/*.cpp tests/*.hpp tests/*.cu examples/*.cpp examples/*.hpp examples/*.cu bench/*.cpp bench/*.hpp)
if(NEAP_CLANG_FORMAT AND our_files)
  add_custom_target(format COMMAND ${NEAP_CLANG_FORMAT} -i ${our_files} VERBATIM)
  if(NEAP_BUILD_TESTS AND NEAP_CLANG_FORMAT MATCHES "-16$")  # versions differ
    add_test(NAME format COMMAND ${NEAP_CLANG_FORMAT} --dry-run -Werror ${our_files})
    set_tests_properties(format PROPERTIES LABELS format)
  endif()
endif()

find_program(NEAP_CLANG_TIDY NAMES clang-tidy-16 clang-tidy-17 clang-tidy-18 clang-tidy-19)
mark_as_advanced(NEAP_CLANG_TIDY)
if(NEAP_CLANG_TIDY AND NEAP_BUILD_TESTS)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/neap/*.hpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/tests/(house/|main.cpp)")
  if(NOT TARGET neap::cuda)
    list(FILTER sources EXCLUDE REGEX "/tests/cuda/device.cpp")
  endif()
  foreach(source ${sources})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(REPLACE "/" "." name ${name})
    set(stamp ${PROJECT_BINARY_DIR}/tidy/${name}.stamp)
    add_custom_command(OUTPUT ${stamp}
      COMMAND ${NEAP_CLANG_TIDY} --quiet --warnings-as-errors=* -p ${PROJECT_BINARY_DIR} ${source}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
      DEPENDS ${source} ${headers} ${PROJECT_SOURCE_DIR}/.clang-tidy
      COMMENT "clang-tidy ${name}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(tidy DEPENDS ${stamps})

  # A program that uses nearly all of the library is looked at in every test run that has clang-tidy 16.
  if(NEAP_BUILD_EXAMPLES AND NEAP_CLANG_TIDY MATCHES "-16$" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_test(NAME tidy.gpt_training COMMAND ${NEAP_CLANG_TIDY} --quiet --warnings-as-errors=* -p ${PROJECT_BINARY_DIR}
             ${PROJECT_SOURCE_DIR}/examples/train_gpt/gpt_training.cpp)
    set_tests_properties(tidy.gpt_training PROPERTIES LABELS tidy TIMEOUT 600 COST 90)  # long: first
  endif()
endif()
