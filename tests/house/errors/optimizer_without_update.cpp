// expect: neap: this is no optimizer: it needs  static constexpr std::array<std::string_view, n> states{...}
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

struct descent {
  double rate = 0.1;
  void step(neap::tensor const& w, neap::tensor const& g) const { neap::apply(neap::op::sgd{}, {w, g}); }
};
auto f(neap::nn::linear& m, std::pair<neap::tensor, neap::tensor> const& s) {
  return neap::training_step(m, s, neap::mse{}, descent{});
}
