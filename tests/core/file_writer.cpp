#include <neap/core/file_writer.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <string>
#include <vector>

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

TEST_CASE("what a killed save has left is removed by the next one, and nothing else") {
  scratch const at;
  ::pid_t const gone = ::fork();
  if (gone == 0) ::_exit(0);
  int how = 0;
  ::waitpid(gone, &how, 0);
  auto const dead = std::to_string(gone), mine = std::to_string(::getpid()), parent = std::to_string(::getppid());
  for (auto const& name : {"f.tmp" + dead, "f.tmp" + dead + ".3", "f.tmp" + mine, "f.tmp" + mine + ".1"})
    write_bytes(at / name, "left");
  std::vector<std::string> const others{"f.tmp",        "f.tmpx",         "f.tmp" + dead + "x",  "f.tmp" + dead + ".",
                                        "g.tmp" + dead, "f.tmp" + parent, "f.tmp" + dead + ".a", "ff.tmp" + dead};
  for (auto const& name : others) write_bytes(at / name, "not ours");
  std::filesystem::create_directory(at / "f.tmp999999998");
  file_writer out(at / "f");
  out.write("new");
  CHECK(out.finish().ok());
  CHECK(read_bytes(at / "f") == "new");
  for (auto const& name : others) CHECK_MESSAGE(std::filesystem::exists(at / name), name);
  CHECK(at.file_count() == others.size() + 2);
}

TEST_CASE("a save that is killed halfway: the old file stays, the next save clears up") {
  scratch const at;
  write_bytes(at / "f", "old");
  ::pid_t const child = ::fork();
  if (child == 0) {
    file_writer out(at / "f");
    out.write("half of the new one");
    ::kill(::getpid(), SIGKILL);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  CHECK(WIFSIGNALED(how));
  CHECK(read_bytes(at / "f") == "old");
  CHECK(at.file_count() == 2);
  file_writer out(at / "f");
  CHECK(out.finish().ok());
  CHECK(at.file_count() == 1);
}

TEST_CASE("two writers for one place at once: the last to finish stays, whole") {
  scratch const at;
  file_writer one(at / "f"), two(at / "f");
  CHECK(at.file_count() == 2);
  one.write("one"), two.write("two, longer");
  CHECK(two.finish().ok());
  CHECK(read_bytes(at / "f") == "two, longer");
  one.write(" and more");
  CHECK(one.finish().ok());
  CHECK(read_bytes(at / "f") == "one and more");
  CHECK(at.file_count() == 1);
}
