// expect: neap: a program is run by a plan of it and on a backend
#include <neap/execute/evaluator.hpp>
#include <neap/model/nn/linear.hpp>

void f(neap::nn::linear& m, neap::tensor const& x, neap::host_backend& backend) {
  neap::evaluator eval(neap::evaluation_step(m, x), backend);
}
