// expect: neap: a function that the host calls in a compiled function captures no variables
#include <neap/capture/host.hpp>

void f(int& count) {
  neap::effect([&] { ++count; });
}
