// expect: neap: the model is called with all parts of the sample but the last, and does not take them
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

auto f(neap::nn::linear& m, std::tuple<neap::tensor, int, neap::tensor> const& s) {
  return neap::training_step(m, s, neap::mse{}, neap::sgd{});
}
