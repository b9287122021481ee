// expect: neap: a compiled function cannot look into this container
#include <neap/execute/compile.hpp>

#include <deque>

struct model {
  std::deque<neap::tensor> recent;
};
void f(model& m, neap::tensor const& given) {
  auto step = neap::compile([](model&, neap::tensor const& x) { return x; });
  (void)step(m, given);
}
