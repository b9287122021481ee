# The program compiled header-only and APART prints the same; header-only files link with each other.
foreach(which HEADER_ONLY APART)
  execute_process(COMMAND ${${which}} OUTPUT_VARIABLE printed_${which} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT printed_HEADER_ONLY STREQUAL printed_APART
   OR NOT printed_HEADER_ONLY MATCHES "\ntrained\nsums 0 1 2 -2\n.*another operator in the graph has this name")
  message(FATAL_ERROR "header-only:\n${printed_HEADER_ONLY}\napart:\n${printed_APART}")
endif()
