// JSON in, checked against what a format says as it is read: every error has its place in the document,
// "graph.json: nodes[12].latency_us: must be a number of at least 0".
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace neap { inline namespace v0 { namespace io {

/// A text as part of a message of one line: control characters give way to "?", and long texts to their beginning.
std::string in_line(std::string_view text, std::size_t most = 200);

/// What an exception says, as the message of a reader: one line that begins with the file.
failure refusal(std::string const& file, std::exception const& why);

/// A place in a document, which is there longer, as the name of its file is. Accessors throw neap::error with the place
/// where the document is not as they say; readers of whole files turn that into a result. A place is put into words only
/// then: going there costs nothing but the search for the member.
class json_place {
 public:
  json_place(nlohmann::json const& document, std::string const& file) : j_(&document), file_(&file) {}
  json_place(nlohmann::json const& document, std::string&& file) = delete;

  [[noreturn]] void fail(std::string const& what) const;
  void require(bool ok, char const* what) const {
    if (!ok) fail(what);
  }

  bool is_object() const { return j_->is_object(); }
  bool is_null() const { return j_->is_null(); }
  bool is_string() const { return j_->is_string(); }
  bool has(char const* key) const { return j_->is_object() && j_->contains(key); }
  /// A member that must be there.
  json_place operator[](char const* key) const;
  /// A row of a list, which must have so many.
  json_place operator[](std::size_t i) const {
    if (i >= size()) fail("must have at least " + std::to_string(i + 1) + " rows");
    return {*this, (*j_)[i], {nullptr, i}};
  }
  json_place operator[](int i) const { return (*this)[static_cast<std::size_t>(i)]; }
  std::size_t size() const {
    require(j_->is_array(), "must be a list");
    return j_->size();
  }

  std::string const& text() const {
    require(j_->is_string(), "must be a text");
    return j_->get_ref<std::string const&>();
  }
  std::string text_or(char const* key, std::string const& otherwise) const {
    return has(key) ? (*this)[key].text() : otherwise;
  }
  std::int64_t integer(std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX) const;
  /// A finite number, with the sign of its zero.
  double exact_number(double least = -1.7e308) const;
  /// A finite number; -0 is 0.
  double number(double least = -1.7e308) const { return exact_number(least) + 0.0; }
  /// Any number there is: exact, or one of the texts inf, -inf, nan, -nan.
  double any_number() const;
  double number_or(char const* key, double otherwise, double least = -1.7e308) const {
    return has(key) ? (*this)[key].number(least) : otherwise;
  }
  bool boolean() const {
    require(j_->is_boolean(), "must be true or false");
    return j_->get<bool>();
  }
  /// A list of at most 8 integers.
  extents axes(std::int64_t least) const;
  /// A size in bytes: at most 2^56, and with `total`, which it is added to, at most 2^60 in all.
  bytes_t bytes(bytes_t& total) const;
  /// An amount of work, none where it is not said: operations or bytes, at most 1e30, so that times stay finite.
  double work(char const* key) const;
  /// A time in microseconds, at most a million years, in seconds.
  double microseconds() const;
  nlohmann::json const& raw() const { return *j_; }
  /// The members of an object but those named and those that say nothing (null, empty), as one text: equal for equal
  /// members in whatever order they come. Empty if there are none.
  std::string other_members(std::initializer_list<std::string_view> named) const;

 private:
  static std::string plain(double x);
  static std::string range(std::int64_t least, std::int64_t most);

  struct step {
    std::string const* member;  // its name in the document; null: a row
    std::size_t row;
  };
  static constexpr std::size_t max_steps = 12;  // more than any format has
  json_place(json_place const& from, nlohmann::json const& j, step s);

  nlohmann::json const* j_;
  std::string const* file_;
  std::size_t depth_ = 0;
  std::array<step, max_steps> path_{};  // as far as depth_
};

/// A document from text; fails with the file, and the byte where the text is not JSON or nests deeper than 64 levels, or
/// the member that an object has twice.
result<nlohmann::json> parse_json(std::string const& text, std::string const& file);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/json.ipp>
#endif
