// The blocks of transformers: perceptrons of two layers and gated ones, and attention and perceptron with residual
// connections, the norms before them (GPT-2, ViT) or after them (BERT).
#pragma once

#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/attention.hpp>
#include <neap/model/nn/norm.hpp>

namespace neap { inline namespace v0 { namespace nn {

/// down(gelu(up(x)))
struct mlp_block {
  linear up, down;
  bool tanh_form = false;  // of gelu

  mlp_block() = default;
  mlp_block(std::int64_t width, std::int64_t hidden, bool tanh_form_ = false,
            std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<mlp_block> auto& self) { return std::tie(self.up, self.down, self.tanh_form); }
  static constexpr std::array neap_names{"up", "down", "tanh_form"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// down(silu(gate(x)) * up(x)), without biases (Shazeer 2020).
struct gated_mlp {
  linear gate, up, down;

  gated_mlp() = default;
  gated_mlp(std::int64_t width, std::int64_t hidden, std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<gated_mlp> auto& self) { return std::tie(self.gate, self.up, self.down); }
  static constexpr std::array neap_names{"gate", "up", "down"};
};

struct transformer_options {
  bool norm_first = true;  // norms before attention and perceptron; else after the residual sums
  double dropout = 0;
  double epsilon = 1e-5;
  bool tanh_form = false;
  attention_options attention{};
};

struct transformer_block {
  layer_norm norm1, norm2;
  multi_head_attention attention;
  mlp_block mlp;
  transformer_options options;

  transformer_block() = default;
  transformer_block(std::int64_t width, std::int64_t heads, std::int64_t hidden, transformer_options o = {},
                    std::source_location at = std::source_location::current());

  /// x (b, t, d) -> (b, t, d)
  tensor operator()(tensor x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<transformer_block> auto& self) {
    return std::tie(self.norm1, self.attention, self.norm2, self.mlp, self.options);
  }
  static constexpr std::array neap_names{"norm1", "attention", "norm2", "mlp", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/transformer.ipp>
#endif
