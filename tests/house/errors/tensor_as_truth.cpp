// expect: neap: a tensor is not a truth value: programs whose path depends on data need capture
#include <neap/model/functions/elementwise.hpp>

int f(neap::tensor const& x) {
  if (x) return 1;
  return 0;
}
