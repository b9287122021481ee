// Reads the tokens of a PTX text: declarations and their initial values.
#pragma once

#include "lexer.hpp"
#include "module.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap::testing::ptx::detail {

/// Reads tokens one after the other.
struct reader {
  std::vector<token> const& all;
  std::size_t at = 0;

  token const& look(std::size_t k = 0) const { return all[std::min(at + k, all.size() - 1)]; }
  token const& next() {
    if (look().is == token::kind::end) throw error(look().line, "the text ends too early");
    return all[at++];
  }
  bool take(std::string_view s) {
    if (!(look() == s)) return false;
    ++at;
    return true;
  }
  void expect(std::string_view s) {
    if (!take(s))
      throw error(look().line, "'" + std::string(s) + "' expected before '" + std::string(look().text) + "'");
  }
  void skip_to(std::string_view s) {
    while (!take(s)) next();
  }
  void skip_braces() {  // behind the first brace: to behind its partner
    for (int depth = 1; depth;) {
      auto const& t = next();
      depth += (t == "{") - (t == "}");
    }
  }
};

/// `.align 4 .b8 name[16]`, after the word of its space.
inline declared declaration(reader& r) {
  declared d;
  type t = type::none;
  d.line = r.look().line;
  unsigned align = 0;
  while (r.look().text.starts_with('.')) {
    auto const word = r.next().text;
    if (word == ".align") align = static_cast<unsigned>(literal(r.next(), false));
    else if (word == ".ptr") {  // of a parameter: what it points to
      while (r.look() == ".global" || r.look() == ".shared" || r.look() == ".const" || r.look() == ".local") r.next();
      if (r.take(".align")) r.next();
    } else if (word == ".attribute") {
      r.skip_to(")");
    } else if (auto const found = type_named(word.substr(1)); found != type::none) {
      t = found;
    } else if (word == ".v2" || word == ".v4") {
      throw error(d.line, "variables of vector type are not supported");
    }
  }
  if (t == type::none) throw error(d.line, "a type expected before '" + std::string(r.look().text) + "'");
  d.name = std::string(r.next().text);
  std::uint64_t count = 1;
  while (r.take("[")) {
    if (r.take("]")) {
      d.open = true;
      continue;
    }
    count *= literal(r.next(), false);
    r.expect("]");
  }
  d.bytes = d.open ? 0 : static_cast<std::uint32_t>(count * bytes_of(t));
  d.align = align ? align : bytes_of(t);
  return d;
}

inline std::vector<declared> parameters(reader& r) {
  std::vector<declared> out;
  if (!r.take("(")) return out;
  while (!r.take(")")) {
    if (!r.take(".param")) r.expect(".reg");
    out.push_back(declaration(r));
    r.take(",");
  }
  return out;
}

inline void initial_values(reader& r, module_variable& v, unsigned element) {
  v.initial.assign(v.d.bytes, 0);
  std::size_t at = 0;
  auto const one = [&](auto const& self) -> void {
    if (r.take("{")) {
      while (!r.take("}")) {
        self(self);
        r.take(",");
      }
      return;
    }
    bool const minus = r.take("-");
    token const& t = r.next();
    if (t.is == token::kind::word) {
      if (t == "generic") {
        r.expect("(");
        v.addresses.emplace_back(at, std::string(r.next().text));
        r.expect(")");
      } else {
        v.addresses.emplace_back(at, std::string(t.text));
      }
    } else {
      std::uint64_t x = literal(t, element == 4);
      if (minus) x = 0 - x;
      for (unsigned k = 0; k < element && at + k < v.initial.size(); ++k)
        v.initial[at + k] = static_cast<std::uint8_t>(x >> (8 * k));
    }
    at += element;
  };
  one(one);
}

}  // namespace neap::testing::ptx::detail
