// expect: this_class_is_no_aggregate_drop_its_constructor_or_add_neap_fields() [with Type = model]
// expect: neap: this member cannot be looked into, and could hide a weight: make it a plain struct (no constructor of its own
#include <neap/model/parameters.hpp>

struct model {
  model() : weight({3}) {}
  neap::parameter weight;
};
auto f(model& m) { return neap::parameters(m); }
