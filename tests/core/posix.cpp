#include <neap/core/posix.hpp>

#include <neap/core/file_writer.hpp>
#include <neap/execute/spill_file.hpp>

#if defined(O_RDONLY) || defined(O_CREAT) || defined(LOCK_EX)
#error "these headers let <fcntl.h> or <sys/file.h> through"
#endif

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a lock is one handle's") {
  scratch const at;
  write_bytes(at / "f", "x");
  int const a = ::open((at / "f").c_str(), O_RDONLY), b = ::open((at / "f").c_str(), O_RDONLY);
  CHECK(detail::posix::try_lock(a));
  CHECK(!detail::posix::try_lock(b));
  CHECK(::flock(b, LOCK_EX | LOCK_NB) != 0);
  ::close(a);
  CHECK(detail::posix::try_lock(b));
  ::close(b);
}
