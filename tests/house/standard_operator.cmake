# Adds op::softsign to a copy of the library as include/neap/extending.md says, and runs a program that
# compares its gradients with difference quotients. The page names the files of the library that change, and no others.
#   cmake -DCXX= -DOPTIONS= -DSOURCE_DIR= -DSCRATCH= -DBLAS= -P standard_operator.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${SCRATCH})
file(COPY ${SOURCE_DIR}/include DESTINATION ${SCRATCH})
set(changed "")

# Puts `text` before the only place of `anchor` in a file.
function(add_before file anchor text)
  file(READ ${SCRATCH}/${file} old)
  string(REPLACE "${anchor}" "${text}${anchor}" new "${old}")
  string(LENGTH "${old}${text}" length)
  string(LENGTH "${new}" length_now)
  if(NOT length EQUAL length_now)
    message(FATAL_ERROR "${file}: not once there: ${anchor}")
  endif()
  file(WRITE ${SCRATCH}/${file} "${new}")
  list(APPEND changed ${file})
  list(REMOVE_DUPLICATES changed)
  set(changed ${changed} PARENT_SCOPE)
endfunction()

add_before(include/neap/ir/operators/unary.hpp "struct sin : unary<sin> {" [[
/// x / (1 + |x|).
struct softsign : unary<softsign> {
  static constexpr std::string_view name = "softsign";
  static constexpr double flops = 3;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x / (T(1) + math::abs(x));
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const d = T(1) + math::abs(x);
    return T(1) / (d * d);
  }
};
]])
add_before(include/neap/ir/standard_set.hpp "using sin_grad =" "using softsign_grad = grad_of<struct softsign>;\n")
add_before(include/neap/ir/standard_set.hpp "S(sin, step)" "S(softsign, step) ")
add_before(include/neap/ir/standard_set.hpp "A(sin_grad, step)" "A(softsign_grad, step) ")
add_before(include/neap/model/functions/elementwise.hpp "F(sin)" "F(softsign) ")

# The page's files.
file(READ ${SOURCE_DIR}/include/neap/extending.md page)
string(REGEX MATCH "\n## A standard operator\n.*\n## A stage of the search\n" section "${page}")
string(REGEX MATCHALL "\n\\| `[^`]+`" rows "${section}")
list(TRANSFORM rows REPLACE "^.*`([^`]+)`$" "\\1")
list(LENGTH rows count)
if(count GREATER 7)
  message(FATAL_ERROR "the page has ${count} files: ${rows}")
endif()
foreach(file IN LISTS rows)
  if(NOT EXISTS ${SOURCE_DIR}/${file})
    message(FATAL_ERROR "the page has ${file}, which is not there")
  endif()
endforeach()
list(FILTER rows INCLUDE REGEX "^include/")
if(NOT "${rows}" STREQUAL "${changed}")
  message(FATAL_ERROR "the page has ${rows}, but these changed: ${changed}")
endif()

file(WRITE ${SCRATCH}/program.cpp [[
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/reduction.hpp>
#include <neap/train/grad.hpp>

#include <cmath>
#include <cstdio>

int main() {
  std::vector<double> const at{-3, -0.5, 0.25, 1, 8};
  auto const x = neap::tensor::from(at, {5}).with_gradient();
  auto const y = neap::softsign(x);
  auto const values = y.values<double>(), slopes = neap::grad(neap::sum(y), {x})[0].values<double>();
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto const f = [](double a) { return a / (1 + std::abs(a)); };
    double const h = 1e-5, quotient = (f(at[i] + h) - f(at[i] - h)) / (2 * h);
    if (!(std::abs(values[i] - f(at[i])) < 1e-14 && std::abs(slopes[i] - quotient) < 1e-8)) {
      std::printf("at %g: %.15g, slope %.15g, quotient %.15g\n", at[i], values[i], slopes[i], quotient);
      return 1;
    }
  }
}
]])
execute_process(COMMAND ${CXX} -O0 -I${SCRATCH}/include @${OPTIONS} ${SCRATCH}/program.cpp
  -o ${SCRATCH}/program ${BLAS} -pthread COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${SCRATCH}/program COMMAND_ERROR_IS_FATAL ANY)
