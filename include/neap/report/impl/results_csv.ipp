// The bodies of <neap/report/results_csv.hpp>.
#pragma once

#include <neap/report/results_csv.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/report/text_file.hpp>

#include <cerrno>
#include <cstdio>

#include <unistd.h>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC std::string number_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}
NEAP_FUNC std::string csv_text(std::string const& s) {
  if (s.find_first_of(",\"\n\r") == s.npos) return s;
  std::string quoted = "\"";
  for (char c : s) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace detail

NEAP_FUNC std::string to_csv(results_row const& r) {
  using detail::number_text;
  auto const bytes = [](std::optional<bytes_t> b) { return b ? std::to_string(*b) : std::string(); };
  auto const ratio = [](std::optional<double> x) { return x ? number_text(*x) : std::string(); };
  auto const half = [](std::optional<results_row::measured> m, results_row::measured s) {
    auto const run = m.value_or(s);
    return std::string(m ? "True" : "False") + "," + number_text(run.latency * 1e3) + "," +
           std::to_string(run.peak_bytes) + "," + number_text(s.latency * 1e3) + "," + std::to_string(s.peak_bytes);
  };
  return detail::csv_text(r.name) + "," + bytes(r.device_memory_limit) + "," +
         (r.latency_limit ? number_text(*r.latency_limit * 1e3) : "") + "," + bytes(r.memory_limit) + "," +
         ratio(r.latency_limit_ratio) + "," + ratio(r.memory_limit_ratio) + "," + std::to_string(r.weight_bytes) + "," +
         half(r.optimized, r.simulated_optimized) + "," + half(r.original, r.simulated_original);
}

namespace detail {

/// The beginning of a file, as long as the header's line, is that line; or the file is empty.
NEAP_FUNC bool begins_as_results(std::FILE* file, bool& is_empty) {
  std::string first(std::strlen(results_header) + 1, '\0');
  std::rewind(file);
  first.resize(std::fread(first.data(), 1, first.size(), file));
  is_empty = first.empty();
  return is_empty || first == std::string(results_header) + "\n";
}
NEAP_FUNC failure no_results(std::string const& path) {
  return {path + ": is no results.csv: it begins with another header"};
}

}  // namespace detail

NEAP_FUNC status can_append_results(std::string const& path) {
  struct ::stat there {};
  if (::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return can_write_file(path);
  std::FILE* file = std::fopen(path.c_str(), "a+");  // as append_results will
  if (!file) return detail::file_failure(path, "cannot be written", errno);
  bool is_empty = false;
  bool const good = detail::begins_as_results(file, is_empty);
  std::fclose(file);
  return good ? status() : status(detail::no_results(path));
}

NEAP_FUNC status append_results(std::string const& path, results_row const& row) {
  auto const fail = [&](char const* why) { return failure{path + ": cannot be written: " + why}; };
  std::FILE* file = std::fopen(path.c_str(), "a+");
  if (!file) return fail(std::strerror(errno));
  std::string text;
  bool is_empty = false;
  bool const good = detail::begins_as_results(file, is_empty);
  std::fseek(file, 0, SEEK_END);
  long const before = std::ftell(file);
  if (is_empty) {
    text = std::string(results_header) + "\n";
  } else if (!good) {
    std::fclose(file);
    return detail::no_results(path);
  } else if (std::fseek(file, -1, SEEK_END) == 0 && std::fgetc(file) != '\n') {
    text = "\n";  // an earlier row was cut off
  }
  std::fseek(file, 0, SEEK_END);
  text += to_csv(row) + "\n";
  bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  ok &= std::fflush(file) == 0;
  int const code = errno;
  if (!ok && before >= 0 && ::ftruncate(::fileno(file), before) != 0) ok = false;
  bool const closed = std::fclose(file) == 0;
  return ok && closed ? status() : status(fail(std::strerror(ok ? errno : code)));
}

}}  // namespace neap::v0
