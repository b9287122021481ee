# cmake -DCXX= -DOPTIONS= [-DFIRST=] -DSOURCE= -P expect-error.cmake: SOURCE, below the header FIRST, must not compile. Its
# first lines say what a user reads:
#   // expect: TEXT   in the first error or static_assert line of the compiler
#   // also: TEXT     anywhere in what it prints
# Texts are plain, not patterns; several lines of each kind may stand there.
file(STRINGS ${SOURCE} wishes REGEX "^// (expect|also): ")
if(NOT wishes MATCHES "// expect: ")
  message(FATAL_ERROR "${SOURCE}: no line '// expect: TEXT'")
endif()

set(first "")
if(FIRST)
  set(first -include ${FIRST})
endif()
execute_process(
  COMMAND ${CXX} @${OPTIONS} -DNEAP_SEPARATE_COMPILATION -fsyntax-only -fdiagnostics-color=never ${first} ${SOURCE}
  RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT failed)
  message(FATAL_ERROR "${SOURCE}: compiles, and must not")
endif()

string(REGEX MATCH "[^\n]*error: [^\n]*" first "${text}")
string(REGEX MATCH "[^\n]*(static assertion|static_assert) failed[^\n]*" assertion "${text}")
foreach(wish IN LISTS wishes)
  string(REGEX REPLACE "^// (expect|also): " "" wanted "${wish}")
  if(wish MATCHES "^// expect: ")
    set(where "${first}\n${assertion}")
  else()
    set(where "${text}")
  endif()
  string(FIND "${where}" "${wanted}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE}: wanted '${wanted}' in\n${where}\nThe compiler said:\n${text}")
  endif()
endforeach()
