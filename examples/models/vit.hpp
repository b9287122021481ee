// The vision transformer (Dosovitskiy et al. 2021): an image's patches as tokens, with one more whose last state says the
// class.
#pragma once

#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/transformer.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace zoo {

struct vit_config {
  std::int64_t image = 224, patch = 16, channels = 3, classes = 1000, width = 768, heads = 12, layers = 12,
               hidden = 3072;
  double dropout = 0;
  bool fused_attention = true;

  static vit_config base() { return {}; }
  static vit_config toy() {
    vit_config c;
    c.image = 16, c.patch = 4, c.classes = 4, c.width = 16, c.heads = 2, c.layers = 2, c.hidden = 32;
    return c;
  }
  /// How many patches an image has. Throws neap::error if it has none.
  std::int64_t patch_count(std::source_location at = std::source_location::current()) const {
    if (patch < 1 || patch > image)
      throw_error(context_access::place(at), {"vit: an image of ", image, " has no patches of ", patch});
    return (image / patch) * (image / patch);
  }
};

struct vit {
  nn::conv2d patches;
  parameter class_token, positions;  // (1, 1, width), (1, 1 + patches, width)
  std::vector<nn::transformer_block> blocks;
  nn::layer_norm norm;
  nn::linear head;
  vit_config config;

  explicit vit(vit_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    patches = nn::conv2d(c.channels, c.width, c.patch, {.stride = c.patch});
    class_token = parameter({1, 1, c.width}, initialiser::normal(0, 0.02));
    positions = parameter({1, 1 + c.patch_count(), c.width}, initialiser::normal(0, 0.02));
    norm = nn::layer_norm(c.width, 1e-6);
    head = nn::linear(c.width, c.classes);
    nn::transformer_options o;
    o.dropout = c.dropout;
    o.epsilon = 1e-6;
    o.attention = {.fused = c.fused_attention};
    for (std::int64_t i = 0; i < c.layers; ++i) blocks.emplace_back(c.width, c.heads, c.hidden, o);
  }

  /// x (n, channels, image, image) -> (n, classes)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    neap::detail::require_rank(x, 4, "vit: takes (batch, channels, rows, columns)", at);
    auto const n = x.size(0);
    x = patches(x);                         // (n, width, p, p)
    x = permute(flatten(x, 2), {0, 2, 1});  // (n, p * p, width)
    x = concat({broadcast_to(class_token, {n, 1, config.width}), x}, 1);
    x = dropout(x + positions, config.dropout);
    for (auto const& b : blocks) x = b(x);
    return head(select(norm(x), 1, 0));
  }

  friend auto neap_fields(vit& self) {
    return std::tie(self.patches, self.class_token, self.positions, self.blocks, self.norm, self.head);
  }
  static constexpr std::array neap_names{"patches", "class_token", "positions", "blocks", "norm", "head"};
};

}}}  // namespace neap::v0::zoo
