// U-Net (Ronneberger et al. 2015) and UNet++ (Zhou et al. 2018) for segmentation: images in, one number a class for each
// pixel out. Convolutions keep the image's size (padding 1); what goes up is interpolated and joined with what stood at
// that height.
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/norm.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct unet_config {
  std::int64_t channels = 3, classes = 2, width = 64;
  int depth = 4;  // how often the image is halved; its extents must divide by 2^depth
  static unet_config toy() {
    unet_config c;
    c.width = 4, c.depth = 2;
    return c;
  }
};

/// Twice: convolution of size 3, batch norm, relu.
struct double_conv {
  nn::conv2d conv1, conv2;
  nn::batch_norm2d norm1, norm2;

  double_conv() = default;
  double_conv(std::int64_t in, std::int64_t out)
      : conv1(in, out, 3, {.padding = 1, .bias = false}),
        conv2(out, out, 3, {.padding = 1, .bias = false}),
        norm1(out),
        norm2(out) {}

  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    x = relu(norm1(conv1(x)));
    return relu(norm2(conv2(x)));
  }
  friend auto neap_fields(double_conv& self) { return std::tie(self.conv1, self.norm1, self.conv2, self.norm2); }
  static constexpr std::array neap_names{"conv1", "norm1", "conv2", "norm2"};
};

namespace detail {
inline tensor halve(tensor const& x) { return max_pool2d(x, {.window = {2, 2}, .stride = {2, 2}}); }
inline tensor twice(tensor const& x) { return interpolate(x, 2 * x.size(2), 2 * x.size(3), {}); }
}  // namespace detail

struct unet {
  std::vector<double_conv> down, up;  // down[i] at height i; up[i] makes height i from i + 1
  nn::conv2d head;

  explicit unet(unet_config const& c = {}, std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    for (int i = 0; i <= c.depth; ++i) down.emplace_back(i == 0 ? c.channels : c.width << (i - 1), c.width << i);
    for (int i = 0; i < c.depth; ++i) up.emplace_back((c.width << i) + (c.width << (i + 1)), c.width << i);
    head = nn::conv2d(c.width, c.classes, 1);
  }

  /// x (n, channels, h, w) -> (n, classes, h, w)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    std::vector<tensor> level;
    for (std::size_t i = 0; i < down.size(); ++i) {
      if (i) x = detail::halve(x);
      x = down[i](x);
      level.push_back(x);
    }
    for (std::size_t i = up.size(); i-- > 0;) x = up[i](concat({level[i], detail::twice(x)}, 1));
    return head(x);
  }

  friend auto neap_fields(unet& self) { return std::tie(self.down, self.up, self.head); }
  static constexpr std::array neap_names{"down", "up", "head"};
};

/// Node (i, j) reads all nodes (i, 0..j-1) and node (i + 1, j - 1) from below; the last of the top row is the answer.
struct unet_plus_plus {
  std::vector<std::vector<double_conv>> nodes;  // nodes[i][j]
  nn::conv2d head;

  explicit unet_plus_plus(unet_config const& c = {}, std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    for (int i = 0; i <= c.depth; ++i) {
      std::int64_t const width = c.width << i;
      nodes.emplace_back();
      for (int j = 0; i + j <= c.depth; ++j)
        nodes.back().emplace_back(j > 0 ? j * width + 2 * width : i == 0 ? c.channels : width / 2, width);
    }
    head = nn::conv2d(c.width, c.classes, 1);
  }

  /// x (n, channels, h, w) -> (n, classes, h, w)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    std::vector<std::vector<tensor>> y(nodes.size());
    for (std::size_t j = 0; j < nodes.size(); ++j)
      for (std::size_t i = 0; i + j < nodes.size(); ++i) {
        tensor in;
        if (j > 0) {
          std::vector<tensor> all = y[i];
          all.push_back(detail::twice(y[i + 1][j - 1]));
          in = concat(all, 1);
        } else {
          in = i == 0 ? x : detail::halve(y[i - 1][0]);
        }
        y[i].push_back(nodes[i][j](in));
      }
    return head(y[0].back());
  }

  friend auto neap_fields(unet_plus_plus& self) { return std::tie(self.nodes, self.head); }
  static constexpr std::array neap_names{"nodes", "head"};
};

}}}  // namespace neap::v0::zoo
