// What the commands share: exit codes, how limits are written, how results are told.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

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

/// A plain number of at most 1e18 with an optional unit; unit "" where none was given.
struct quantity {
  double number = 0;
  std::string unit;
};
inline std::optional<quantity> parse_quantity(std::string const& text) {
  char* end = nullptr;
  double const x = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(x >= 0) || x > 1e18) return std::nullopt;
  return quantity{x, std::string(end)};
}

/// "2GiB", "800MB", "123456" are bytes; a number of at most 1 (or with a point and no unit) is a ratio.
struct size_or_ratio {
  std::optional<neap::bytes_t> bytes;
  std::optional<double> ratio;
};
inline size_or_ratio parse_size_or_ratio(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  auto const fail = [&]() -> refused {
    return {option + ": \"" + text + "\" is neither bytes (2GiB, 800MB, 1048576) nor a ratio (0.4)"};
  };
  if (!q) throw fail();
  if (q->unit.empty()) {
    if (text.find_first_of(".eE") != text.npos || q->number <= 1) return {std::nullopt, q->number};
    return {static_cast<neap::bytes_t>(q->number), std::nullopt};
  }
  double scale = 0;
  std::string const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "TB"};
  double const scales[] = {1, 1024.0, 1048576.0, 1073741824.0, 1099511627776.0, 1e3, 1e3, 1e6, 1e9, 1e12};
  for (int i = 0; i < 10; ++i)
    if (q->unit == units[i]) scale = scales[i];
  if (scale == 0 || q->number * scale > 9e18) throw fail();
  return {static_cast<neap::bytes_t>(q->number * scale), std::nullopt};
}

/// "250ms", "1.5s", "30us" are times; a plain number is a ratio.
struct time_or_ratio {
  std::optional<double> seconds;
  std::optional<double> ratio;
};
inline time_or_ratio parse_time_or_ratio(std::string const& option, std::string const& text) {
  auto const q = parse_quantity(text);
  if (q && q->unit.empty()) return {std::nullopt, q->number};
  if (q)
    for (auto [unit, scale] : {std::pair{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60.0}})
      if (q->unit == unit) return {q->number * scale, std::nullopt};
  throw refused{option + ": \"" + text + "\" is neither a time (250ms, 1.5s) nor a ratio (1.1)"};
}
inline double parse_seconds(std::string const& option, std::string const& text) {
  auto const t = parse_time_or_ratio(option, text);
  return t.seconds ? *t.seconds : *t.ratio;  // a plain number means seconds here
}

// Each command adds its options and gives the function that runs it.
void add_plan(CLI::App& app, int& exit);
void add_verify(CLI::App& app, int& exit);
void add_allocate(CLI::App& app, int& exit);
void add_show(CLI::App& app, int& exit);

}  // namespace cli
