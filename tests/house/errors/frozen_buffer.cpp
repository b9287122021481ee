// expect: neap: only a weight is trained or frozen: a buffer never has a gradient
#include <neap/model/parameter.hpp>

void f(neap::buffer& b) { b.requires_gradient(false); }
