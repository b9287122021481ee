// The bodies of <neap/model/nn/attention.hpp>.
#pragma once

#include <neap/model/nn/attention.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn { namespace detail {

NEAP_FUNC tensor attend(tensor const& q, tensor const& k, tensor const& v, tensor const& mask,
                        attention_options const& o) {
  if (!mask.is_empty()) return masked_attention(q, k, v, mask, {.causal = o.causal}, o.dropout);
  if (o.fused) return attention(q, k, v, {.causal = o.causal});
  return plain_attention(q, k, v, {.causal = o.causal}, o.dropout);
}

}  // namespace detail
}}}  // namespace neap::v0::nn

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC multi_head_attention::multi_head_attention(std::int64_t width, std::int64_t heads_, attention_options o,
                                                     std::source_location at)
    : heads(heads_),
      options(o) {
  place_scope const here(at);
  if (heads < 1 || width % heads != 0)
    throw_error(context_access::place(at),
                {"multi_head_attention: width ", width, " does not divide into ", heads, " heads"});
  qkv = linear(width, 3 * width, {.bias = o.bias});
  out = linear(width, width, {.bias = o.bias});
}

NEAP_FUNC tensor multi_head_attention::operator()(tensor const& x, std::source_location at) const {
  return (*this)(x, {}, at);
}

NEAP_FUNC tensor multi_head_attention::operator()(tensor const& x, tensor const& mask, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  neap::detail::require_rank(x, 3, "multi_head_attention: takes (batch, tokens, width)", at);
  detail::require_width("multi_head_attention", x, qkv.weight);
  auto const b = x.size(0), t = x.size(1), d = x.size(2);
  // (b, t, 3 h, d / h): three parts of h heads; a part by heads is a view (b, h, t, d / h)
  std::vector<tensor> parts = split(reshape(qkv(x), {b, t, 3 * heads, d / heads}), 3, 2);
  for (auto& part : parts) part = permute(part, {0, 2, 1, 3});
  tensor const y = detail::attend(parts[0], parts[1], parts[2], mask, options);
  return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, d}));
}

NEAP_FUNC cross_attention::cross_attention(std::int64_t width, std::int64_t heads_, std::int64_t memory_width,
                                           attention_options o, std::source_location at)
    : heads(heads_),
      options(o) {
  place_scope const here(at);
  if (heads < 1 || width % heads != 0)
    throw_error(context_access::place(at),
                {"cross_attention: width ", width, " does not divide into ", heads, " heads"});
  q = linear(width, width, {.bias = o.bias});
  kv = linear(memory_width > 0 ? memory_width : width, 2 * width, {.bias = o.bias});
  out = linear(width, width, {.bias = o.bias});
}

NEAP_FUNC tensor cross_attention::operator()(tensor const& x, tensor const& memory, tensor const& mask,
                                             std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  neap::detail::require_rank(x, 3, "cross_attention: takes (batch, tokens, width)", at);
  neap::detail::require_rank(memory, 3, "cross_attention: takes a memory (batch, tokens, width)", at);
  detail::require_width("cross_attention", x, q.weight);
  detail::require_width("cross_attention: the memory", memory, kv.weight);
  auto const b = x.size(0), t = x.size(1), d = x.size(2), s = memory.size(1);
  if (memory.size(0) != b)
    throw_error(context_access::place(at), {"cross_attention: batches differ, ", x.type(), " and ", memory.type()});
  auto const by_heads = [](tensor const& part) { return permute(part, {0, 2, 1, 3}); };
  std::vector<tensor> const parts = split(reshape(kv(memory), {b, s, 2 * heads, d / heads}), 2, 2);
  tensor const y = detail::attend(by_heads(reshape(q(x), {b, t, heads, d / heads})), by_heads(parts[0]),
                                  by_heads(parts[1]), mask, options);
  return out(reshape(permute(y, {0, 2, 1, 3}), {b, t, d}));
}

}}}  // namespace neap::v0::nn
