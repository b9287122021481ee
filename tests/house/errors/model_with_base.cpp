// expect: neap: a model that is a struct with a base class cannot be looked into: add friend auto neap_fields
#include <neap/model/parameters.hpp>

struct base {
  neap::parameter a;
};
struct model : base {
  neap::parameter b;
};
auto f(model& m) { return neap::parameters(m); }
