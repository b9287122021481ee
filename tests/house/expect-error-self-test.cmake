# The harness for compile failures must itself fail where it should.
function(expect verdict name text)
  file(WRITE ${SCRATCH}/${name}.cpp "${text}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DCXX=${CXX} -DOPTIONS=${OPTIONS} -DSOURCE=${SCRATCH}/${name}.cpp
    -P ${CMAKE_CURRENT_LIST_DIR}/expect-error.cmake RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  if((verdict STREQUAL "pass" AND failed) OR (verdict STREQUAL "fail" AND NOT failed))
    message(FATAL_ERROR "${name}: should ${verdict}\n${why}")
  endif()
endfunction()

set(wrong [==[template <class T> void f() { static_assert(sizeof(T) == 1, "neap: one; byte [only]"); } int main() { f<int>(); }]==])
expect(pass said "// expect: neap: one; byte [only]\n// also: sizeof\n${wrong}\n")
expect(fail not_said "// expect: neap: two bytes\n${wrong}\n")
expect(fail not_also_said "// expect: neap: one; byte\n// also: neap: two bytes\n${wrong}\n")
expect(fail compiles "// expect: error\nint main() {}\n")
expect(fail asks_nothing "${wrong}\n")
