// expect: neap: this leaf of a pipeline is not a mutator: it lacks
// also: leaf_in_a_zip.cpp
#include <neap/neap.hpp>
struct bad {
  int operator()(int) const { return 1; }
};
struct model {
  neap::nn::linear l{4, 4};
  neap::tensor operator()(neap::tensor const& x) const { return l(x); }
};
int main() {
  model m;
  auto const x = neap::tensor::randn({4, 4}, 1);
  auto const step = neap::training_step(m, std::pair{x, x}, neap::mse{}, neap::sgd{});
  constexpr auto moves = neap::zip(neap::rematerialize{}, bad{} | neap::truncate(3));
  auto const found = neap::optimize(step, moves, neap::memory_limit{100});
}
