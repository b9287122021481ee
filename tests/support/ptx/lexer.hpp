// Words of PTX text with their lines.
#pragma once

#include "report.hpp"

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace neap::testing::ptx {

struct token {
  enum class kind { word, number, text, sign, end } is = kind::end;
  std::string_view text;
  int line = 0;
  bool operator==(std::string_view s) const { return is != kind::text && text == s; }
};

/// All tokens, an end token last. Comments and lines of debugging information (.loc, .file) are left out.
inline std::vector<token> tokens_of(std::string_view s) {
  std::vector<token> out;
  int line = 1;
  std::size_t i = 0;
  auto const at = [&](std::size_t k) { return k < s.size() ? s[k] : '\0'; };
  auto const is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
  };
  while (i < s.size()) {
    char const c = s[i];
    if (c == '\n') {
      ++line, ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (c == '/' && at(i + 1) == '/') {
      while (i < s.size() && s[i] != '\n') ++i;
    } else if (c == '/' && at(i + 1) == '*') {
      auto const end = s.find("*/", i + 2);
      if (end == s.npos) throw error(line, "a comment without end");
      for (; i < end + 2; ++i) line += s[i] == '\n';
    } else if (c == '"') {
      auto const end = s.find('"', i + 1);
      if (end == s.npos) throw error(line, "a string without end");
      out.push_back({token::kind::text, s.substr(i + 1, end - i - 1), line});
      i = end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      auto const from = i;
      while (std::isalnum(static_cast<unsigned char>(at(i))) ||
             (at(i) == '.' && std::isdigit(static_cast<unsigned char>(at(i + 1)))))
        ++i;
      out.push_back({token::kind::number, s.substr(from, i - from), line});
    } else if (is_word(c)) {
      auto const from = i;
      while (is_word(at(i)) || (at(i) == ':' && at(i + 1) == ':' && is_word(at(i + 2)))) i += at(i) == ':' ? 2 : 1;
      auto const word = s.substr(from, i - from);
      if (word == ".loc" || word == ".file") {
        while (i < s.size() && s[i] != '\n') ++i;
      } else {
        out.push_back({token::kind::word, word, line});
      }
    } else {
      out.push_back({token::kind::sign, s.substr(i, 1), line});
      ++i;
    }
  }
  out.push_back({token::kind::end, {}, line});
  return out;
}

}  // namespace neap::testing::ptx
