# PROGRAM --backend cuda, where there is no GPU: one line that says so, and an exit status that is not 0.
execute_process(COMMAND ${PROGRAM} --backend cuda RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE line)
if(NOT status EQUAL 2 OR NOT out STREQUAL "" OR NOT line MATCHES "^train_[a-z]+: (cuda|--backend cuda): [^\n]+\n$")
  message(FATAL_ERROR "exit status ${status}, output:\n${out}${line}")
endif()
message(STATUS "${line}")
