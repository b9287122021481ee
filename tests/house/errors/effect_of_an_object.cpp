// expect: neap: a host function of a compiled function takes tensors, neap::sym and neap::state
#include <neap/capture/host.hpp>

struct model {
  neap::parameter w{{4}};
};
void f(model const& m) {
  neap::effect([](model const&) {}, m);
}
