// MiniMalloc's CSV form of an allocation problem and of its solution, in full.
//
//   id,lower,upper,size[,alignment][,gaps][,offset][,hint][,pool][,piece]
//   b1,0,3,4,1,1-2 2-3@0:2,,
//
// Columns come in any order. `buffer` and `buffer_id` mean id, `start` means lower; `end` in place of `upper` is
// inclusive, here and in gaps. A gap is `a-b` (no bytes) or `a-b@lo:hi` (only these), several parted by blanks. In a
// problem `offset` fixes a record; in a solution it is where the record lies. `pool` names the memory that a record requires
// or lies in, and `piece` the piece of it (memory/forms/pools.hpp): both are extensions. Text in, text out: no files are
// opened.
#pragma once

#include <neap/core/error.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Named records, as the file has them.
struct allocation_file {
  std::vector<std::string> ids;
  std::vector<usage_record> records;
  std::vector<std::int64_t> hints{};   ///< empty, or one a record, -1 where there is none
  std::vector<std::size_t> lines{};    ///< of a file that was read, where each record is; from 1
  std::vector<std::string> pools{};    ///< names of the pools that records ask for, by number
  std::vector<std::int32_t> pieces{};  ///< empty, or the piece of its pool for each record, -1: any
};

/// A record, for people: "record 'b1' (line 2)".
inline std::string record_name(allocation_file const& file, std::size_t i) {
  std::string name = "record " + (i < file.ids.size() ? "'" + file.ids[i].substr(0, 80) + "'" : std::to_string(i));
  return i < file.lines.size() ? name + " (line " + std::to_string(file.lines[i]) + ")" : name;
}

/// What is wrong with records of the file: "record 'b1' (line 2) and record 'b2' (line 3): ...".
inline std::string message_of(plan_fault const& fault, allocation_file const& file) {
  std::string line;
  if (fault.record >= 0) line = record_name(file, static_cast<std::size_t>(fault.record));
  if (fault.other >= 0) line += " and " + record_name(file, static_cast<std::size_t>(fault.other));
  return (line.empty() ? line : line + ": ") + std::string(fault.what);
}

namespace detail {

/// The next field up to `mark`, removed from `rest`.
inline std::string_view cut_field(std::string_view& rest, char mark) {
  auto const end = rest.find(mark);
  std::string_view const field = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return field;
}

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

/// Reads an integer at the front of `s` and removes it; false if there is none or it does not fit 64 bits.
inline bool eat_integer(std::string_view& s, std::int64_t& value) {
  auto const [end, code] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (code != std::errc{}) return false;
  s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  return true;
}
inline bool eat(std::string_view& s, char c) {
  if (s.empty() || s.front() != c) return false;
  s.remove_prefix(1);
  return true;
}
inline bool whole_integer(std::string_view s, std::int64_t& value) { return eat_integer(s, value) && s.empty(); }

/// Reads the gaps of a record, and the text of each; false where one has not the form.
inline bool parse_gaps(std::string_view text, std::int64_t inclusive, std::vector<live_gap>& gaps,
                       std::vector<std::string_view>& texts) {
  while (!(text = trimmed(text)).empty()) {
    live_gap g;
    texts.push_back(text.substr(0, text.find(' ')));
    if (!eat_integer(text, g.lower) || !eat(text, '-') || !eat_integer(text, g.upper)) return false;
    if (__builtin_add_overflow(g.upper, inclusive, &g.upper)) return false;
    if (eat(text, '@') && (!eat_integer(text, g.window_lower) || !eat(text, ':') || !eat_integer(text, g.window_upper)))
      return false;
    if (!text.empty() && text.front() != ' ') return false;
    gaps.push_back(g);
  }
  return true;
}

/// What is wrong with the gaps of a record, "gap 5-2 ends before it begins", or nothing. `inclusive`: 1 where the file's
/// ends are the last moments.
inline std::string wrong_gap(usage_record const& r, std::vector<std::string_view> const& texts,
                             std::int64_t inclusive) {
  std::int64_t at = r.lower;
  for (std::size_t k = 0; k < r.gaps.size(); ++k) {
    live_gap const& g = r.gaps[k];
    auto const is = [&](std::string const& what) { return "gap " + std::string(texts[k].substr(0, 60)) + " " + what; };
    if (g.upper <= g.lower) return is(inclusive == 1 || g.upper < g.lower ? "ends before it begins" : "is empty");
    if (g.lower < r.lower || g.upper > r.upper)
      return is("is outside the life, " + std::to_string(r.lower) + "-" + std::to_string(r.upper - inclusive));
    if (g.lower < at) return is("overlaps an earlier one, or comes before it: gaps ascend");
    if (g.window_upper < g.window_lower) return is("has a window that ends before it begins");
    if (g.window_lower < 0 || g.window_upper > r.size)
      return is("has a window outside the record, 0:" + std::to_string(r.size));
    at = g.upper;
  }
  return {};
}

/// read_minimalloc_csv.
class minimalloc_reader {
 public:
  result<allocation_file> operator()(std::string_view text) {
    if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark
    while (!text.empty()) {
      ++line_;
      std::string_view const line = trimmed(cut_field(text, '\n'));
      if (line.empty()) continue;
      auto const read = columns_.empty() ? read_header(line) : read_record(line);
      if (!read) return failure{read.message()};
    }
    if (columns_.empty()) return fail("no header");
    if (auto const wrong = fault_of(file_.records); !wrong.empty()) return failure{message_of(wrong, file_)};
    return std::move(file_);
  }

 private:
  enum column : std::size_t { id, lower, upper, size, alignment, gaps, offset, hint, pool, piece, ignored };
  static constexpr std::array<std::pair<std::string_view, column>, 14> names{{{"id", id},
                                                                              {"buffer", id},
                                                                              {"buffer_id", id},
                                                                              {"lower", lower},
                                                                              {"start", lower},
                                                                              {"upper", upper},
                                                                              {"end", upper},
                                                                              {"size", size},
                                                                              {"alignment", alignment},
                                                                              {"gaps", gaps},
                                                                              {"offset", offset},
                                                                              {"hint", hint},
                                                                              {"pool", pool},
                                                                              {"piece", piece}}};
  /// A record as it is read.
  struct row {
    usage_record record;
    std::string name;
    std::int64_t hint = -1, piece = -1;
    std::vector<std::string_view> gap_texts;
  };

  failure fail(std::string const& what) const { return failure{"line " + std::to_string(line_) + ": " + what}; }
  /// Whether any field is the name of a column.
  static bool names_any(std::string_view fields) {
    for (bool more = true; more;) {
      more = fields.find(',') != fields.npos;
      auto const name = trimmed(cut_field(fields, ','));
      if (std::ranges::any_of(names, [&](auto const& known) { return known.first == name; })) return true;
    }
    return false;
  }

  status read_header(std::string_view line) {
    std::string_view fields = line;
    bool more = true;
    while (more) {
      more = fields.find(',') != fields.npos;
      std::string_view const name = trimmed(cut_field(fields, ','));
      column c = ignored;
      for (auto const& [n, meaning] : names)
        if (n == name) c = meaning;
      if (c == ignored && std::ranges::count(seen_, true) == 0 && !names_any(line))
        return fail(
            "no header: the columns id,lower,upper,size[,alignment][,gaps][,offset][,hint][,pool][,piece] come "
            "first, in lower case, parted by commas, in any order");
      if (c == ignored) return fail("unknown column '" + std::string(name.substr(0, 40)) + "'");
      if (seen_[c]) return fail("column '" + std::string(name) + "' is named twice");
      seen_[c] = true;
      if (name == "end") inclusive_ = 1;
      columns_.push_back(c);
    }
    if (!seen_[lower] || !seen_[upper] || !seen_[size]) return fail("the header lacks lower, upper or size");
    return {};
  }

  status read_record(std::string_view line) {
    row r;
    if (!seen_[id]) r.name = std::to_string(file_.records.size());
    std::string_view fields = line;
    auto const given = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    if (given < columns_.size())
      return fail("it has " + std::to_string(given) + " fields, the header " + std::to_string(columns_.size()));
    if (given > columns_.size()) return fail("it has more fields than the header");
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      std::string_view const field = trimmed(cut_field(fields, ','));
      if (!read_field(columns_[k], field, r))
        return fail("field " + std::to_string(k + 1) + " is not what its column holds: '" +
                    std::string(field.substr(0, 40)) + "'");
    }
    if (r.record.lower <= r.record.upper)
      if (auto const wrong = wrong_gap(r.record, r.gap_texts, inclusive_); !wrong.empty())
        return fail("record '" + r.name.substr(0, 80) + "': " + wrong);
    if (r.piece >= 0 && r.record.pool < 0) return fail("a piece without a pool");
    if (auto const wrong = fault_of(std::array<usage_record, 1>{r.record}); !wrong.empty())
      return fail(std::string(wrong.what));
    if (seen_[hint]) file_.hints.push_back(r.hint);
    if (seen_[piece]) file_.pieces.push_back(static_cast<std::int32_t>(r.piece));
    file_.ids.push_back(std::move(r.name));
    file_.lines.push_back(line_);
    file_.records.push_back(std::move(r.record));
    return {};
  }
  /// Whether the field is what its column holds.
  bool read_field(column c, std::string_view field, row& to) {
    auto& r = to.record;
    auto const integer = [&](std::int64_t& value) { return whole_integer(field, value); };
    switch (c) {
      case id: to.name = std::string(field); return true;
      case lower: return integer(r.lower);
      case upper: return integer(r.upper) && !__builtin_add_overflow(r.upper, inclusive_, &r.upper);
      case size: return integer(r.size);
      case alignment: return field.empty() || integer(r.alignment);
      case gaps: return parse_gaps(field, inclusive_, r.gaps, to.gap_texts);
      case offset: return field.empty() || integer(r.offset);
      case hint: return field.empty() || integer(to.hint);
      case pool:
        if (field.empty()) return true;
        r.pool = static_cast<std::int32_t>(std::ranges::find(file_.pools, field) - file_.pools.begin());
        if (static_cast<std::size_t>(r.pool) == file_.pools.size()) file_.pools.emplace_back(field);
        return true;
      case piece: return field.empty() || (integer(to.piece) && to.piece >= 0 && to.piece < INT32_MAX);
      case ignored: return true;
    }
    return true;
  }

  std::size_t line_ = 0;
  std::vector<column> columns_;
  std::array<bool, ignored> seen_{};
  std::int64_t inclusive_ = 0;  // 1: lives are given by their last moment
  allocation_file file_;
};

}  // namespace detail

/// Reads a problem. The failure names the line and what is wrong with it; records that no planner could take (negative
/// sizes, lives that end before they begin...) are refused here too. O(text).
inline result<allocation_file> read_minimalloc_csv(std::string_view text) { return detail::minimalloc_reader{}(text); }

/// Writes the file, with offsets if a plan with offsets is given (the form of MiniMalloc's solutions). Only the columns
/// that some record needs are written. Reading it back gives equal names and records, but for the offsets of a plan.
/// Throws neap::error for what the form has no words for: records of a group or of a pool without a name, names with a
/// comma, an end of a line, or blanks around them.
inline std::string write_minimalloc_csv(allocation_file const& file, memory_plan const* plan = nullptr) {
  bool aligned = false, gapped = false, fixed = false, pooled = false;
  auto const refuse = [](std::size_t i, char const* why) { throw_error({"csv: record ", i, " ", why}); };
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    auto const& r = file.records[i];
    bool const named = r.pool >= 0 && static_cast<std::size_t>(r.pool) < file.pools.size();
    if (r.group != -1 || (r.pool != -1 && !named))
      refuse(i, "is of a group or a pool, for which the form has no column");
    if (i >= file.ids.size()) continue;
    std::string_view const id = file.ids[i];
    if (id.find_first_of(",\n") != id.npos || id != detail::trimmed(id))
      refuse(i, "has a name with a comma, an end of a line, or blanks around it");
  }
  for (auto const& r : file.records)
    aligned |= r.alignment != 1, gapped |= !r.gaps.empty(), fixed |= r.offset != any_offset, pooled |= r.pool != -1;
  bool const placed = plan != nullptr && has_offsets(*plan);
  std::string out = "id,lower,upper,size";
  if (aligned) out += ",alignment";
  if (gapped) out += ",gaps";
  if (!file.hints.empty()) out += ",hint";
  if (pooled) out += ",pool";
  if (!file.pieces.empty()) out += ",piece";
  if (fixed || placed) out += ",offset";
  out += '\n';
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    usage_record const& r = file.records[i];
    out += i < file.ids.size() ? file.ids[i] : std::to_string(i);
    for (auto v : {r.lower, r.upper, r.size}) (out += ',') += std::to_string(v);
    if (aligned) (out += ',') += std::to_string(r.alignment);
    if (gapped) {
      out += ',';
      for (std::size_t k = 0; k < r.gaps.size(); ++k) {
        live_gap const& g = r.gaps[k];
        if (k > 0) out += ' ';
        (((out += std::to_string(g.lower)) += '-')) += std::to_string(g.upper);
        if (g.window_lower != 0 || g.window_upper != 0)
          ((((out += '@') += std::to_string(g.window_lower)) += ':')) += std::to_string(g.window_upper);
      }
    }
    if (!file.hints.empty()) {
      out += ',';
      if (file.hints[i] >= 0) out += std::to_string(file.hints[i]);
    }
    if (pooled) (out += ',') += r.pool >= 0 ? file.pools[static_cast<std::size_t>(r.pool)] : std::string();
    if (!file.pieces.empty()) (out += ',') += file.pieces[i] >= 0 ? std::to_string(file.pieces[i]) : std::string();
    if (fixed || placed) {
      out += ',';
      if (placed) out += std::to_string(plan->offsets[i]);
      else if (r.offset != any_offset) out += std::to_string(r.offset);
    }
    out += '\n';
  }
  return out;
}

}}  // namespace neap::v0
