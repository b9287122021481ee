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
  std::size_t from = 0, to = 0;      // tokens of the body, without its braces
  std::uint32_t max_threads = 1024;  // of a block: .maxntid
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

/// Reads PTX text. Bodies of functions are read when a kernel that reaches them is launched.
/// Throws ptx::error with the line if the text is not PTX.
module parse(std::string text);

/// The kernel, decoded. Throws ptx::error for an opcode or a name that is unknown, with its line.
std::shared_ptr<kernel_code const> link(module const& m, std::string_view kernel);

}  // namespace neap::testing::ptx
