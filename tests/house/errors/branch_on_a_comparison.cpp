// expect: neap: a tensor is not a truth value: a choice by data is neap::where(condition, a, b), and &&, || and ! are &, | and ~
#include <neap/model/functions.hpp>

neap::tensor f(neap::tensor const& x) {
  if (x > 0 && x < 1) return x;
  return -x;
}
