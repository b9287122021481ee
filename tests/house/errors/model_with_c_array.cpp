// expect: neap: a model cannot hold a C array: use std::array
#include <neap/model/parameters.hpp>

struct model {
  neap::parameter weights[3];
};
auto f(model& m) { return neap::parameters(m); }
