// A parsed PTX text: its functions, whose bodies are decoded when a kernel is first launched, and its variables.
#pragma once

#include "lexer.hpp"
#include "program.hpp"

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neap::testing::ptx {

enum class type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64
};

inline type type_named(std::string_view s) {
  static std::map<std::string_view, type> const all{
      {"pred", type::pred},   {"b8", type::b8},     {"b16", type::b16},       {"b32", type::b32},   {"b64", type::b64},
      {"b128", type::b128},   {"u8", type::u8},     {"u16", type::u16},       {"u32", type::u32},   {"u64", type::u64},
      {"s8", type::s8},       {"s16", type::s16},   {"s32", type::s32},       {"s64", type::s64},   {"f16", type::f16},
      {"f16x2", type::f16x2}, {"bf16", type::bf16}, {"bf16x2", type::bf16x2}, {"tf32", type::tf32}, {"f32", type::f32},
      {"f64", type::f64}};
  auto const it = all.find(s);
  return it == all.end() ? type::none : it->second;
}
inline unsigned bytes_of(type t) {
  switch (t) {
    case type::b8:
    case type::u8:
    case type::s8:
    case type::pred: return 1;
    case type::b16:
    case type::u16:
    case type::s16:
    case type::f16:
    case type::bf16: return 2;
    case type::b64:
    case type::u64:
    case type::s64:
    case type::f64: return 8;
    case type::b128: return 16;
    default: return 4;
  }
}

/// A literal: the bits of an integer or of 0f..., 0d...; a decimal fraction is rounded to f32 where `single`.
inline std::uint64_t literal(token const& t, bool single) {
  std::string s{t.text};
  auto const digits = [&](std::string const& d, int base) {
    char* end = nullptr;
    std::uint64_t const v = std::strtoull(d.c_str(), &end, base);
    if (d.empty() || *end) throw error(t.line, "a number: " + s);
    return v;
  };
  if (s.size() > 2 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D'))
    return digits(s.substr(2), 16);
  if (s.find('.') != s.npos) {
    double const x = std::strtod(s.c_str(), nullptr);
    return single ? std::bit_cast<std::uint32_t>(static_cast<float>(x)) : std::bit_cast<std::uint64_t>(x);
  }
  if (s.back() == 'U') s.pop_back();
  if (s.size() > 2 && s[0] == '0' && (s[1] == 'b' || s[1] == 'B')) return digits(s.substr(2), 2);
  return digits(s, 0);
}

struct declared {  // a variable or a parameter, as it is written
  std::string name;
  unsigned align = 1;
  std::uint32_t bytes = 0;
  bool open = false;  // name[]: its size comes with the launch
  int line = 0;
};
struct module_variable {
  declared d;
  space where = space::global;
  std::vector<std::uint8_t> initial;
  std::vector<std::pair<std::size_t, std::string>> addresses;  // where the address of another variable stands
};
struct function_text {
  std::string name;
  bool is_kernel = false;
  std::vector<declared> results, parameters;
  std::size_t from = 0, to = 0;       // tokens of the body, without its braces
  std::uint32_t most_threads = 1024;  // of a block: .maxntid
  int line = 0;
};

struct module {
  std::shared_ptr<std::string const> text;
  int target = 0;  // 80 for sm_80
  std::vector<token> tokens;
  std::map<std::string, function_text, std::less<>> functions;
  std::vector<module_variable> variables;
  mutable std::map<std::string, std::shared_ptr<kernel_code const>> linked;

  std::vector<std::string> kernels() const {
    std::vector<std::string> out;
    for (auto const& [name, f] : functions)
      if (f.is_kernel && f.to) out.push_back(name);
    return out;
  }
  /// The kernel of that name, or the only one whose name has it in it.
  function_text const& kernel(std::string_view name) const {
    if (auto const it = functions.find(name); it != functions.end() && it->second.is_kernel) return it->second;
    function_text const* found = nullptr;
    std::string all;
    for (auto const& [n, f] : functions)
      if (f.is_kernel && f.to && n.find(name) != n.npos) {
        if (found) all += (all.empty() ? found->name : "") + ", " + n;
        found = &f;
      }
    if (!found) throw error("no kernel is named '" + std::string(name) + "'");
    if (!all.empty()) throw error("several kernels have '" + std::string(name) + "' in their names: " + all);
    return *found;
  }
};

namespace detail {

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

}  // namespace detail

/// Reads PTX text. Bodies of functions are read when a kernel that reaches them is launched.
/// Throws ptx::error with the line if the text is not PTX.
inline module parse(std::string text) {
  module m;
  m.text = std::make_shared<std::string const>(std::move(text));
  m.tokens = tokens_of(*m.text);
  detail::reader r{m.tokens};
  while (r.look().is != token::kind::end) {
    token const& t = r.next();
    if (t == ".version" || t == ".address_size") {
      r.next();
    } else if (t == ".target") {
      do {
        auto const& name = r.next();
        if (name.text.starts_with("sm_")) m.target = std::atoi(std::string(name.text.substr(3)).c_str());
      } while (r.take(","));
    } else if (t == ".visible" || t == ".extern" || t == ".weak" || t == ".common" || t == ";") {
    } else if (t == ".pragma" || t == ".alias") {
      r.skip_to(";");
    } else if (t == ".section") {
      r.skip_to("{");
      r.skip_braces();
    } else if (t == ".global" || t == ".const" || t == ".shared") {
      module_variable v;
      v.where = t == ".shared" ? space::shared : t == ".const" ? space::constant : space::global;
      std::size_t const start = r.at;
      v.d = detail::declaration(r);
      unsigned element = 1;
      for (std::size_t k = start; k < r.at; ++k)
        if (auto const found = type_named(m.tokens[k].text.substr(std::min<std::size_t>(1, m.tokens[k].text.size())));
            found != type::none)
          element = bytes_of(found);
      if (r.take("=")) detail::initial_values(r, v, element);
      r.expect(";");
      m.variables.push_back(std::move(v));
    } else if (t == ".entry" || t == ".func") {
      function_text f;
      f.is_kernel = t == ".entry";
      f.line = t.line;
      if (!f.is_kernel) {
        r.take(".noreturn");
        f.results = detail::parameters(r);
      }
      f.name = std::string(r.next().text);
      f.parameters = detail::parameters(r);
      while (!(r.look() == "{") && !(r.look() == ";")) {  // .minnctapersm and the like
        if (!(r.next() == ".maxntid")) continue;
        f.most_threads = 1;
        do f.most_threads *= static_cast<std::uint32_t>(literal(r.next(), false));
        while (r.take(","));
      }
      if (r.take("{")) {
        f.from = r.at;
        r.skip_braces();
        f.to = r.at - 1;
      }
      auto& known = m.functions[f.name];
      if (!known.to) known = std::move(f);
    } else {
      throw error(t.line, "'" + std::string(t.text) + "' begins no declaration");
    }
  }
  return m;
}

}  // namespace neap::testing::ptx
