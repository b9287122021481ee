// expect: neap: an optimizer's values() must give one number for each of its `numbers`, in the same order
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

struct descent {
  neap::scheduled rate = 0.1;
  static constexpr std::array<std::string_view, 0> states{};
  static constexpr std::array<std::string_view, 2> numbers{"rate", "weight_decay"};
  std::array<neap::scheduled, 1> values() const { return {rate}; }
  void update(neap::tensor const& w, neap::tensor const& g, std::span<neap::tensor const>,
              neap::update_inputs& in) const {
    neap::apply(neap::op::sgd{}, {w, g, in.numbers()});
  }
};
auto f(neap::nn::linear& m, std::pair<neap::tensor, neap::tensor> const& s) {
  return neap::training_step(m, s, neap::mse{}, descent{});
}
