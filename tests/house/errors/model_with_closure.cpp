// expect: neap: this member cannot be looked into, and could hide a weight: make it a plain struct (no constructor
#include <neap/model/parameters.hpp>

#include <functional>

struct model {
  std::function<neap::tensor(neap::tensor)> layer;
};
auto f(model& m) { return neap::parameters(m); }
