// expect: neap: a sample holds its tensors, not references to them: std::pair{x, y} or std::tuple{x, y, z}, not std::tie
#include <neap/model/nn/linear.hpp>
#include <neap/train/training_step.hpp>

auto f(neap::nn::linear& m, neap::tensor& x, neap::tensor& y) {
  return neap::training_step(m, std::tie(x, y), neap::mse{}, neap::sgd{});
}
