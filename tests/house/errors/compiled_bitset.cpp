// expect: neap: a compiled function cannot look into this class of the standard library
#include <neap/execute/compile.hpp>

#include <bitset>

struct model {
  std::bitset<8> chosen;
};
void f(model& m, neap::tensor const& given) {
  auto step = neap::compile([](model&, neap::tensor const& x) { return x; });
  (void)step(m, given);
}
