// The bodies of <neap/model/nn/transformer.hpp>.
#pragma once

#include <neap/model/nn/transformer.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC mlp_block::mlp_block(std::int64_t width, std::int64_t hidden, bool tanh_form_, std::source_location at)
    : tanh_form(tanh_form_) {
  place_scope const here(at);
  up = linear(width, hidden);
  down = linear(hidden, width);
}

NEAP_FUNC tensor mlp_block::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return down(neap::gelu(up(x), tanh_form));
}

NEAP_FUNC gated_mlp::gated_mlp(std::int64_t width, std::int64_t hidden, std::source_location at) {
  place_scope const here(at);
  gate = linear(width, hidden, {.bias = false});
  up = linear(width, hidden, {.bias = false});
  down = linear(hidden, width, {.bias = false});
}

NEAP_FUNC tensor gated_mlp::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return down(neap::silu(gate(x)) * up(x));
}

NEAP_FUNC transformer_block::transformer_block(std::int64_t width, std::int64_t heads, std::int64_t hidden,
                                               transformer_options o, std::source_location at)
    : options(o) {
  place_scope const here(at);
  norm1 = layer_norm(width, o.epsilon);
  norm2 = layer_norm(width, o.epsilon);
  attention = multi_head_attention(width, heads, o.attention);
  mlp = mlp_block(width, hidden, o.tanh_form);
}

NEAP_FUNC tensor transformer_block::operator()(tensor x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const drop = [&](tensor const& v) { return neap::dropout(v, options.dropout); };
  if (options.norm_first) {
    x = x + drop(attention(norm1(x)));
    return x + drop(mlp(norm2(x)));
  }
  x = norm1(x + drop(attention(x)));
  return norm2(x + drop(mlp(x)));
}

}}}  // namespace neap::v0::nn
