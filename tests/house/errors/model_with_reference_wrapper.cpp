// expect: hold_them_by_value_or_in_unique_ptr() [with Type = std::reference_wrapper<module>]
#include <neap/model/parameters.hpp>

#include <functional>

struct module {
  neap::parameter weight;
};
struct model {
  std::reference_wrapper<module> head;
};
auto f(model& m) { return neap::parameters(m); }
