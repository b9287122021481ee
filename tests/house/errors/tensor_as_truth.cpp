// expect: neap: a tensor is not a truth value: a choice by data is neap::where(condition, a, b)
#include <neap/model/functions/elementwise.hpp>

int f(neap::tensor const& x) {
  if (x) return 1;
  return 0;
}
