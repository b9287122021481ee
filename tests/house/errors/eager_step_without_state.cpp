// expect: neap: an eager step needs a neap::training_state behind the optimizer
#include <neap/neap.hpp>

void f(neap::nn::linear& model, std::pair<neap::tensor, neap::tensor> const& batch) {
  neap::adamw const optimizer{};
  (void)neap::eager_step(model, batch, neap::mse{}, optimizer);
}
