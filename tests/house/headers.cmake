# Every header compiles alone, without warnings. clang compiles all of them as one module, where each sees what it
# includes and nothing else, and says of which something is missing: a twentieth of the time of one by one. Modules of
# other people's headers are new ground: a header that it complains of is compiled alone, and that is the verdict.
#   cmake -DCLANG= -DOPTIONS= -DSOURCE_DIR= -DSCRATCH= -P headers.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${SCRATCH})
file(GLOB_RECURSE headers ${SOURCE_DIR}/include/neap/*.hpp)
# neap_compiled compiles the parts of neap/src.hpp alone; the others need a library or a toolkit that may not be there.
list(FILTER headers EXCLUDE REGEX "/neap/src[./]|/blocks/highs.hpp$|/neap/cuda[./]")
# nlohmann's headers undefine their macros, and a second header of a module does not get them again.
set(one_by_one ${headers})
list(FILTER one_by_one INCLUDE REGEX "/neap/import/")
list(FILTER headers EXCLUDE REGEX "/neap/import/")

# Two that must be complained of: one lacks a header of neap's, one a standard one.
set(planted ${SCRATCH}/planted_ours.hpp ${SCRATCH}/planted_standard.hpp)
file(WRITE ${SCRATCH}/planted_ours.hpp "#pragma once\ninline int planted(neap::simulation const&) { return 0; }\n")
file(WRITE ${SCRATCH}/planted_standard.hpp "#pragma once\ninline int planted(std::vector<int> const&) { return 0; }\n")

set(map "module neap {\n")
set(number 0)
foreach(header ${headers} ${planted})
  string(APPEND map "  module header_${number} { header \"${header}\" export * }\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${SCRATCH}/module.modulemap "${map}}\n")

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Werror)
execute_process(COMMAND ${CLANG} @${OPTIONS} ${warnings} -ferror-limit=0 -fno-caret-diagnostics
  -fmodules -fmodules-cache-path=${SCRATCH}/cache -fmodule-name=neap
  -Xclang -fmodules-local-submodule-visibility -Xclang -emit-module -x c++ ${SCRATCH}/module.modulemap
  -c -o ${SCRATCH}/neap.pcm OUTPUT_VARIABLE said ERROR_VARIABLE said)
string(REGEX MATCHALL "[^\n]+:[0-9]+:[0-9]+: (fatal )?error: [^\n]*" complaints "${said}")
list(TRANSFORM complaints REPLACE ":[0-9]+:[0-9]+: .*" "")
list(REMOVE_DUPLICATES complaints)
foreach(header ${planted})
  if(NOT header IN_LIST complaints)
    message(FATAL_ERROR "${header} lacks an include, and nothing was said of it:\n${said}")
  endif()
endforeach()
list(REMOVE_ITEM complaints ${planted})
list(FILTER complaints INCLUDE REGEX "^${SOURCE_DIR}/include/")

set(failed "")
foreach(header ${complaints} ${one_by_one})
  execute_process(COMMAND ${CLANG} @${OPTIONS} ${warnings} -fsyntax-only -include ${header} -x c++ /dev/null
    RESULT_VARIABLE result ERROR_VARIABLE said)
  if(result)
    string(APPEND failed "${header}:\n${said}\n")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "not alone:\n${failed}")
endif()
list(LENGTH headers in_module)
list(LENGTH complaints doubted)
list(LENGTH one_by_one others)
message(STATUS "${in_module} headers as a module, ${doubted} of them and ${others} others alone")
