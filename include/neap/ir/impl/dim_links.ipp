// The bodies of <neap/ir/dim_links.hpp>.
#pragma once

#include <neap/ir/dim_links.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string to_text(std::span<dim_link const> links) {
  std::string s;
  for (auto const& l : links) {
    if (!s.empty()) s += ' ';
    s +=
        std::to_string(l.input) + '.' + std::to_string(l.in_axis) + detail::link_signs[static_cast<std::size_t>(l.how)];
    if (l.output >= 0) s += std::to_string(l.output) + '.';
    s += std::to_string(l.out_axis);
  }
  return s;
}

NEAP_FUNC void relate_by_text(std::string_view text, dim_context& c) {
  std::size_t at = 0;
  auto const number = [&] {
    int n = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') n = 10 * n + (text[at++] - '0');
    return n;
  };
  while (at < text.size()) {
    int const input = number();
    ++at;  // the dot
    int const axis = number();
    if (at == text.size()) return;
    auto const how = detail::link_signs.find(text[at++]);
    int const a = number();
    if (how == 0) {
      ++at;
      int const b = number();
      c.same(input, axis, a, b);
    } else {
      c.reduced(input, axis, a, static_cast<combine>(how));
    }
    if (at < text.size()) ++at;  // the space
  }
}

}}  // namespace neap::v0
