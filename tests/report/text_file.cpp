#include <neap/report/text_file.hpp>

#include "../support/files.hpp"
#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <thread>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a file is replaced as a whole, with its permissions, and nothing is left beside it") {
  scratch const at;
  CHECK(write_file(at / "f", "first").ok());
  CHECK(read_bytes(at / "f") == "first");
  ::chmod((at / "f").c_str(), 0640);
  std::string const large(3 << 20, 'x');
  CHECK(write_file(at / "f", large).ok());
  CHECK(read_bytes(at / "f") == large);
  struct ::stat s {};
  ::stat((at / "f").c_str(), &s);
  CHECK((s.st_mode & 0777) == 0640);
  CHECK(write_file(at / "f", "").ok());
  CHECK(read_bytes(at / "f") == "");
  CHECK(at.file_count() == 1);
}

TEST_CASE("links stay links") {
  scratch const at;
  write_bytes(at / "real", "old");
  std::filesystem::create_symlink("real", at / "link");
  CHECK(write_file(at / "link", "new").ok());
  CHECK(std::filesystem::is_symlink(at / "link"));
  CHECK(read_bytes(at / "real") == "new");
  CHECK(at.file_count() == 2);
}

TEST_CASE("devices are written to, not replaced") {
  CHECK(write_file("/dev/null", "x").ok());
  CHECK(std::filesystem::is_character_file("/dev/null"));
  auto const full = write_file("/dev/full", "x");
  CHECK(full.message() == "/dev/full: cannot be written: No space left on device");
  CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("a failure leaves the old file, says why, and leaves nothing beside it") {
  scratch const at;
  CHECK(write_file(at / "no/such/folder", "x").message() ==
        at / "no/such/folder" + ": cannot be written: No such file or directory");
  CHECK(write_file(at.folder.string(), "x").message() == at.folder.string() + ": cannot be written: it is a folder");
  CHECK(!write_file("", "x").ok());
  write_bytes(at / "f", "old");
  CHECK(write_file(at / "f" + "/below", "x").message().find("Not a directory") != std::string::npos);
  // Where a folder has the name of the file beside, another name is taken.
  std::filesystem::create_directory(at / "f" + ".tmp" + std::to_string(::getpid()));
  CHECK(write_file(at / "f", "new").ok());
  CHECK(read_bytes(at / "f") == "new");
  CHECK(std::filesystem::is_directory(at / "f" + ".tmp" + std::to_string(::getpid())));
  CHECK(write_file(at / "f", "old").ok());
  std::filesystem::remove(at / "f" + ".tmp" + std::to_string(::getpid()));
  if (::geteuid() != 0) {
    std::filesystem::permissions(at.folder, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK(write_file(at / "f", "new").message().find("Permission denied") != std::string::npos);
    CHECK(read_bytes(at / "f") == "old");
  }
  CHECK(at.file_count() == 1);
}

TEST_CASE("can_write_file says beforehand what write_file would say") {
  scratch const at;
  CHECK(can_write_file(at / "new").ok());
  CHECK(can_write_file("/dev/null").ok());
  CHECK(can_write_file(at.folder.string()).message() == write_file(at.folder.string(), "").message());
  CHECK(can_write_file(at / "no/such").message() == write_file(at / "no/such", "").message());
  CHECK(at.file_count() == 0);
}

TEST_CASE("one file under two names is known, whether it is there or not") {
  scratch const at;
  std::filesystem::create_directory(at / "d");
  std::filesystem::create_symlink(at / "d", at / "e");
  for (bool there : {false, true}) {
    CAPTURE(there);
    if (there) write_bytes(at / "d/x", "1"), write_bytes(at / "d/y", "1");
    CHECK(same_file(at / "d/x", at / "d/x"));
    CHECK(same_file(at / "d/x", at / "e/x"));
    CHECK(same_file(at / "d/x", at / "d/../e/./x"));
    CHECK(!same_file(at / "d/x", at / "d/y"));
    CHECK(!same_file(at / "d/x", at / "x"));
    CHECK(!same_file(at / "d/x", at / "no/such/x"));
  }
  std::filesystem::create_symlink(at / "d/x", at / "link");
  std::filesystem::create_hard_link(at / "d/x", at / "hard");
  CHECK(same_file(at / "link", at / "d/x"));
  CHECK(same_file(at / "hard", at / "link"));
  CHECK(!same_file("/dev/null", "/dev/null"));
  auto const here = std::filesystem::current_path();
  std::filesystem::current_path(at / "d");
  CHECK(same_file("x", at / "d/x"));
  CHECK(same_file("new", "./new"));
  std::filesystem::current_path(here);
}

TEST_CASE("a reader never sees half of a file") {
  scratch const at;
  auto const file = at / "f";
  std::string const a(200000, 'a'), b(100000, 'b');
  REQUIRE(write_file(file, a).ok());
  bool whole = true;
  std::thread reader([&] {
    for (int i = 0; i < 200; ++i) {
      auto const now = read_bytes(file);
      whole &= now == a || now == b;
    }
  });
  for (int i = 0; i < 20; ++i) CHECK(write_file(file, i % 2 ? a : b).ok());
  reader.join();
  CHECK(whole);
}
