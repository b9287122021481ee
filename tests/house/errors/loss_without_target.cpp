// expect: neap: this loss needs a sample that is a pair or tuple (inputs..., target)
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

struct model {
  neap::nn::linear l{2, 2};
  neap::tensor operator()(neap::tensor const& x) const { return l(x); }
};
auto f(model& m, neap::tensor const& x) { return neap::training_step(m, x, neap::mse{}, neap::sgd{}); }
