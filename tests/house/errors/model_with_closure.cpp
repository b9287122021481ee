// expect: a_function_hides_what_it_captures_so_hold_the_module_itself() [with Type = std::function<neap::v0::tensor(neap::v0::tensor)>]
// expect: neap: a std::function cannot be looked into, and could hide a weight: hold the module itself
#include <neap/model/parameters.hpp>

#include <functional>

struct model {
  std::function<neap::tensor(neap::tensor)> layer;
};
auto f(model& m) { return neap::parameters(m); }
