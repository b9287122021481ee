// Mistakes in the parts that fission has made.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/schedule/order.hpp>

#include "graph_text.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

/// Where the lines begin of ops that are parts, or join them.
inline std::vector<std::size_t> lines_of_parts(std::string const& text) {
  std::vector<std::size_t> lines;
  for (std::size_t at = text.find("\nop "); at != text.npos; at = text.find("\nop ", at + 1)) {
    auto const line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    for (char const* word : {" part ", " slice ", " place ", " combine_into ", " mul_scalar ", " blank "})
      if (line.find(word) != line.npos) {
        lines.push_back(at + 1);
        break;
      }
  }
  return lines;
}
/// The text with another number in one of the lines - of an attribute, an argument, a part - and the line as it was.
inline std::pair<std::string, std::string> change_a_number(std::string const& text,
                                                           std::vector<std::size_t> const& lines, random_stream& draw) {
  auto const from = lines[draw.below(static_cast<std::uint32_t>(lines.size()))];
  auto const end = text.find('\n', from);
  auto const is_digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  std::vector<std::size_t> digits;  // not those of the op's own id, which would not be read
  for (auto at = text.find(' ', from + 3); at < end; ++at)
    if (is_digit(at) && !is_digit(at - 1)) digits.push_back(at);
  if (digits.empty()) return {text, {}};
  auto const at = digits[draw.below(static_cast<std::uint32_t>(digits.size()))];
  auto stop = at;
  while (is_digit(stop)) ++stop;
  auto const number = std::strtoll(text.c_str() + at, nullptr, 10);
  auto const other = draw.below(2)                 ? number + 1
                     : draw.below(2) && number > 0 ? number - 1
                                                   : std::int64_t{draw.below(40)};
  auto changed = text;
  changed.replace(at, stop - at, std::to_string(other));
  return {changed, text.substr(from, end - from) + "  ->  " + std::to_string(other)};
}

/// Calls f(graph, order, what) for graphs made of an edit by one wrong number each, which are graphs all the same and can run;
/// `what` tells the line.
template <class F>
void each_mistake(edited const& e, random_stream& draw, int tries, F&& f) {
  auto const text = to_text(e.graph);
  auto const lines = lines_of_parts(text);
  for (int k = 0; k < tries && !lines.empty(); ++k) {
    auto const [changed, what] = change_a_number(text, lines, draw);
    auto const parsed = parse_graph(standard_operators::facets, changed);
    if (!parsed || parsed->digest() == e.graph.digest()) continue;  // no graph at all, or one that says the same
    graph const wrong{op_graph(*parsed)};
    auto const order = check_order(wrong, e.order).ok() ? e.order : given_order{}(wrong);
    if (check_order(wrong, order).ok()) f(wrong, order, what);
  }
}

}  // namespace neap::testing
