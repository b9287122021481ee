#include <neap/core/safetensors_header.hpp>

#include <neap/core/philox.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <set>

using namespace neap;

namespace {

std::string message(std::string const& json, std::uint64_t bytes) {
  return parse_safetensors_header(json, bytes).message();
}

/// A file's tensors, one after another.
std::vector<safetensors_entry> entries(std::vector<std::pair<std::string, std::vector<std::int64_t>>> const& list) {
  std::vector<safetensors_entry> all;
  std::uint64_t end = 0;
  std::size_t kind = 0;
  for (auto const& [name, dims] : list) {
    safetensors_entry e{name, safetensors_elements[kind++ % 13], dims, end, 0};
    e.end = end += *detail::bytes_of(e);
    all.push_back(e);
  }
  return all;
}

bool equal(safetensors_header const& h, std::vector<safetensors_entry> const& all,
           safetensors_metadata const& metadata) {
  if (h.tensors.size() != all.size() || h.metadata != metadata) return false;
  for (auto const& e : all) {
    auto const* f = h.find(e.name);
    if (!f || f->element.name != e.element.name || f->dims != e.dims || f->begin != e.begin || f->end != e.end)
      return false;
  }
  return true;
}

/// The same by a JSON library: the header that a text is, if it is one. Duplicates are told apart by counting keys.
bool is_header(std::string const& text, std::uint64_t bytes) {
  using nlohmann::json;
  if (text.find('\0') != text.npos) return false;  // the library takes it for the end
  bool twice = false;
  std::vector<std::set<std::string>> keys;
  std::string top;
  auto const watch = [&](int, json::parse_event_t event, json& at) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      auto const key = at.get<std::string>();
      if (keys.size() == 1) top = key;
      bool const counts = keys.size() == 1 || (keys.size() == 2 && top == "__metadata__") ||
                          (keys.size() == 2 && (key == "dtype" || key == "shape" || key == "data_offsets"));
      twice = (!keys.back().insert(key).second && counts) || twice;
    }
    return true;
  };
  auto const j = json::parse(text, watch, false);
  if (j.is_discarded() || twice || !j.is_object()) return false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (auto const& [name, t] : j.items()) {
    if (name == "__metadata__" && t.is_null()) continue;
    if (!t.is_object()) return false;
    if (name == "__metadata__") {
      for (auto const& [key, value] : t.items())
        if (!value.is_string()) return false;
      continue;
    }
    if (!t.contains("dtype") || !t.contains("shape") || !t.contains("data_offsets")) return false;
    if (!t["dtype"].is_string() || !t["shape"].is_array() || !t["data_offsets"].is_array()) return false;
    safetensors_entry e;
    for (auto const& x : safetensors_elements)
      if (x.name == t["dtype"].get<std::string>()) e.element = x;
    if (e.element.bits == 0 || t["data_offsets"].size() != 2) return false;
    for (auto const* list : {&t["shape"], &t["data_offsets"]})
      for (auto const& n : *list)
        if (!n.is_number_unsigned() || n.get<std::uint64_t>() > INT64_MAX) return false;
    e.dims = t["shape"].get<std::vector<std::int64_t>>();
    auto const offsets = t["data_offsets"].get<std::vector<std::uint64_t>>();
    if (offsets[0] > offsets[1] || detail::bytes_of(e) != offsets[1] - offsets[0]) return false;
    parts.emplace_back(offsets[0], offsets[1]);
  }
  std::sort(parts.begin(), parts.end());
  std::uint64_t end = 0;
  for (auto [a, b] : parts) {
    if (a != end) return false;
    end = b;
  }
  return end == bytes;
}

}  // namespace

TEST_CASE("a header reads back as it was written, and the data begin at a multiple of 8") {
  auto const all = entries({{"up.weight", {64, 32}},
                            {"", {}},
                            {"b\"\\/\n\t\x01", {3}},
                            {"größe.重み.🙂", {0, 5}},
                            {"layers.0", {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                            {"five", {5}},
                            {"six", {1}}});
  safetensors_metadata const metadata{{"epoch", "3"}, {"", "a \"b\"\n"}, {"ü", "\x7f"}};
  for (auto const& m : {metadata, safetensors_metadata{}}) {
    auto const text = safetensors_head(all, m);
    CHECK(text.size() % 8 == 0);
    CHECK(static_cast<unsigned char>(text[0]) + 256u * static_cast<unsigned char>(text[1]) == text.size() - 8);
    auto const h = parse_safetensors_header(text.substr(8), all.back().end);
    REQUIRE_MESSAGE(h, h.message());
    CHECK(equal(*h, all, m));
    CHECK(h->find("up") == nullptr);
    CHECK(is_header(text.substr(8), all.back().end));
  }
  auto const none = parse_safetensors_header("{}", 0);
  REQUIRE(none);
  CHECK(none->tensors.empty());
}

TEST_CASE("order, blanks and escapes are the writer's choice") {
  auto const h = parse_safetensors_header(
      "{ \"b\" : {\"data_offsets\":[ 4 , 12 ],\"shape\":[ ],\"dtype\":\"I64\"} ,\n\t\"\\u0061\\ud83d\\ude42\\/\":"
      "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"__metadata__\":{}}  \r\n ",
      12);
  REQUIRE_MESSAGE(h, h.message());
  CHECK(h->tensors[1].name == "a🙂/");
  CHECK(to_string(h->tensors[1]) == "f32[1]");
  CHECK(to_string(*h->find("b")) == "i64[]");
  CHECK(h->find("b")->has_shape({}));
  CHECK_FALSE(h->find("b")->has_shape({1}));
}

TEST_CASE("each fault has one line that says what and where") {
  auto const t = [](char const* info) { return std::string("{\"w\":") + info + "}"; };
  CHECK(message("", 0) == "header, byte 0: must begin with {");
  CHECK(message(" []", 0) == "header, byte 1: must begin with {");
  CHECK(message("[]", 0) == "header, byte 0: must begin with {");
  CHECK(message("{", 0) == "header, byte 1: must be \"");
  CHECK(message("{} x", 0) == "header, byte 3: must end after its last }");
  CHECK(message(std::string("{}\0", 3), 0) == "header, byte 2: must end after its last }");
  CHECK(message("{\"w\":[]}", 0) == "header, byte 5: tensor \"w\": must be {");
  CHECK(message(t("{}"), 0) == "header, byte 7: tensor \"w\": lacks dtype");
  CHECK(message(t("{\"dtype\":\"F32\",\"shape\":[1]}"), 4).ends_with("tensor \"w\": lacks data_offsets"));
  CHECK(message(t("{\"dtype\":\"F33\"}"), 0).ends_with("tensor \"w\": dtype: \"F33\" is not known"));
  CHECK(message(t("{\"dtype\":3}"), 0) == "header, byte 14: tensor \"w\": must be \"");
  CHECK(message(t("{\"shape\":[-1]}"), 0).ends_with("must be a whole number of at least 0"));
  CHECK(message(t("{\"shape\":[1.0]}"), 0).ends_with("must be a whole number, without a point or an exponent"));
  CHECK(message(t("{\"shape\":[01]}"), 0).ends_with("a whole number does not begin with 0"));
  CHECK(message(t("{\"shape\":[00]}"), 0).ends_with("a whole number does not begin with 0"));
  CHECK(message(t("{\"shape\":[9223372036854775808]}"), 0).ends_with("must be a whole number below 2^63"));
  CHECK(message(t("{\"shape\":[1,]}"), 0).ends_with("must be a whole number of at least 0"));
  CHECK(message(t("{\"shape\":[[[[[[1]]]]]]}"), 0).ends_with("must be a whole number of at least 0"));
  CHECK(message(t("{\"shape\":[],\"shape\":[]}"), 0).ends_with("tensor \"w\": shape comes twice"));
  CHECK(message(t("{\"data_offsets\":[0]}"), 0).ends_with("data_offsets: must be two numbers, first byte and end"));
  CHECK(message(t("{\"data_offsets\":[4,0]}"), 0).ends_with("data_offsets: must be two numbers, first byte and end"));
  CHECK(message("{\"__metadata__\":{\"a\":1}}", 0) == "header, byte 21: must be \"");
  CHECK(message("{\"__metadata__\":{},\"__metadata__\":{}}", 0).ends_with("__metadata__ comes twice"));
  CHECK(message("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0) == "__metadata__: \"a\" comes twice");

  auto const w = [](char const* shape, char const* offsets) {
    return std::string("{\"w\":{\"dtype\":\"F32\",\"shape\":") + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  CHECK(message(w("[2,2]", "[0,12]"), 12) == "tensor \"w\": data_offsets: [0,12] are 12 bytes, f32[2,2] has 16");
  CHECK(message(w("[4611686018427387904,4]", "[0,0]"), 0) ==
        "tensor \"w\": data_offsets: [0,0] are 0 bytes, f32[4611686018427387904,4] has no such number");
  CHECK(message(w("[4611686018427387904,4,0]", "[0,0]"), 0).empty());
  CHECK(message(w("[2]", "[0,8]"), 4) ==
        "tensor \"w\": data_offsets: [0,8] end behind the file's 4 bytes of data: it is cut off");
  CHECK(message(w("[2]", "[4,12]"), 12) == "bytes 0 to 4 are no tensor's");
  CHECK(message(w("[2]", "[0,8]"), 12) == "the last 4 of 12 bytes of data are no tensor's");
  auto const two = [](char const* a, char const* b, char const* at) {
    return std::string("{\"") + a + "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"" + b +
           "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + at + "}}";
  };
  CHECK(message(two("a", "b", "[2,4]"), 4).empty());
  CHECK(message(two("a", "a", "[2,4]"), 4) == "tensor \"a\" comes twice");
  CHECK(message(two("a", "\\u0061", "[2,4]"), 4) == "tensor \"a\" comes twice");
  auto const shared = [](char const* offsets) {
    return std::string("tensor \"b\": data_offsets: ") + offsets + " share bytes with another tensor";
  };
  CHECK(message(two("a", "b", "[1,3]"), 3) == shared("[1,3]"));
  CHECK(message(two("a", "b", "[0,2]"), 2) == shared("[0,2]"));
  CHECK(message(two("a", "b", "[3,5]"), 5) == "bytes 2 to 3 are no tensor's");
  auto const three = [](char const* b, char const* b_at, char const* c, char const* c_at) {
    return std::string(
               "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":") +
           b + ",\"data_offsets\":" + b_at + "},\"c\":{\"dtype\":\"U8\",\"shape\":" + c + ",\"data_offsets\":" + c_at +
           "}}";
  };
  CHECK(message(three("[2]", "[4,6]", "[2]", "[6,8]"), 8) == "");
  CHECK(message(three("[2]", "[1,3]", "[2]", "[4,6]"), 6) == shared("[1,3]"));
  CHECK(message(three("[5]", "[1,6]", "[2]", "[4,6]"), 6) == shared("[1,6]"));
  CHECK(message(three("[0]", "[4,4]", "[0]", "[0,0]"), 4) == "");
  CHECK(message(three("[0]", "[2,2]", "[0]", "[0,0]"), 4) ==
        "tensor \"b\": data_offsets: [2,2] lie within another tensor");
  CHECK(message(three("[0]", "[5,5]", "[0]", "[0,0]"), 4) ==
        "tensor \"b\": data_offsets: [5,5] end behind the file's 4 bytes of data: it is cut off");
  CHECK(message("{\"f\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1) ==
        "tensor \"f\": data_offsets: [0,1] are 1 bytes, F4[3] has no such number");
}

TEST_CASE("what the format's own reader passes over is passed over, and what it refuses is refused") {
  auto const with = [](std::string const& value) {
    return message("{\"w\":{\"dtype\":\"U8\",\"more\":" + value + ",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
  };
  auto const nested = [](int n) {
    return std::string(static_cast<std::size_t>(n), '[') + std::string(static_cast<std::size_t>(n), ']');
  };
  // as safetensors 0.8.0 has them
  for (auto const& right :
       {std::string("\"x\""), std::string("null"), std::string("true"), std::string("false"), std::string("-0"),
        std::string("-3.25e+7"), std::string("1e-999"), std::string("18446744073709551616"), std::string(" [ ] "),
        std::string("{\"y\":[1,2.5,null,true,-3e5,\"q\",{}],\"y\":1}"), std::string("1,\"more\":2"), nested(125)})
    CHECK_MESSAGE(with(right).empty(), right << ": " << with(right));
  for (auto const& wrong :
       {std::string("1e999"), std::string("01"), std::string("1."), std::string(".5"), std::string("-"),
        std::string("1e"), std::string("nan"), std::string("tru"), std::string("[1,]"), std::string("{1:2}"),
        std::string("\"\\ud800\""), std::string(""), std::string("+1"), nested(126)})
    CHECK_MESSAGE(!with(wrong).empty(), wrong);
  std::string const tensor = "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
  CHECK(message(" \n\t\r{" + tensor, 2).empty());
  CHECK(message("{\"__metadata__\":null," + tensor, 2).empty());
  for (auto const* metadata : {"{\"a\":null}", "[]", "\"x\"", "null,\"__metadata__\":null"})
    CHECK_FALSE(message("{\"__metadata__\":" + std::string(metadata) + "," + tensor, 2).empty());
}

TEST_CASE("texts are UTF-8, and messages stay on one line") {
  auto const name = [](std::string const& n) {
    return message("{\"" + n + "\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1);
  };
  for (auto const* good : {"a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\\u0000", "\\ud800\\udc00", "\\uDBFF\\uDFFF"})
    CHECK(name(good) == "");
  for (auto const* bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xef\xbf",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    CHECK(name(bad).ends_with("the text is not UTF-8"));
  for (auto const* half : {"\\ud800", "\\ud800x", "\\udc00", "\\ud800\\ud800", "\\ud800\\n"})
    CHECK(name(half).ends_with("half of a pair of UTF-16"));
  CHECK(name("\\x").ends_with("no such escape in a text"));
  CHECK(name("\\u12g4").ends_with("must be four hexadecimal digits"));
  CHECK(name("a\nb").ends_with("a text cannot hold a control character"));
  CHECK(message("{\"abc", 0).ends_with("the text has no end"));
  CHECK(message("{\"a\\nb\":[]}", 0) == "header, byte 8: tensor \"a\\u000ab\": must be {");
  CHECK(message("{\"" + std::string(100000, 'x') + "\":[]}", 0).size() < 300);
}

TEST_CASE("100,000 damaged headers: what is taken is a header indeed, and what is one is taken") {
  auto const all = entries({{"blocks.0.up.weight", {8, 4}}, {"blocks.0.up.bias", {8}}, {"größe", {0}}, {"n", {}}});
  auto const bytes = all.back().end;
  auto const whole = safetensors_head(all, {{"epoch", "3"}, {"who", "me\n"}}).substr(8);
  auto const second = safetensors_head(entries({{"a", {1}}, {"b", {1}}}), {}).substr(8);
  std::string const pool = "{}[]\":,\\0123456789eE.-+ utnF32BOL_\xc3\xb6\x80\xff\x01\n";
  random_stream r(1);
  int taken = 0;
  for (int i = 0; i < testing::cases(100'000); ++i) {
    bool const first = r.below(4) > 0;
    std::string text = first ? whole : second;
    auto const size = first ? bytes : 12;
    auto const place = [&] { return r.below(static_cast<std::uint32_t>(text.size())); };
    auto const letter = [&] { return pool[r.below(static_cast<std::uint32_t>(pool.size()))]; };
    for (auto n = 1 + r.below(3); n > 0 && text.size() > 1; --n) {
      auto const at = place(), length = r.below(60);  // drawn in this order by every compiler
      auto const c = letter();
      switch (r.below(7)) {
        case 0: text[at] = c; break;
        case 1: text.erase(at, 1); break;
        case 2: text.insert(at, 1, c); break;
        case 3: text.resize(at); break;
        case 4: text[at] = static_cast<char>(text[at] ^ 1 << r.below(8)); break;
        case 5: {  // a piece again, elsewhere
          auto const piece = text.substr(at, 1 + length);
          text.insert(place(), piece);
          break;
        }
        default: text.erase(at, 1 + length);
      }
    }
    auto const h = parse_safetensors_header(text, size);
    if (h) {
      ++taken;
      CAPTURE(text);
      CHECK(is_header(text, size));
      auto const again = parse_safetensors_header(safetensors_head(h->tensors, h->metadata).substr(8), size);
      REQUIRE(again);
      CHECK(equal(*again, h->tensors, h->metadata));
    } else {
      CHECK(h.message().find('\n') == std::string::npos);
      if (i % 5 == 0 && is_header(text, size)) FAIL_CHECK(text << "\n" << h.message());
    }
  }
  CHECK(taken > testing::cases(1000));  // changes in names, texts and blanks
  CHECK(taken < testing::cases(60000));
}
