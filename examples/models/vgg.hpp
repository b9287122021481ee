// VGG (Simonyan and Zisserman 2015): convolutions of size 3 in stages, each halved by pooling, then a perceptron.
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/norm.hpp>

#include <optional>
#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct vgg_config {
  std::vector<std::vector<std::int64_t>> stages{
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  std::int64_t channels = 3, pooled = 7, hidden = 4096, classes = 1000;
  bool norm = false;
  double dropout = 0.5;

  static vgg_config vgg11() {
    vgg_config c;
    c.stages = {{64}, {128}, {256, 256}, {512, 512}, {512, 512}};
    return c;
  }
  static vgg_config vgg16() { return {}; }
  static vgg_config vgg19() {
    vgg_config c;
    c.stages = {{64, 64}, {128, 128}, {256, 256, 256, 256}, {512, 512, 512, 512}, {512, 512, 512, 512}};
    return c;
  }
  /// Images of 16 x 16.
  static vgg_config toy() {
    vgg_config c;
    c.stages = {{8}, {12, 12}};
    c.pooled = 2, c.hidden = 24, c.classes = 4, c.norm = true, c.dropout = 0.1;
    return c;
  }
};

struct vgg {
  struct layer {
    nn::conv2d conv;
    std::optional<nn::batch_norm2d> norm;
    bool pool_after = false;
  };
  std::vector<layer> features;
  nn::linear fc1, fc2, head;
  vgg_config config;

  explicit vgg(vgg_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    std::int64_t in = c.channels;
    for (auto const& stage : c.stages)
      for (std::size_t i = 0; i < stage.size(); ++i) {
        layer l{nn::conv2d(in, stage[i], 3, {.padding = 1}), std::nullopt, i + 1 == stage.size()};
        if (c.norm) l.norm.emplace(stage[i]);
        features.push_back(std::move(l));
        in = stage[i];
      }
    fc1 = nn::linear(in * c.pooled * c.pooled, c.hidden);
    fc2 = nn::linear(c.hidden, c.hidden);
    head = nn::linear(c.hidden, c.classes);
  }

  /// x (n, channels, h, w) -> (n, classes)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    for (auto const& l : features) {
      x = l.conv(x);
      if (l.norm) x = (*l.norm)(x);
      x = relu(x);
      if (l.pool_after) x = max_pool2d(x, {.window = {2, 2}, .stride = {2, 2}});
    }
    x = flatten(adaptive_avg_pool2d(x, config.pooled, config.pooled), 1);
    x = dropout(relu(fc1(x)), config.dropout);
    x = dropout(relu(fc2(x)), config.dropout);
    return head(x);
  }

  friend auto neap_fields(vgg& self) { return std::tie(self.features, self.fc1, self.fc2, self.head); }
  static constexpr std::array neap_names{"features", "fc1", "fc2", "head"};
};

}}}  // namespace neap::v0::zoo
