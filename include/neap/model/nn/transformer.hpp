// The blocks of transformers: a perceptron of two layers, and attention and perceptron with residual connections, the
// norms before them (GPT-2, ViT) or after them (BERT).
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/attention.hpp>
#include <neap/model/nn/norm.hpp>

namespace neap::inline v0::nn {

/// down(gelu(up(x)))
struct mlp_block {
  linear up, down;
  bool tanh_form = false;  // of gelu

  mlp_block() = default;
  mlp_block(std::int64_t width, std::int64_t hidden, bool tanh_form_ = false,
            std::source_location at = std::source_location::current())
      : up(width, hidden, {}, at),
        down(hidden, width, {}, at),
        tanh_form(tanh_form_) {}

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    return down(neap::gelu(up(x), tanh_form));
  }

  friend auto neap_fields(mlp_block& self) { return std::tie(self.up, self.down); }
  static constexpr std::array neap_names{"up", "down"};
};

struct transformer_options {
  bool norm_first = true;  // norms before attention and perceptron; else after the residual sums
  double dropout = 0;
  double epsilon = 1e-5;
  bool tanh_form = false;
  attention_options attention;
};

struct transformer_block {
  layer_norm norm1, norm2;
  multi_head_attention attention;
  mlp_block mlp;
  transformer_options options;

  transformer_block() = default;
  transformer_block(std::int64_t width, std::int64_t heads, std::int64_t hidden, transformer_options o = {},
                    std::source_location at = std::source_location::current())
      : norm1(width, o.epsilon, dtype::f32, at),
        norm2(width, o.epsilon, dtype::f32, at),
        attention(width, heads, o.attention, at),
        mlp(width, hidden, o.tanh_form, at),
        options(o) {}

  /// x (b, t, d) -> (b, t, d)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    auto const call = [&](auto const& module, tensor const& v) { return module(v); };
    auto const drop = [&](tensor const& v) { return neap::dropout(v, options.dropout); };
    if (options.norm_first) {
      x = neap::add(x, drop(call(attention, call(norm1, x))));
      return neap::add(x, drop(call(mlp, call(norm2, x))));
    }
    x = call(norm1, neap::add(x, drop(call(attention, x))));
    return call(norm2, neap::add(x, drop(call(mlp, x))));
  }

  friend auto neap_fields(transformer_block& self) {
    return std::tie(self.norm1, self.attention, self.norm2, self.mlp);
  }
  static constexpr std::array neap_names{"norm1", "attention", "norm2", "mlp"};
};

}  // namespace neap::inline v0::nn
