// Whole files out: written beside their place, synced, then renamed over it, so that nobody ever sees half of one.
#pragma once

#include <neap/core/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace neap::inline v0 {

namespace detail {

inline failure file_failure(std::string const& path, char const* what, int code) {
  return {path + ": " + what + ": " + std::strerror(code)};
}

/// Writes all of a text and syncs it; 0, or the error's number. Pipes and devices cannot be synced and need not be.
inline int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    auto const n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(file) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

/// Where a file will stand: the end of a chain of links.
inline std::string file_behind(std::string const& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (!real) return path;
  std::string target(real);
  std::free(real);
  return target;
}

inline std::string folder_of(std::string const& path) {
  auto const slash = path.find_last_of('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace detail

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

/// Whether write_file would have a place to write to, as far as that can be known before; says why not.
inline status can_write_file(std::string const& path) {
  struct ::stat there {};
  if (path.empty()) return failure{"an empty file name cannot be written"};
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return failure{path + ": cannot be written: it is a folder"};
    if (!S_ISREG(there.st_mode)) return {};
  }
  auto const folder = detail::folder_of(detail::file_behind(path));
  if (::stat(folder.c_str(), &there) != 0) return detail::file_failure(path, "cannot be written", errno);
  if (!S_ISDIR(there.st_mode)) return detail::file_failure(path, "cannot be written", ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return detail::file_failure(path, "cannot be written", errno);
  return {};
}

/// Replaces the file at `path`, or leaves it as it was and says why. The new file has the permissions of the old one;
/// links stay links. What is no regular file (a pipe, a device) is written to directly.
inline status write_file(std::string const& path, std::string_view text) {
  if (auto can = can_write_file(path); !can) return can;
  std::string const place = detail::file_behind(path);
  struct ::stat old {};
  bool const there = ::stat(place.c_str(), &old) == 0;
  bool const direct = there && !S_ISREG(old.st_mode);
  std::string const beside = direct ? place : place + ".tmp" + std::to_string(::getpid());
  int const file = ::open(beside.c_str(), O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_TRUNC), 0666);
  if (file < 0) return detail::file_failure(path, "cannot be written", errno);
  int code = detail::write_all(file, text);
  if (!code && there && !direct && ::fchmod(file, old.st_mode & 07777) != 0) code = errno;
  if (::close(file) != 0 && !code) code = errno;
  if (direct) return code ? status(detail::file_failure(path, "cannot be written", code)) : status();
  if (!code && ::rename(beside.c_str(), place.c_str()) != 0) code = errno;
  if (code) {
    ::unlink(beside.c_str());
    return detail::file_failure(path, "cannot be written", code);
  }
  if (int const folder = ::open(detail::folder_of(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    (void)::fsync(folder);  // the new name, too
    ::close(folder);
  }
  return {};
}

}  // namespace neap::inline v0
