// expect: neap: a struct with a member that is a reference, or that cannot be moved, cannot be looked into: hold it by value
#include <neap/model/parameters.hpp>

struct tied {
  neap::parameter& other;
};
struct model {
  neap::parameter a{{4}};
  tied b;
};
auto f(model& m) { return neap::parameters(m); }
