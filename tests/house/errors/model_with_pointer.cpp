// expect: a_model_holds_no_pointers_to_modules_so_hold_them_by_value_or_in_unique_ptr() [with Type = module*]
// expect: neap: a model owns its modules: a pointer, reference or span to a module cannot be looked into
#include <neap/model/parameters.hpp>

struct module {
  neap::parameter weight;
};
struct model {
  neap::parameter own;
  module* head = nullptr;
};
auto f(model& m) { return neap::parameters(m); }
