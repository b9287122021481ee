// What tests do with files: a folder of their own, and bytes in and out.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace neap::testing {

/// A folder of its own, gone at the end of the test.
struct scratch {
  std::filesystem::path folder;
  scratch() {
    auto name = (std::filesystem::temp_directory_path() / "neap_test_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder, ignored);
  }
  std::string operator/(std::string const& name) const { return (folder / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }
};

inline std::string read_bytes(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_bytes(std::string const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace neap::testing
