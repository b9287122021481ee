#include <neap/core/file_writer.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <csignal>

using namespace neap;
using namespace neap::testing;

TEST_CASE("pieces become one file when it is finished, and not before") {
  scratch const at;
  write_bytes(at / "f", "old");
  {
    file_writer out(at / "f");
    out.write("one, ");
    CHECK(out.ok());
    CHECK(read_bytes(at / "f") == "old");
    out.write("two");
    CHECK(out.finish().ok());
  }
  CHECK(read_bytes(at / "f") == "one, two");
  CHECK(at.file_count() == 1);
}

TEST_CASE("what is not finished never was") {
  scratch const at;
  write_bytes(at / "f", "old");
  for (auto name : {"f", "new"}) {
    file_writer out(at / name);
    out.write("half");
  }
  CHECK(read_bytes(at / "f") == "old");
  CHECK(at.file_count() == 1);
}

TEST_CASE("a file has the old one's permissions from its first byte on") {
  scratch const at;
  write_bytes(at / "f", "secret");
  ::chmod((at / "f").c_str(), 0600);
  file_writer out(at / "f");
  for (auto const& entry : std::filesystem::directory_iterator(at.folder)) {
    struct ::stat s {};
    ::stat(entry.path().c_str(), &s);
    CHECK((s.st_mode & 0777) == 0600);
  }
  CHECK(out.finish().ok());
  CHECK(at.file_count() == 1);
}

TEST_CASE("a disk that fills up halfway leaves the old file and nothing beside it") {
  scratch const at;
  write_bytes(at / "f", "old");
  struct ::rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct ::rlimit const limit{10000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::string message;
  {
    file_writer out(at / "f");
    std::string const piece(4000, 'x');
    for (int i = 0; i < 5; ++i) out.write(piece);
    CHECK_FALSE(out.ok());
    message = out.finish().message();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message == at / "f" + ": cannot be written: File too large");
  CHECK(read_bytes(at / "f") == "old");
  CHECK(at.file_count() == 1);
}

TEST_CASE("devices are written to directly, and say when they are full") {
  file_writer out("/dev/full");
  out.write("x");
  CHECK(out.finish().message() == "/dev/full: cannot be written: No space left on device");
  CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("a place that cannot be written is told at once, and again at the end") {
  scratch const at;
  file_writer out(at / "no/f");
  CHECK_FALSE(out.ok());
  out.write("x");
  CHECK(out.finish().message() == at / "no/f" + ": cannot be written: No such file or directory");
  CHECK(at.file_count() == 0);
}
