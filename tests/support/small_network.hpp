// A classifier of a few layers, dropout among them, with batches of it: what trainers of all backends are tested on.
#pragma once

#include <neap/model/model.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace neap::testing {

struct small_network {
  nn::linear in{12, 24}, middle{24, 24}, out{24, 5};
  nn::layer_norm norm{24};
  nn::dropout drop{0.3};
  tensor operator()(tensor x) const {
    x = drop(gelu(norm(in(flatten(x, 1)))));
    return out(relu(middle(x)));
  }
};

/// n samples with their classes.
inline std::pair<tensor, tensor> small_batch(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back((i * 7 + static_cast<std::int64_t>(seed)) % 5);
  return {tensor::randn({n, 3, 4}, seed), tensor::from(labels, {n})};
}
/// All elements of all weights.
inline std::vector<float> small_weights(small_network& n) {
  std::vector<float> all;
  for (auto const& w : named_tensors(n, role::weight))
    for (auto x : w.tensor.values<float>()) all.push_back(x);
  return all;
}

}  // namespace neap::testing
