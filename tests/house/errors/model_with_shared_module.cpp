// expect: hold_them_by_value_or_in_unique_ptr() [with Type = std::shared_ptr<module>]
// expect: neap: a model owns its modules
#include <neap/model/parameters.hpp>

#include <memory>

struct module {
  neap::parameter weight;
};
struct model {
  std::shared_ptr<module> head;
};
auto f(model& m) { return neap::parameters(m); }
