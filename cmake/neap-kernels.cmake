# neap_compile_kernels(TARGET): the kernels of the standard operators are compiled once for a program, in a source file of
# their own, and not again in each of its files. Only that file reads Thrust's headers. It is optimised whatever the build
# type: kernels at -O0 are 15 times slower, and nobody debugs them.
function(neap_compile_kernels target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}-neap-kernels.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <neap/backend/kernels/sort_positions.hpp>
#include <neap/model/kernels.hpp>
NEAP_COMPILE_KERNELS
")
  target_sources(${target} PRIVATE ${source})
  if(NOT NEAP_SANITIZE)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS $<$<NOT:$<CONFIG:Release,RelWithDebInfo>>:-O2>)
  endif()
  target_compile_definitions(${target} PRIVATE NEAP_EXTERN_KERNELS)
endfunction()
