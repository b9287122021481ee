// What the commands share: exit codes, how limits are written, how results are told.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/readable.hpp>
#include <neap/core/units.hpp>
#include <neap/report/text_file.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

enum exit_code : int { fine = 0, no_plan_fits = 1, bad_input = 2 };

/// Thrown by commands: one line on standard error, exit 2.
struct refused {
  std::string message;
};

/// The value of a result, or the line that says why there is none.
template <class T>
T value_or_refuse(neap::result<T> r) {
  if (!r) throw refused{r.message()};
  return std::move(r).value();
}
inline void or_refuse(neap::status const& s) {
  if (!s) throw refused{s.message()};
}

/// A file that the command line names; no path: it does not.
struct named_file {
  std::string option, path;
};
/// Told before the work, not after it: an output that cannot be written, or that would replace what is read or another
/// output.
inline void check_outputs(std::vector<named_file> const& reads, std::vector<named_file> const& writes) {
  for (std::size_t i = 0; i < writes.size(); ++i) {
    auto const& [option, path] = writes[i];
    if (path.empty()) continue;
    for (auto const& r : reads)
      if (!r.path.empty() && neap::same_file(path, r.path))
        throw refused{option + ": " + path + " is the " + r.option + " that is read"};
    for (std::size_t k = 0; k < i; ++k)
      if (!writes[k].path.empty() && neap::same_file(path, writes[k].path))
        throw refused{writes[k].option + " and " + option + " are one file: " + path};
    or_refuse(neap::can_write_file(path));
  }
}

/// A text for one line of a terminal or for JSON: control characters and bytes that are no UTF-8 give way to "?".
inline std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    auto const byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    unsigned const c = byte(i);
    std::size_t const length = c < 0x80                ? 1
                               : c >= 0xc2 && c < 0xe0 ? 2
                               : c >= 0xe0 && c < 0xf0 ? 3
                               : c >= 0xf0 && c < 0xf5 ? 4
                                                       : 0;
    bool good = length > 0 && c >= 0x20 && c != 0x7f;
    for (std::size_t k = 1; k < length; ++k) good &= byte(i + k) >> 6 == 2;
    if (length == 3) good &= !(c == 0xe0 && byte(i + 1) < 0xa0) && !(c == 0xed && byte(i + 1) >= 0xa0);
    if (length == 4) good &= !(c == 0xf0 && byte(i + 1) < 0x90) && !(c == 0xf4 && byte(i + 1) >= 0x90);
    if (good) out += text.substr(i, length);
    else out += '?';
    i += good ? length : 1;
  }
  return out;
}

/// One line on standard error.
inline void complain(std::string_view what) { std::fprintf(stderr, "neap: %s\n", printable(what).c_str()); }

/// A plain number from 0 to 1e18 with an optional unit; unit "" where none was given.
struct quantity {
  double number = 0;
  std::string unit;
};
inline std::optional<quantity> parse_quantity(std::string const& text) {
  double x = 0;
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (code != std::errc{} || !(x >= 0) || x > 1e18) return std::nullopt;
  return quantity{x, std::string(end, text.data() + text.size())};
}

/// Bytes of a quantity with a unit, or a whole number of them without one.
inline std::optional<neap::bytes_t> bytes_of(quantity const& q) {
  if (q.unit.empty())
    return q.number == std::floor(q.number) ? std::optional(static_cast<neap::bytes_t>(q.number)) : std::nullopt;
  for (auto [unit, scale] : {std::pair{"B", 1.0},
                             {"KiB", 1024.0},
                             {"MiB", 1048576.0},
                             {"GiB", 1073741824.0},
                             {"TiB", 1099511627776.0},
                             {"kB", 1e3},
                             {"KB", 1e3},
                             {"MB", 1e6},
                             {"GB", 1e9},
                             {"TB", 1e12}})
    if (q.unit == unit && q.number * scale <= 9e18) return static_cast<neap::bytes_t>(q.number * scale);
  return std::nullopt;
}
inline neap::bytes_t parse_bytes(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  auto const b = q ? bytes_of(*q) : std::nullopt;
  if (!b) throw refused{option + ": \"" + text + "\" is not a number of bytes (2GiB, 800MB, 1048576)"};
  return *b;
}

// How limits are written, the same for all commands:
//   0.4, 1.0, 40%    with a point or a per cent sign: a ratio of the original, from 0 to 100 (0 % to 10,000 %)
//   2GiB, 250ms      with a unit: an amount
//   377              a whole number: an amount in the command's unit, bytes or the chain's slots
// Two exceptions, where the amount would make no sense: 0 and 1 are ratios of bytes, and a plain number is a ratio of time.

/// The ratio that a limit is, if it is written as one.
inline std::optional<double> ratio_of(quantity const& q, std::string const& text) {
  bool const per_cent = q.unit == "%";
  if (!per_cent && (!q.unit.empty() || (text.find('.') == text.npos && q.number == std::floor(q.number))))
    return std::nullopt;
  double const ratio = per_cent ? q.number / 100 : q.number;
  return ratio <= 100 ? std::optional(ratio) : std::nullopt;
}

/// An amount of memory, or a ratio of the original one.
struct size_or_ratio {
  std::optional<neap::bytes_t> bytes;
  std::optional<double> ratio;
};
inline size_or_ratio parse_size_or_ratio(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  if (q && q->unit.empty() && q->number <= 1) return {std::nullopt, q->number};
  if (auto const r = q ? ratio_of(*q, text) : std::nullopt) return {std::nullopt, r};
  auto const b = q ? bytes_of(*q) : std::nullopt;
  if (!b) throw refused{option + ": \"" + text + "\" is neither bytes (2GiB, 800MB, 1048576) nor a ratio (0.4, 40%)"};
  return {b, std::nullopt};
}

/// Seconds of a quantity with a unit.
inline std::optional<double> seconds_of(quantity const& q) {
  for (auto [unit, scale] : {std::pair{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60.0}})
    if (q.unit == unit) return q.number * scale;
  return std::nullopt;
}

/// "250ms", "1.5s", "30us" are times; a plain number and "110%" are ratios.
struct time_or_ratio {
  std::optional<double> seconds;
  std::optional<double> ratio;
};
inline time_or_ratio parse_time_or_ratio(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  if (q && q->unit.empty()) return {std::nullopt, q->number};
  if (auto const r = q ? ratio_of(*q, text) : std::nullopt) return {std::nullopt, r};
  if (auto const s = q ? seconds_of(*q) : std::nullopt) return {s, std::nullopt};
  throw refused{option + ": \"" + text + "\" is neither a time (250ms, 1.5s) nor a ratio (1.1, 110%)"};
}
inline double parse_seconds(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  auto const s = q ? seconds_of(*q) : std::nullopt;
  if (!s && !(q && q->unit.empty())) throw refused{option + ": \"" + text + "\" is not a time (30s, 250ms, 2min)"};
  return s ? *s : q->number;  // a plain number means seconds here
}

/// Checks that an option is a whole number, as large as it likes up to 2^63 - 1. (CLI::Range takes a larger one for that.)
inline CLI::Validator whole_number_from(std::int64_t least) {
  auto const check = [least](std::string const& text) {
    std::int64_t x = 0;
    auto const end = text.data() + text.size();
    auto const [read, code] = std::from_chars(text.data(), end, x);
    if (code == std::errc{} && read == end && x >= least) return std::string();
    return "\"" + text + "\" is not a whole number from " + std::to_string(least) + " to " + std::to_string(INT64_MAX);
  };
  return {check, "FROM " + std::to_string(least)};
}

/// Printed with --json: one object on one line.
inline void print_json(nlohmann::ordered_json const& j) {
  std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

// Each command adds its options and gives the function that runs it.
void add_plan(CLI::App& app, int& exit);
void add_verify(CLI::App& app, int& exit);
void add_allocate(CLI::App& app, int& exit);
void add_checkpoint(CLI::App& app, int& exit);
void add_show(CLI::App& app, int& exit);

}  // namespace cli
