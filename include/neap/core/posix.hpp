// What the library needs of POSIX beyond <unistd.h>, declared here: <fcntl.h> and <sys/file.h> define some two hundred
// macros and global names, which would reach every program. The names are the C library's own, in a namespace.
#pragma once

#include <cstdint>
#include <cstdio>

#include <sys/types.h>
#include <unistd.h>

#if defined(__GLIBC__)
#define NEAP_C_NOEXCEPT noexcept
#else
#define NEAP_C_NOEXCEPT
#endif

namespace neap { inline namespace v0 { namespace detail::posix {

extern "C" {
int flock(int file, int operation) NEAP_C_NOEXCEPT;
int posix_fallocate(int file, ::off_t from, ::off_t bytes);
}

/// Locks an open file for this handle of it alone; false if another one has it, or the file system knows no locks. The
/// lock goes with the process.
inline bool try_lock(int file) {
  constexpr int exclusive = 2, at_once = 4;  // the same on every system that has flock
  return flock(file, exclusive | at_once) == 0;
}

}}}  // namespace neap::v0::detail::posix

#undef NEAP_C_NOEXCEPT
