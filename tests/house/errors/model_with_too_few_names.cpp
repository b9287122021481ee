// expect: neap: neap_names must have one name for each part that neap_fields lists, in the same order
#include <neap/model/nn/linear.hpp>
#include <neap/model/parameters.hpp>

class model {
 public:
  friend auto neap_fields(model& self) { return std::tie(self.in_, self.out_); }
  static constexpr std::array neap_names{"in"};

 private:
  neap::nn::linear in_{2, 3}, out_{3, 4};
};
auto f(model& m) { return neap::parameters(m); }
