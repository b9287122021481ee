// The header of a safetensors file: which tensors it holds, of which types, and where their bytes are.
//
//   8 bytes      n, the length of the header, little-endian
//   n bytes      JSON, blanks at its end:  {"__metadata__":{"key":"text"},
//                                           "up.weight":{"dtype":"F32","shape":[64,32],"data_offsets":[0,8192]}, ...}
//   the rest     the tensors' elements, row-major, little-endian; offsets count from here
//
// Three levels of objects and no other values: the reader below knows that form and nothing else of JSON, so it cannot
// be led into deep nesting. It refuses what leaves a doubt: names that come twice, bytes that belong to two tensors or to
// none, sizes that are not their shape's, keys it does not know.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/json_text.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/tensor_type.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// An element type of the format.
struct safetensors_element {
  std::string_view name;
  int bits = 0;               // of one element
  std::optional<dtype> type;  // neap's, where it has it
};
inline constexpr std::array<safetensors_element, 20> safetensors_elements{{
    {"F64", 64, dtype::f64}, {"F32", 32, dtype::f32}, {"BF16", 16, dtype::bf16}, {"F16", 16, dtype::f16},
    {"I64", 64, dtype::i64}, {"I32", 32, dtype::i32}, {"U8", 8, dtype::u8},      {"BOOL", 8, dtype::boolean},
    {"I16", 16, dtype::i16}, {"I8", 8, dtype::i8},    {"U64", 64, dtype::u64},   {"U32", 32, {}},
    {"U16", 16, {}},         {"C64", 64, {}},         {"F8_E5M2", 8, {}},        {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},      {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},        {"F4", 4, {}},
}};

/// One tensor of a file.
struct safetensors_entry {
  std::string name;
  safetensors_element element;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0, end = 0;  // its bytes, half-open, counted from the end of the header

  std::uint64_t bytes() const { return end - begin; }
  bool has_shape(shape const& s) const {
    if (dims.size() != static_cast<std::size_t>(s.rank())) return false;
    for (int i = 0; i < s.rank(); ++i)
      if (dims[static_cast<std::size_t>(i)] != s[i]) return false;
    return true;
  }
};
/// "f32[32,64]"; element types that neap has not, as the file says them.
inline std::string to_string(safetensors_entry const& e) {
  std::string text(e.element.type ? name_of(*e.element.type) : e.element.name);
  text += '[';
  for (std::size_t i = 0; i < e.dims.size(); ++i) text += (i ? "," : "") + std::to_string(e.dims[i]);
  return text + ']';
}

/// Texts that a file carries beside its tensors: key and text.
using safetensors_metadata = std::vector<std::pair<std::string, std::string>>;

namespace detail {
/// Names and their rows. (Sorting would do, and takes longer to compile than all the rest.)
class name_rows {
 public:
  std::size_t size() const { return names_.size(); }
  /// The row of a name, number_map::none if it has none. O(1) expected, like add.
  std::uint32_t find(std::string_view name) const {
    for (std::uint64_t key = hash(name);; ++key)
      if (auto const row = rows_.find(key); row == number_map::none || names_[row] == name) return row;
  }
  /// Gives a name the next row; false if it has one.
  bool add(std::string_view name) {
    if (find(name) != number_map::none) return false;
    std::uint64_t key = hash(name);
    while (!rows_.add(key, static_cast<std::uint32_t>(names_.size()))) ++key;
    names_.emplace_back(name);
    return true;
  }

 private:
  static std::uint64_t hash(std::string_view name) { return std::hash<std::string_view>{}(name); }
  number_map rows_;  // hashes, or the next free numbers
  std::vector<std::string> names_;
};
}  // namespace detail

struct safetensors_header {
  std::vector<safetensors_entry> tensors;  // in the file's order, like the metadata
  safetensors_metadata metadata;
  detail::name_rows rows;  // of the tensors

  /// The tensor of a name, or nullptr. O(1) expected.
  safetensors_entry const* find(std::string_view name) const {
    auto const row = rows.find(name);
    return row == number_map::none ? nullptr : &tensors[row];
  }
};

/// Longer headers are refused, as the format's own library does.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;

namespace detail {

/// A name within a message of one line.
inline std::string in_quotes(std::string_view name) {
  return name.size() > 200 ? json_text(name.substr(0, 200)) + "..." : json_text(name);
}

/// The bytes of the UTF-8 character that a text begins with; 0 if it begins with none.
inline std::size_t utf8_length(std::string_view s) {
  auto const byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  auto const follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  unsigned const first = byte(0), second = byte(1);
  if (s.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {  // not what fits in two bytes, no half of a pair of UTF-16
    bool const right = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);
    return right && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {  // not what fits in three bytes, nothing above U+10FFFF
    bool const right = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
    return right && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}
inline bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    auto const n = utf8_length(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}
inline void append_utf8(std::string& to, std::uint32_t c) {
  auto const add = [&](std::uint32_t x) { to += static_cast<char>(x); };
  if (c < 0x80) return add(c);
  if (c < 0x800) add(0xc0 | c >> 6);
  else if (c < 0x10000) add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f));
  else add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f));
  add(0x80 | (c & 0x3f));
}

/// Reads a header from its first byte to its last; throws neap::error at the first that cannot stand there.
class safetensors_reader {
 public:
  explicit safetensors_reader(std::string_view text) : text_(text) {}

  safetensors_header header() {
    safetensors_header h;
    bool described = false;
    if (next() != '{') fail("must begin with {");
    members([&](std::string name) {
      if (name == "__metadata__") {
        if (std::exchange(described, true)) fail("__metadata__ comes twice");
        if (word("null")) return;
        return members([&](std::string key) { h.metadata.emplace_back(std::move(key), text()); });
      }
      inside_ = "tensor " + in_quotes(name) + ": ";
      h.tensors.push_back(entry(std::move(name)));
      inside_.clear();
    });
    next();
    if (at_ != text_.size()) fail("must end after its last }");
    return h;
  }

 private:
  [[noreturn]] void fail(std::string const& what) const { throw_error({"header, byte ", at_, ": ", inside_, what}); }
  /// The next character after blanks; 0 at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("must be ") + c);
  }
  bool word(std::string_view w) {
    next();
    bool const is_there = text_.substr(at_, w.size()) == w;
    if (is_there) at_ += w.size();
    return is_there;
  }
  /// Any value, which lies within so many others.
  void pass_over(int depth) {
    switch (next()) {
      case '"': return void(text());
      case '{':
      case '[': {
        bool const is_list = text_[at_] == '[';
        if (++depth > 127) fail("lies within more than 127 others");
        if (!is_list) return members([&](std::string const&) { pass_over(depth); });
        ++at_;
        if (take(']')) return;
        do pass_over(depth);
        while (take(','));
        return expect(']');
      }
      default: break;
    }
    if (word("null") || word("true") || word("false")) return;
    auto const from = at_;
    auto const digits = [&] {
      auto const first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ - first;
    };
    auto const sign = [&](char c) { return at_ < text_.size() && text_[at_] == c && ++at_ > 0; };
    (void)sign('-');
    bool const zero = at_ < text_.size() && text_[at_] == '0';
    auto const whole = digits();
    bool is_number = zero ? whole == 1 : whole > 0;
    if (sign('.')) is_number = digits() > 0 && is_number;
    if (sign('e') || sign('E')) {
      if (!sign('+')) (void)sign('-');
      is_number = digits() > 0 && is_number;
    }
    if (!is_number) fail("must be a value");
    if (std::isinf(std::strtod(std::string(text_.substr(from, at_ - from)).c_str(), nullptr)))
      fail("a number beyond doubles");
  }
  /// f(key) for each member of an object; f reads the value.
  template <class F>
  void members(F f) {
    expect('{');
    if (take('}')) return;
    do {
      next();
      auto key = text();
      expect(':');
      f(std::move(key));
    } while (take(','));
    expect('}');
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> list;
    expect('[');
    if (take(']')) return list;
    do list.push_back(number());
    while (take(','));
    expect(']');
    return list;
  }
  std::int64_t number() {
    auto const is_digit = [&] { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; };
    next();
    if (!is_digit()) fail("must be a whole number of at least 0");
    std::size_t const first = at_;
    std::int64_t n = 0;
    for (; is_digit(); ++at_)
      if (__builtin_mul_overflow(n, std::int64_t{10}, &n) ||
          __builtin_add_overflow(n, std::int64_t{text_[at_] - '0'}, &n))
        fail("must be a whole number below 2^63");
    if (text_[first] == '0' && at_ > first + 1) fail("a whole number does not begin with 0");
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E'))
      fail("must be a whole number, without a point or an exponent");
    return n;
  }
  std::uint32_t four_digits() {
    std::uint32_t u = 0;
    for (int i = 0; i < 4; ++i) {
      auto const digit =
          std::string_view("0123456789abcdef")
              .find(at_ < text_.size()
                        ? static_cast<char>(text_[at_] >= 'A' && text_[at_] <= 'F' ? text_[at_] + 32 : text_[at_])
                        : '?');
      if (digit == std::string_view::npos) fail("must be four hexadecimal digits");
      u = u << 4 | static_cast<std::uint32_t>(digit);
      ++at_;
    }
    return u;
  }
  std::string text() {
    expect('"');
    std::string s;
    for (;;) {
      if (at_ == text_.size()) fail("the text has no end");
      char const c = text_[at_];
      if (c == '"') return ++at_, s;
      if (static_cast<unsigned char>(c) < 0x20) fail("a text cannot hold a control character");
      if (c != '\\') {
        auto const n = utf8_length(text_.substr(at_));
        if (n == 0) fail("the text is not UTF-8");
        s += text_.substr(at_, n);
        at_ += n;
        continue;
      }
      ++at_;
      auto const escape =
          at_ < text_.size() ? std::string_view("\"\\/bfnrtu").find(text_[at_]) : std::string_view::npos;
      if (escape == std::string_view::npos) fail("no such escape in a text");
      ++at_;
      if (escape < 8) {
        s += "\"\\/\b\f\n\r\t"[escape];
        continue;
      }
      auto u = four_digits();
      if (u >= 0xdc00 && u < 0xe000) fail("half of a pair of UTF-16");
      if (u >= 0xd800 && u < 0xdc00) {
        if (text_.substr(at_, 2) != "\\u") fail("half of a pair of UTF-16");
        at_ += 2;
        auto const low = four_digits();
        if (low < 0xdc00 || low >= 0xe000) fail("half of a pair of UTF-16");
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
      }
      append_utf8(s, u);
    }
  }
  safetensors_entry entry(std::string name) {
    safetensors_entry e;
    e.name = std::move(name);
    bool has_type = false, has_shape = false, has_offsets = false;
    members([&](std::string const& key) {
      if (key == "dtype" && !std::exchange(has_type, true)) {
        auto const word = text();
        for (auto const& known : safetensors_elements)
          if (known.name == word) e.element = known;
        if (e.element.bits == 0) fail("dtype: " + in_quotes(word) + " is not known");
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        e.dims = numbers();
      } else if (key == "data_offsets" && !std::exchange(has_offsets, true)) {
        auto const two = numbers();
        if (two.size() != 2 || two[0] > two[1]) fail("data_offsets: must be two numbers, first byte and end");
        e.begin = static_cast<std::uint64_t>(two[0]), e.end = static_cast<std::uint64_t>(two[1]);
      } else if (key == "dtype" || key == "shape" || key == "data_offsets") {
        fail(key + " comes twice");
      } else {
        pass_over(2);
      }
    });
    for (auto [has, key] : {std::pair{has_type, "dtype"}, {has_shape, "shape"}, {has_offsets, "data_offsets"}})
      if (!has) fail(std::string("lacks ") + key);
    return e;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string inside_;
};

/// Bytes of a tensor; none if they are no whole number or have more than 63 bits.
inline std::optional<std::uint64_t> bytes_of(safetensors_entry const& e) {
  for (auto x : e.dims)
    if (x == 0) return 0;
  std::int64_t bits = e.element.bits;
  for (auto x : e.dims)
    if (__builtin_mul_overflow(bits, x, &bits)) return {};
  if (bits % 8) return {};
  return static_cast<std::uint64_t>(bits / 8);
}

}  // namespace detail

namespace detail {
/// Every byte of the data must be one tensor's, and no other's.
inline status check_places(std::vector<safetensors_entry> const& all, std::uint64_t data_bytes) {
  auto const refuse = [](safetensors_entry const& e, std::string const& why) {
    return failure{"tensor " + in_quotes(e.name) + ": data_offsets: [" + std::to_string(e.begin) + "," +
                   std::to_string(e.end) + "] " + why};
  };
  number_map begins;  // where each tensor that has bytes begins
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& e = all[i];
    if (e.end > data_bytes)
      return refuse(e, "end behind the file's " + std::to_string(data_bytes) + " bytes of data: it is cut off");
    if (e.bytes() > 0 && !begins.add(e.begin, static_cast<std::uint32_t>(i)))
      return refuse(e, "share bytes with another tensor");
  }
  std::uint64_t at = 0;  // from one to the next
  std::vector<char> seen(all.size());
  while (begins.contains(at)) {
    auto const row = begins.find(at);
    seen[row] = 1;
    at = all[row].end;
  }
  safetensors_entry const* next = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (seen[i] || all[i].bytes() == 0) continue;
    if (all[i].begin < at) return refuse(all[i], "share bytes with another tensor");
    if (!next || all[i].begin < next->begin) next = &all[i];
  }
  if (next) return failure{"bytes " + std::to_string(at) + " to " + std::to_string(next->begin) + " are no tensor's"};
  if (at != data_bytes)
    return failure{"the last " + std::to_string(data_bytes - at) + " of " + std::to_string(data_bytes) +
                   " bytes of data are no tensor's"};
  for (auto const& e : all)
    if (e.bytes() == 0 && e.begin != data_bytes && !begins.contains(e.begin))
      return refuse(e, "lie within another tensor");
  return {};
}
}  // namespace detail

/// Reads the JSON of a file in which `data_bytes` bytes follow it. Refuses, with one line that says what and where, all
/// that is not exactly such a header. Linear in its length.
inline result<safetensors_header> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes) {
  using detail::in_quotes;
  safetensors_header h;
  try {
    h = detail::safetensors_reader(json).header();
  } catch (error const& e) { return failure{e.what()}; }
  for (auto const& e : h.tensors) {
    auto const bytes = detail::bytes_of(e);
    if (!bytes || *bytes != e.bytes())
      return failure{"tensor " + in_quotes(e.name) + ": data_offsets: [" + std::to_string(e.begin) + "," +
                     std::to_string(e.end) + "] are " + std::to_string(e.bytes()) + " bytes, " + to_string(e) +
                     (bytes ? " has " + std::to_string(*bytes) : " has no such number")};
    if (!h.rows.add(e.name)) return failure{"tensor " + in_quotes(e.name) + " comes twice"};
  }
  detail::name_rows keys;
  for (auto const& [key, text] : h.metadata)
    if (!keys.add(key)) return failure{"__metadata__: " + in_quotes(key) + " comes twice"};
  if (auto s = detail::check_places(h.tensors, data_bytes); !s) return failure{s.message()};
  return h;
}

/// The first bytes of a file: the header's length and the header, filled with blanks so that the data begin at a multiple
/// of 8. `tensors` have their offsets already.
inline std::string safetensors_head(std::vector<safetensors_entry> const& tensors,
                                    safetensors_metadata const& metadata) {
  using detail::json_text;
  std::string json = "{";
  auto const begin_member = [&](std::string_view name) {
    if (json.size() > 1) json += ',';
    json += json_text(name) + ":{";
  };
  if (!metadata.empty()) {
    begin_member("__metadata__");
    for (auto const& [key, text] : metadata)
      json += (json.back() == '{' ? "" : ",") + json_text(key) + ":" + json_text(text);
    json += '}';
  }
  for (auto const& e : tensors) {
    begin_member(e.name);
    json += "\"dtype\":\"" + std::string(e.element.name) + "\",\"shape\":[";
    for (std::size_t i = 0; i < e.dims.size(); ++i) json += (i ? "," : "") + std::to_string(e.dims[i]);
    json += "],\"data_offsets\":[" + std::to_string(e.begin) + "," + std::to_string(e.end) + "]}";
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string head(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) head[i] = static_cast<char>(static_cast<std::uint64_t>(json.size()) >> 8 * i);
  return head + json;
}

}}  // namespace neap::v0
