// expect: neap: a struct with a member that is a reference, or that cannot be moved, cannot be looked into: hold it by value
#include <neap/model/parameters.hpp>

struct counters {
  int calls = 0;
};
struct model {
  counters& log;
  neap::parameter a{{4}};
};
auto f(model& m) { return neap::parameters(m); }
