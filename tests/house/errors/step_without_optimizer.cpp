// expect: neap: a training step needs an optimizer behind the loss
#include <neap/neap.hpp>

void f(neap::nn::linear& model, std::pair<neap::tensor, neap::tensor> const& batch) {
  (void)neap::training_step(model, batch, neap::mse{});
}
