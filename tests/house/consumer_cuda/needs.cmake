# FILE, a program, is not linked to the driver.
execute_process(COMMAND readelf -d ${FILE} OUTPUT_VARIABLE needs COMMAND_ERROR_IS_FATAL ANY)
if(NOT needs MATCHES "libc\\.so" OR needs MATCHES "libcuda\\.")
  message(FATAL_ERROR "linked to:\n${needs}")
endif()
