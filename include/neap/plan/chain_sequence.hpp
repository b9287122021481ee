// What is run, in order, to train a chain of blocks: the words of Rotor. As text a token a step, apart by spaces:
//
//     C3    forward of block 3 that saves nothing, its input is kept      N3   the same, its input is dropped
//     E3.2  forward of block 3 that leaves what option 2 saves            B3   its backward
//     L     the loss
#pragma once

#include <neap/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

enum class chain_step : std::uint8_t { pass_keep, pass_drop, save, loss, backward };

struct chain_op {
  chain_step step = chain_step::loss;
  std::uint32_t block = 0;   // of all but the loss
  std::uint32_t option = 0;  // of save
  friend bool operator==(chain_op const&, chain_op const&) = default;
};

using chain_sequence = std::vector<chain_op>;

inline std::string to_string(chain_op const& op) {
  switch (op.step) {
    case chain_step::pass_keep: return "C" + std::to_string(op.block);
    case chain_step::pass_drop: return "N" + std::to_string(op.block);
    case chain_step::save: return "E" + std::to_string(op.block) + "." + std::to_string(op.option);
    case chain_step::backward: return "B" + std::to_string(op.block);
    case chain_step::loss: break;
  }
  return "L";
}

inline std::string to_string(chain_sequence const& sequence) {
  std::string text;
  for (auto const& op : sequence) {
    if (!text.empty()) text += ' ';
    text += to_string(op);
  }
  return text;
}

/// The sequence that a text says. Fails with the number of the first token, from 0, that is none.
inline result<chain_sequence> parse_chain_sequence(std::string_view text) {
  chain_sequence out;
  for (std::size_t at = 0;;) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == text.npos) return out;
    auto const end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    auto const token = text.substr(at, end - at);
    auto const no_token = [&] {
      std::string shown;
      for (char c : token.substr(0, 20)) shown += c >= 0x20 && c < 0x7f ? c : '?';
      return failure{"token " + std::to_string(out.size()) + ": \"" + shown + "\" is none of C3, N3, E3.2, L, B3"};
    };
    chain_op op;
    char const *from = token.data() + 1, *const stop = token.data() + token.size();
    auto const number = [&](std::uint32_t& n) {
      auto const [next, code] = std::from_chars(from, stop, n);
      from = next;
      return code == std::errc{};
    };
    bool good = true;
    switch (token[0]) {
      case 'C': op.step = chain_step::pass_keep, good = number(op.block); break;
      case 'N': op.step = chain_step::pass_drop, good = number(op.block); break;
      case 'B': op.step = chain_step::backward, good = number(op.block); break;
      case 'E':
        op.step = chain_step::save;
        good = number(op.block) && from != stop && *from++ == '.' && number(op.option);
        break;
      case 'L': break;
      default: good = false;
    }
    if (!good || from != stop) return no_token();
    out.push_back(op);
    at = end;
  }
}

}}  // namespace neap::v0
