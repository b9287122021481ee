// Whole files out, piece by piece: written beside their place, synced, then renamed over it, so that nobody ever sees half
// of one.
//
//   file_writer out(path);
//   out.write(head), out.write(body);
//   if (auto done = out.finish(); !done) ...   // without finish() nothing has happened
#pragma once

#include <neap/core/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace neap::inline v0 {

namespace detail {

inline failure file_failure(std::string const& path, char const* what, int code) {
  return {path + ": " + what + ": " + std::strerror(code)};
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

/// Whether a file_writer would have a place to write to, as far as that can be known before; says why not.
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
class file_writer {
 public:
  explicit file_writer(std::string path) : path_(std::move(path)) {
    failed_ = can_write_file(path_);
    if (!failed_) return;
    place_ = detail::file_behind(path_);
    struct ::stat old {};
    bool const there = ::stat(place_.c_str(), &old) == 0;
    direct_ = there && !S_ISREG(old.st_mode);
    beside_ = direct_ ? place_ : place_ + ".tmp" + std::to_string(::getpid());
    file_ = ::open(beside_.c_str(), O_WRONLY | O_CLOEXEC | (direct_ ? 0 : O_CREAT | O_TRUNC), 0666);
    if (file_ < 0) {
      fail(errno);
      return;
    }
    made_ = !direct_;
    if (there && !direct_ && ::fchmod(file_, old.st_mode & 07777) != 0) fail(errno);
  }
  file_writer(file_writer const&) = delete;
  file_writer& operator=(file_writer const&) = delete;
  /// Not finished: nothing is left beside the place.
  ~file_writer() { give_up(); }

  /// Whether all went well so far; after a failure the others do nothing.
  bool ok() const { return failed_.ok(); }
  void write(void const* data, std::size_t bytes) {
    auto const* from = static_cast<char const*>(data);
    while (bytes > 0 && ok()) {
      auto const n = ::write(file_, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(errno);
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// Puts the file in its place; the first thing that went wrong, if something did. Pipes and devices cannot be synced and
  /// need not be.
  status finish() {
    if (ok() && ::fsync(file_) != 0 && errno != EINVAL && errno != EROFS) fail(errno);
    if (ok() && ::close(std::exchange(file_, -1)) != 0) fail(errno);
    if (ok() && !direct_ && ::rename(beside_.c_str(), place_.c_str()) != 0) fail(errno);
    if (!ok()) {
      give_up();
      return failed_;
    }
    made_ = false;
    if (direct_) return {};
    if (int const folder = ::open(detail::folder_of(place_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
      (void)::fsync(folder);  // the new name, too
      ::close(folder);
    }
    return {};
  }

 private:
  void fail(int code) {
    if (ok()) failed_ = detail::file_failure(path_, "cannot be written", code);
  }
  void give_up() {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
    if (std::exchange(made_, false)) ::unlink(beside_.c_str());
  }

  std::string path_, place_, beside_;
  bool direct_ = false, made_ = false;  // made_: something stands beside the place
  int file_ = -1;
  status failed_;
};

}  // namespace neap::inline v0
