// expect: neap: x += y is x = x + y and needs a variable
#include <neap/model/functions.hpp>

neap::tensor f(neap::tensor const& x) {
  x *= 2;
  return x;
}
