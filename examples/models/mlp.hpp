// A perceptron of several layers with relu between them.
#pragma once

#include <neap/model/nn/linear.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct mlp_config {
  std::vector<std::int64_t> widths{784, 1024, 1024, 10};  // of the input, the layers between, the output
  static mlp_config toy() { return {{16, 32, 32, 4}}; }
};

struct mlp {
  std::vector<nn::linear> layers;

  explicit mlp(mlp_config const& c = {}, std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    for (std::size_t i = 0; i + 1 < c.widths.size(); ++i) layers.emplace_back(c.widths[i], c.widths[i + 1]);
  }

  /// x (..., first width) -> (..., last width)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = relu(x);
    }
    return x;
  }

  friend auto neap_fields(mlp& self) { return std::tie(self.layers); }
  static constexpr std::array neap_names{"layers"};
};

}}}  // namespace neap::v0::zoo
