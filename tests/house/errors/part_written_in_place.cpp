// expect: neap: x += y is x = x + y and needs a variable: a part such as x[0] is not written in place
#include <neap/model/functions.hpp>

void f(neap::tensor& x) { x[0] += 1; }
