# ONE and APART print the same; two files that say NEAP_ONE_FILE do not link.
foreach(which ONE APART)
  execute_process(COMMAND ${${which}} OUTPUT_VARIABLE said_${which} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT said_ONE STREQUAL said_APART OR NOT said_ONE MATCHES "\ntrained\n.*another operator in the graph has this name")
  message(FATAL_ERROR "as one file:\n${said_ONE}\napart:\n${said_APART}")
endif()

file(MAKE_DIRECTORY ${SCRATCH})
file(WRITE ${SCRATCH}/a.cpp "#include <neap/core/one_file.hpp>\nint main() {}\n")
file(WRITE ${SCRATCH}/b.cpp "#include <neap/core/one_file.hpp>\n")
execute_process(COMMAND ${CXX} -std=c++20 -I${INCLUDE} -DNEAP_ONE_FILE ${SCRATCH}/a.cpp -o ${SCRATCH}/one COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CXX} -std=c++20 -I${INCLUDE} -DNEAP_ONE_FILE ${SCRATCH}/a.cpp ${SCRATCH}/b.cpp -o ${SCRATCH}/two
  RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT failed OR NOT said MATCHES "neap_one_file_is_said_in_several_files")
  message(FATAL_ERROR "two files with NEAP_ONE_FILE link: ${said}")
endif()
