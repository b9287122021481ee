// expect: neap: a model is evaluated as model(sample), or model(parts...) of a pair or tuple; for another one
#include <neap/execute/evaluator.hpp>
#include <neap/model/nn/linear.hpp>

struct batch {
  neap::tensor x, y;
};
void f(neap::nn::linear& m, batch const& b, neap::host_backend& backend) { neap::evaluator eval(m, b, backend); }
