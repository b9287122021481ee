// expect: [with Type = std::map<int, neap::v0::owned_tensor<neap::v0::role::weight> >]
// expect: neap: this container cannot be looked into
#include <neap/model/parameters.hpp>

#include <map>

struct model {
  std::map<int, neap::parameter> experts;
};
auto f(model& m) { return neap::parameters(m); }
