// The bodies of <neap/model/nn/rotary.hpp>.
#pragma once

#include <neap/model/nn/rotary.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC rotary::rotary(std::int64_t context, std::int64_t head, double base, std::source_location at) {
  if (context < 0) throw_error(context_access::place(at), {"rotary: a context of ", context, " tokens"});
  if (head < 2 || head % 2 != 0)
    throw_error(context_access::place(at), {"rotary: the width of a head must be even, not ", head});
  std::vector<float> c, s;
  for (std::int64_t t = 0; t < context; ++t)
    for (std::int64_t i = 0; i < head; ++i) {
      double const angle = static_cast<double>(t) *
                           std::pow(base, -2.0 * static_cast<double>(i % (head / 2)) / static_cast<double>(head));
      c.push_back(static_cast<float>(std::cos(angle)));
      s.push_back(static_cast<float>(i < head / 2 ? -std::sin(angle) : std::sin(angle)));
    }
  cosine = neap::constant(neap::detail::make_copy(c, {context, head}, at));
  sine = neap::constant(neap::detail::make_copy(s, {context, head}, at));
}

NEAP_FUNC tensor rotary::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  neap::detail::require_rank(x, 4, "rotary: takes (batch, heads, tokens, width)", at);
  auto const t = x.size(2), d = x.size(3);
  if (t > cosine.size(0) || d != cosine.size(1))
    throw_error(context_access::place(at),
                {"rotary: has angles for ", cosine.shape(), " tokens and widths, got ", x.type()});
  tensor const swapped = concat({slice(x, 3, d / 2, d), slice(x, 3, 0, d / 2)}, 3);
  auto const angles = [&](tensor const& table) { return cast(slice(table, 0, 0, t), x.element()); };
  return x * angles(cosine) + swapped * angles(sine);
}

}}}  // namespace neap::v0::nn
