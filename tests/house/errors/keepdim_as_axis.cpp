// expect: neap: axes come before keepdim: sum(x, 1, true), or sum(x, {}, true)
#include <neap/model/functions.hpp>

neap::tensor f(neap::tensor const& x) { return sum(x, true); }
