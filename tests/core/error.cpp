#include <neap/core/error.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <source_location>
#include <string>

using namespace neap;

TEST_CASE("an error starts with the file, without its folders, and the line") {
  auto const here = std::source_location::current();
  error const e(here, "matmul: inner extents differ");
  CHECK(std::string(e.what()) == "error.cpp:" + std::to_string(here.line()) + ": matmul: inner extents differ");
  CHECK(std::string(error("plain").what()) == "plain");
  CHECK(std::string(error(std::source_location{}, "nowhere").what()) == "nowhere");
}

TEST_CASE("a result is a value or a message") {
  result<int> const good = 3;
  CHECK((good && good.ok()));
  CHECK(*good == 3);
  CHECK(good.message().empty());
  result<int> const bad = failure{"no such file"};
  CHECK_FALSE(bad);
  CHECK(bad.message() == "no such file");
  auto const here = std::source_location::current();
  CHECK_THROWS_WITH(bad.value(), error(std::source_location::current(), "no such file").what());
  CHECK_THROWS_WITH(bad.value(here), error(here, "no such file").what());
  CHECK_THROWS_WITH(bad.value({}), "no such file");
  CHECK_THROWS_WITH(*bad, "no such file");
  result<std::unique_ptr<int>> moved = std::make_unique<int>(4);  // values that can only be moved
  CHECK(**moved == 4);
  auto const taken = std::move(moved).value();
  CHECK(*taken == 4);
}

TEST_CASE("a status is good unless it says why not") {
  CHECK(status{}.ok());
  CHECK(status{}.message().empty());
  status const bad = failure{"disk full"};
  CHECK_FALSE(bad);
  CHECK(bad.message() == "disk full");
  CHECK_THROWS_WITH(bad.value(), error(std::source_location::current(), "disk full").what());
  CHECK_NOTHROW(status{}.value());
}
