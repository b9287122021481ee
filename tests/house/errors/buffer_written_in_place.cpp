// expect: neap: a weight or buffer is written in place by neap::assign(x, x + y)
#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

struct model {
  neap::buffer steps{{}};
  neap::tensor operator()(neap::tensor const& x) {
    steps += 1;
    return x * steps;
  }
};
neap::tensor f(model& m, neap::tensor const& x) { return m(x); }
