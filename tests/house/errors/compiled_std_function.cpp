// expect: neap: a compiled function captures no variables
#include <neap/execute/compile.hpp>

#include <functional>

void f(std::function<neap::tensor(neap::tensor const&)> const& given) { auto step = neap::compile(given); }
