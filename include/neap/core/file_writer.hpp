// Whole files out, piece by piece: written beside their place (NAME.tmpPID), synced, then renamed over it, so that no reader
// ever sees half of one. What a writer that was killed has left there is removed by the next one for that place.
//
//   file_writer out(path);
//   out.write(head), out.write(body);
//   if (auto done = out.finish(); !done) ...   // without finish() nothing has happened
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/posix.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace neap { inline namespace v0 {

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

/// Removes what writers for `place` that were killed have left beside it: files NAME.tmpPID and NAME.tmpPID.N that no process
/// has locked and whose process is not there (or is this one). Others stay, whatever they are.
inline void remove_left_over(std::string const& place) {
  auto const folder = folder_of(place);
  auto const begin = place.substr(place.find_last_of('/') + 1) + ".tmp";
  ::DIR* const entries = ::opendir(folder.c_str());
  if (!entries) return;
  while (auto const* entry = ::readdir(entries)) {
    std::string_view rest = entry->d_name;
    if (!rest.starts_with(begin)) continue;
    rest.remove_prefix(begin.size());
    auto const digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    auto const number = rest.substr(0, digits);
    rest.remove_prefix(digits);
    if (number.empty() || number.size() > 9 || (!rest.empty() && rest[0] != '.')) continue;
    if (rest.size() == 1 || rest.find_first_not_of("0123456789", 1) != rest.npos) continue;
    auto const writer = static_cast<::pid_t>(std::atoi(std::string(number).c_str()));
    if (writer != ::getpid() && (::kill(writer, 0) == 0 || errno != ESRCH)) continue;
    auto const path = folder + "/" + entry->d_name;
    struct ::stat is {};
    if (::lstat(path.c_str(), &is) != 0 || !S_ISREG(is.st_mode)) continue;
    std::FILE* const file = std::fopen(path.c_str(), "rbe");
    if (!file) continue;
    if (posix::try_lock(::fileno(file))) ::unlink(path.c_str());
    std::fclose(file);
  }
  ::closedir(entries);
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
    if (direct_) open_directly();
    else open_beside();
    if (!file_) return;
    std::setvbuf(file_, nullptr, _IONBF, 0);
    if (there && !direct_ && ::fchmod(::fileno(file_), old.st_mode & 07777) != 0) fail(errno);
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
      auto const n = ::write(::fileno(file_), from, bytes);
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
    if (ok() && ::fsync(::fileno(file_)) != 0 && errno != EINVAL && errno != EROFS) fail(errno);
    // The lock is held until the file is in its place.
    if (ok() && !direct_ && std::rename(beside_.c_str(), place_.c_str()) != 0) fail(errno);
    else if (ok()) made_ = false;
    if (ok() && std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
    if (!ok()) {
      give_up();
      return failed_;
    }
    if (direct_) return {};
    if (std::FILE* const folder = std::fopen(detail::folder_of(place_).c_str(), "rbe")) {
      (void)::fsync(::fileno(folder));  // the new name, too
      std::fclose(folder);
    }
    return {};
  }

 private:
  void open_directly() {
    file_ = std::fopen(place_.c_str(), "wbe");
    if (!file_) fail(errno);
  }
  /// A new file beside the place, locked, so that others for this place know that its writer is there.
  void open_beside() {
    detail::remove_left_over(place_);
    auto const name = place_ + ".tmp" + std::to_string(::getpid());
    for (int attempt = 0; attempt < 1000; ++attempt) {
      beside_ = attempt == 0 ? name : name + "." + std::to_string(attempt);
      file_ = std::fopen(beside_.c_str(), "wbxe");
      if (!file_ && errno == EEXIST) continue;
      if (!file_) return fail(errno);
      struct ::stat mine {
      }, named{};
      // Between making and locking it another writer may have taken it for left over.
      bool const locked = detail::posix::try_lock(::fileno(file_)) || errno != EWOULDBLOCK;
      made_ = locked && ::fstat(::fileno(file_), &mine) == 0 && ::stat(beside_.c_str(), &named) == 0 &&
              mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
      if (made_) return;
      std::fclose(std::exchange(file_, nullptr));
    }
    fail(EEXIST);
  }
  void fail(int code) {
    if (ok()) failed_ = detail::file_failure(path_, "cannot be written", code);
  }
  void give_up() {
    if (file_) std::fclose(std::exchange(file_, nullptr));
    if (std::exchange(made_, false)) ::unlink(beside_.c_str());
  }

  std::string path_, place_, beside_;
  bool direct_ = false, made_ = false;  // made_: something stands beside the place
  std::FILE* file_ = nullptr;           // for its descriptor alone: without a buffer
  status failed_;
};

}}  // namespace neap::v0
