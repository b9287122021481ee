// The bodies of <neap/import/json.hpp>.
#pragma once

#include <neap/import/json.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

NEAP_FUNC std::string in_line(std::string_view text, std::size_t most) {
  std::string line(text.substr(0, most));
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() > most ? line + "..." : line;
}

NEAP_FUNC failure refusal(std::string const& file, std::exception const& why) {
  std::string const what = in_line(why.what(), 900);
  return {what.starts_with(in_line(file)) ? what : file + ": " + what};
}

NEAP_FUNC void json_place::fail(std::string const& what) const {
  std::string where = *file_ + ": ";
  for (std::size_t i = 0; i < depth_; ++i) {
    auto const& s = path_[i];
    if (s.member) (where += i > 0 ? "." : "") += *s.member;
    else where += "[" + std::to_string(s.row) + "]";
  }
  throw error(where + (depth_ > 0 ? ": " : "") + in_line(what, 500));
}

NEAP_FUNC json_place json_place::operator[](char const* key) const {
  require(j_->is_object(), "must be an object");
  auto const at = j_->find(key);
  if (at == j_->end()) fail(std::string("lacks \"") + key + "\"");
  return {*this, *at, {&at.key(), 0}};
}

NEAP_FUNC std::int64_t json_place::integer(std::int64_t least, std::int64_t most) const {
  bool const fits = j_->is_number_integer() && !(j_->is_number_unsigned() && j_->get<std::uint64_t>() > INT64_MAX);
  if (!fits || j_->get<std::int64_t>() < least || j_->get<std::int64_t>() > most)
    fail("must be an integer" + range(least, most));
  return j_->get<std::int64_t>();
}

NEAP_FUNC double json_place::exact_number(double least) const {
  if (!j_->is_number() || !std::isfinite(j_->get<double>()) || j_->get<double>() < least)
    fail(least > -1e300 ? "must be a number of at least " + plain(least) : "must be a finite number");
  return j_->get<double>();
}

NEAP_FUNC double json_place::any_number() const {
  if (!is_string()) return exact_number();
  for (double sign : {1.0, -1.0}) {
    std::string const minus = sign < 0 ? "-" : "";
    if (text() == minus + "inf") return sign * std::numeric_limits<double>::infinity();
    if (text() == minus + "nan") return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  fail("must be a number, or one of inf, -inf, nan, -nan");
}

NEAP_FUNC extents json_place::axes(std::int64_t least) const {
  if (size() > max_rank) fail("must be a list of at most 8 integers");
  extents e;
  for (std::size_t i = 0; i < size(); ++i) e.push_back((*this)[i].integer(least));
  return e;
}

NEAP_FUNC bytes_t json_place::bytes(bytes_t& total) const {
  auto const b = integer(0, bytes_t{1} << 56);
  total += b;
  if (total > bytes_t{1} << 60) fail("the sizes add up to more than 2^60 bytes");
  return b;
}

NEAP_FUNC double json_place::work(char const* key) const {
  auto const w = number_or(key, 0, 0);
  if (w > 1e30) (*this)[key].fail("must be at most 1e30");
  return w;
}

NEAP_FUNC double json_place::microseconds() const {
  auto const t = number(0);
  if (t > 3.2e19) fail("must be at most 3.2e19");
  return t * 1e-6;
}

NEAP_FUNC std::string json_place::other_members(std::initializer_list<std::string_view> named) const {
  require(j_->is_object(), "must be an object");
  nlohmann::json others = nlohmann::json::object();
  for (auto const& [key, value] : j_->items())
    if (!value.empty() && std::find(named.begin(), named.end(), key) == named.end()) others[key] = value;
  return others.empty() ? std::string() : others.dump();
}

NEAP_FUNC std::string json_place::plain(double x) {
  auto s = std::to_string(x);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.ends_with('.')) s.pop_back();
  return s;
}

NEAP_FUNC std::string json_place::range(std::int64_t least, std::int64_t most) {
  if (most < least) return " that refers to something, and there is nothing";
  if (most != INT64_MAX) return " from " + std::to_string(least) + " to " + std::to_string(most);
  return least != INT64_MIN ? " of at least " + std::to_string(least) : std::string();
}

NEAP_FUNC json_place::json_place(json_place const& from, nlohmann::json const& j, step s)
    : j_(&j),
      file_(from.file_),
      depth_(from.depth_ + 1) {
  if (from.depth_ == max_steps) from.fail("lies too deep in the document");
  std::copy_n(from.path_.begin(), from.depth_, path_.begin());
  path_[from.depth_] = s;
}

namespace detail {

/// The members of all objects of a document.
NEAP_FUNC std::size_t member_count(nlohmann::json const& j) {
  if (!j.is_structured()) return 0;
  std::size_t n = j.is_object() ? j.size() : 0;
  for (auto const& x : j) n += member_count(x);
  return n;
}

/// The member that an object of the text names twice. The parser keeps the last of them.
NEAP_FUNC std::string repeated_member(std::string const& text) {
  std::vector<std::unordered_set<std::string>> names(66);
  std::string repeated;
  [[maybe_unused]] auto const again =
      nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& j) {
        auto const level = static_cast<std::size_t>(std::clamp(depth, 0, 65));
        if (event == nlohmann::json::parse_event_t::object_start && level < 65) names[level + 1].clear();
        if (event == nlohmann::json::parse_event_t::key && !names[level].insert(j.get<std::string>()).second &&
            repeated.empty())
          repeated = j.get<std::string>();
        return true;
      });
  return "an object has the member \"" + in_line(repeated) + "\" twice";
}

/// Finds the number of a text that no double holds, and its place: "nodes[12].flops: 1e400 is beyond every double".
class number_finder {
 public:
  std::string const& found() const { return found_; }

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(std::int64_t) { return value(); }
  bool number_unsigned(std::uint64_t) { return value(); }
  bool number_float(double, std::string const&) { return value(); }
  bool string(std::string&) { return value(); }
  bool binary(nlohmann::json::binary_t&) { return value(); }
  bool start_object(std::size_t) { return value(), path_.push_back({{}, 0, false}), true; }
  bool start_array(std::size_t) { return value(), path_.push_back({{}, 0, true}), true; }
  bool key(std::string& k) { return path_.back().member = k, true; }
  bool end_object() { return path_.pop_back(), true; }
  bool end_array() { return path_.pop_back(), true; }
  bool parse_error(std::size_t, std::string const& token, nlohmann::json::exception const&) {
    value();
    for (std::size_t i = 0; i < path_.size(); ++i)
      found_ += path_[i].is_list ? "[" + std::to_string(path_[i].rows - 1) + "]" : (i > 0 ? "." : "") + path_[i].member;
    found_ += ": " + token + " is beyond every double";
    return false;
  }

 private:
  struct step {
    std::string member;
    std::size_t rows;  // so far, of a list
    bool is_list;
  };
  bool value() {
    if (!path_.empty() && path_.back().is_list) ++path_.back().rows;
    return true;
  }
  std::vector<step> path_;
  std::string found_;
};

}  // namespace detail

NEAP_FUNC result<nlohmann::json> parse_json(std::string const& text, std::string const& file) {
  if (auto const at = text.find('\0'); at != text.npos)  // the parser takes it for the end
    return failure{file + ": byte " + std::to_string(at) + ": not JSON: a byte of zeros"};
  int depth = 0;
  bool quoted = false;
  std::size_t members = 0;                         // a colon each
  for (std::size_t i = 0; i < text.size(); ++i) {  // before anything is built from it
    char const c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 64) return failure{file + ": byte " + std::to_string(i) + ": nested deeper than 64 levels"};
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ':') {
      ++members;
    }
  }
  try {
    auto document = nlohmann::json::parse(text);
    if (detail::member_count(document) != members) return failure{file + ": " + detail::repeated_member(text)};
    return document;
  } catch (nlohmann::json::parse_error const& e) {
    std::string_view what = e.what();
    if (auto const at = what.find("syntax error"); at != what.npos) what.remove_prefix(at);
    return failure{file + ": byte " + std::to_string(e.byte) + ": not JSON: " + in_line(what)};
  } catch (nlohmann::json::out_of_range const&) {
    detail::number_finder where;
    [[maybe_unused]] bool const all = nlohmann::json::sax_parse(text, &where);
    return failure{file + ": " + in_line(where.found(), 500)};
  } catch (nlohmann::json::exception const& e) { return failure{file + ": not JSON: " + in_line(e.what())}; }
}

}}}  // namespace neap::v0::io
