// expect: neap: what an evaluator gives looks at its memory, and this one is gone: give it a name
#include <neap/execute/evaluator.hpp>
#include <neap/model/nn/linear.hpp>

auto f(neap::nn::linear& m, neap::tensor const& x, neap::host_backend& backend) {
  return neap::evaluator(m, x, backend)(x);
}
