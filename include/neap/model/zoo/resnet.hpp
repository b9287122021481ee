// Residual networks (He et al. 2016): basic blocks (18, 34) or bottlenecks (50, 101, 152), with the stride on the
// bottleneck's middle convolution, as torchvision has it.
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/norm.hpp>

#include <optional>
#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct resnet_config {
  std::vector<std::int64_t> blocks{2, 2, 2, 2};  // of each stage
  bool bottleneck = false;
  std::int64_t width = 64, channels = 3, classes = 1000;
  bool small_images = false;  // a stem of size 3 without pooling

  static resnet_config of(std::vector<std::int64_t> blocks, bool bottleneck) { return {std::move(blocks), bottleneck}; }
  static resnet_config resnet18() { return of({2, 2, 2, 2}, false); }
  static resnet_config resnet34() { return of({3, 4, 6, 3}, false); }
  static resnet_config resnet50() { return of({3, 4, 6, 3}, true); }
  static resnet_config resnet101() { return of({3, 4, 23, 3}, true); }
  static resnet_config resnet152() { return of({3, 8, 36, 3}, true); }
  /// The same blocks, narrow, for small images of few classes.
  resnet_config narrow() const {
    resnet_config c = *this;
    c.width = 4, c.classes = 4, c.small_images = true;
    return c;
  }
  static resnet_config toy() { return of({1, 1}, false).narrow(); }
};

struct resnet {
  struct unit {
    nn::conv2d conv;
    nn::batch_norm2d norm;

    unit() = default;
    unit(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride)
        : conv(in, out, size, {.stride = stride, .padding = size / 2, .bias = false}),
          norm(out) {
      conv.weight.restart(initialiser::he_normal(out * size * size));
    }
    tensor operator()(tensor const& x) const {
      scope const within(*this);
      return norm(conv(x));
    }
    friend auto neap_fields(unit& self) { return std::tie(self.conv, self.norm); }
    static constexpr std::array neap_names{"conv", "norm"};
  };
  struct block {
    std::vector<unit> units;
    std::optional<unit> shortcut;

    tensor operator()(tensor const& x) const {
      tensor y = x;
      for (std::size_t i = 0; i < units.size(); ++i) {
        y = units[i](y);
        if (i + 1 < units.size()) y = relu(y);
      }
      return relu(y + (shortcut ? (*shortcut)(x) : x));
    }
  };

  unit stem;
  std::vector<block> blocks;
  nn::linear head;
  resnet_config config;

  explicit resnet(resnet_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    stem = unit(c.channels, c.width, c.small_images ? 3 : 7, c.small_images ? 1 : 2);
    std::int64_t in = c.width;
    for (std::size_t s = 0; s < c.blocks.size(); ++s)
      for (std::int64_t i = 0; i < c.blocks[s]; ++i) {
        std::int64_t const middle = c.width << s, out = c.bottleneck ? 4 * middle : middle;
        std::int64_t const stride = s > 0 && i == 0 ? 2 : 1;
        block b;
        if (c.bottleneck) {
          b.units.emplace_back(in, middle, 1, 1);
          b.units.emplace_back(middle, middle, 3, stride);
          b.units.emplace_back(middle, out, 1, 1);
        } else {
          b.units.emplace_back(in, middle, 3, stride);
          b.units.emplace_back(middle, out, 3, 1);
        }
        if (stride != 1 || in != out) b.shortcut.emplace(in, out, 1, stride);
        blocks.push_back(std::move(b));
        in = out;
      }
    head = nn::linear(in, c.classes);
  }

  /// x (n, channels, h, w) -> (n, classes)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    x = relu(stem(x));
    if (!config.small_images) x = max_pool2d(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (auto const& b : blocks) x = b(x);
    return head(mean(x, {2, 3}));
  }

  friend auto neap_fields(resnet& self) { return std::tie(self.stem, self.blocks, self.head); }
  static constexpr std::array neap_names{"stem", "blocks", "head"};
};

}}}  // namespace neap::v0::zoo
