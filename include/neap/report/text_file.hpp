// Whole texts out, and whether two names mean one file.
#pragma once

#include <neap/core/file_writer.hpp>

#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

/// Whether two names lead to one regular file, which need not be there yet. Devices and pipes are never one: several may
/// write to them.
inline bool same_file(std::string const& a, std::string const& b) {
  struct ::stat x {
  }, y{};
  bool const x_there = ::stat(a.c_str(), &x) == 0, y_there = ::stat(b.c_str(), &y) == 0;
  if (x_there != y_there) return false;
  if (x_there) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
  auto const name = [](std::string const& path) { return path.substr(path.find_last_of('/') + 1); };
  return name(a) == name(b) && detail::file_behind(detail::folder_of(a)) == detail::file_behind(detail::folder_of(b));
}

/// Replaces the file at `path`, or leaves it as it was and says why, as file_writer does.
inline status write_file(std::string const& path, std::string_view text) {
  file_writer out(path);
  out.write(text);
  return out.finish();
}

}}  // namespace neap::v0
