// expect: neap: a model is looked into to be trained: pass it as a non-const object, without const members but plain values
#include <neap/model/parameters.hpp>

struct model {
  int const heads = 2;
  neap::parameter const a{{4}};
};
auto f(model& m) { return neap::parameters(m); }
