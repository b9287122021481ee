// expect: hold_them_by_value_or_in_unique_ptr() [with Type = module*]
#include <neap/model/parameters.hpp>

struct module {
  neap::parameter weight;
};
struct model {  // trivially copyable
  module *body, *head;
};
auto f(model& m) { return neap::parameters(m); }
