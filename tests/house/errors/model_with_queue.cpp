// expect: a_model_holds_modules_in_vector_array_tuple_optional_unique_ptr_or_map_of_strings() [with Type = std::queue<module>]
// expect: neap: this container cannot be looked into: hold modules in std::vector, std::array
#include <neap/model/parameters.hpp>

#include <queue>

struct module {
  neap::parameter weight;
};
struct model {
  std::queue<module> layers;
};
auto f(model& m) { return neap::parameters(m); }
