// expect: neap: the model does not take the parts of the sample: give a function of (model, sample)
#include <neap/execute/evaluator.hpp>
#include <neap/model/nn/linear.hpp>

void f(neap::nn::linear& m, std::pair<neap::tensor, neap::tensor> const& b, neap::host_backend& backend) {
  neap::evaluator eval(m, b, backend);
}
