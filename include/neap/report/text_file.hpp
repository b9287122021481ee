// Whole files out: written beside their place, synced, then renamed over it, so that nobody ever sees half of one.
#pragma once

#include <neap/core/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace neap::inline v0 {

/// Replaces the file at `path`, or leaves it as it was and says why.
inline status write_file(std::string const& path, std::string_view text) {
  std::string const beside = path + ".tmp" + std::to_string(::getpid());
  int const file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return failure{path + ": cannot be written: " + std::strerror(errno)};
  auto const give_up = [&](char const* what) -> status {
    int const code = errno;
    ::close(file);
    ::unlink(beside.c_str());
    return failure{path + ": " + what + ": " + std::strerror(code)};
  };
  while (!text.empty()) {
    auto const n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return give_up("cannot be written");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file) != 0 && errno != EINVAL) return give_up("cannot be synced");
  if (::close(file) != 0) return give_up("cannot be written");
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    int const code = errno;
    ::unlink(beside.c_str());
    return failure{path + ": cannot be replaced: " + std::strerror(code)};
  }
  return {};
}

}  // namespace neap::inline v0
