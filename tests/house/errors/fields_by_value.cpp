// expect: neap: neap_fields must give references to the parts, not copies: return std::tie(self.member, ...)
#include <neap/model/parameters.hpp>

#include <tuple>

class model {
 public:
  friend auto neap_fields(model& self) { return std::make_tuple(self.weight); }

 private:
  neap::parameter weight{{4}};
};
auto f(model& m) { return neap::parameters(m); }
