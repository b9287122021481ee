// Densely connected networks (Huang et al. 2017): each layer reads all earlier ones of its stage.
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/norm.hpp>

#include <optional>
#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct densenet_config {
  std::vector<std::int64_t> layers{6, 12, 24, 16};  // of each stage
  std::int64_t growth = 32, stem = 64, bottleneck = 4, channels = 3, classes = 1000;
  bool small_images = false;  // a stem of size 3 without pooling

  static densenet_config densenet121() { return {}; }
  static densenet_config densenet169() {
    densenet_config c;
    c.layers = {6, 12, 32, 32};
    return c;
  }
  static densenet_config toy() {
    densenet_config c;
    c.layers = {2, 2}, c.growth = 4, c.stem = 8, c.bottleneck = 2, c.classes = 4, c.small_images = true;
    return c;
  }
};

struct densenet {
  /// conv(relu(norm(x)))
  struct unit {
    nn::batch_norm2d norm;
    nn::conv2d conv;

    unit() = default;
    unit(std::int64_t in, std::int64_t out, std::int64_t size)
        : norm(in),
          conv(in, out, size, {.padding = size / 2, .bias = false}) {}
    tensor operator()(tensor const& x) const {
      scope const within(*this);
      return conv(relu(norm(x)));
    }
    friend auto neap_fields(unit& self) { return std::tie(self.norm, self.conv); }
    static constexpr std::array neap_names{"norm", "conv"};
  };
  struct layer {
    unit reduce, grow;
  };
  struct stage {
    std::vector<layer> layers;
    std::optional<unit> transition;  // halves channels and image
  };

  nn::conv2d stem;
  std::optional<nn::batch_norm2d> stem_norm;
  std::vector<stage> stages;
  nn::batch_norm2d norm;
  nn::linear head;
  densenet_config config;

  explicit densenet(densenet_config const& c = {}, std::source_location at = std::source_location::current())
      : config(c) {
    place_scope const here(at);
    scope const within(*this);
    stem = c.small_images ? nn::conv2d(c.channels, c.stem, 3, {.padding = 1, .bias = false})
                          : nn::conv2d(c.channels, c.stem, 7, {.stride = 2, .padding = 3, .bias = false});
    if (!c.small_images) stem_norm.emplace(c.stem);
    std::int64_t width = c.stem;
    for (std::size_t s = 0; s < c.layers.size(); ++s) {
      stage st;
      for (std::int64_t i = 0; i < c.layers[s]; ++i, width += c.growth)
        st.layers.push_back({unit(width, c.bottleneck * c.growth, 1), unit(c.bottleneck * c.growth, c.growth, 3)});
      if (s + 1 < c.layers.size()) {
        st.transition.emplace(width, width / 2, 1);
        width /= 2;
      }
      stages.push_back(std::move(st));
    }
    norm = nn::batch_norm2d(width);
    head = nn::linear(width, c.classes);
  }

  /// x (n, channels, h, w) -> (n, classes)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    x = stem(x);
    if (stem_norm) {
      x = relu((*stem_norm)(x));
      x = max_pool2d(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    }
    for (auto const& s : stages) {
      std::vector<tensor> all{x};
      for (auto const& l : s.layers) all.push_back(l.grow(l.reduce(all.size() == 1 ? x : concat(all, 1))));
      x = concat(all, 1);
      if (s.transition) x = avg_pool2d((*s.transition)(x), {.window = {2, 2}, .stride = {2, 2}});
    }
    x = relu(norm(x));
    return head(mean(x, {2, 3}));
  }

  friend auto neap_fields(densenet& self) {
    return std::tie(self.stem, self.stem_norm, self.stages, self.norm, self.head);
  }
  static constexpr std::array neap_names{"stem", "stem_norm", "stages", "norm", "head"};
};

}}}  // namespace neap::v0::zoo
