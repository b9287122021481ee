#include <neap/train/path_pattern.hpp>

#include <doctest/doctest.h>

using neap::detail::matches;

TEST_CASE("a star stands for any characters, none included") {
  CHECK(matches("a.weight", "a.weight"));
  CHECK_FALSE(matches("a.weight", "a.weights"));
  CHECK_FALSE(matches("a.weights", "a.weight"));
  CHECK(matches("*", ""));
  CHECK(matches("*", "a.b"));
  CHECK(matches("*.bias", "layers.3.up.bias"));
  CHECK_FALSE(matches("*.bias", "bias"));
  CHECK(matches("layers.*.up.*", "layers.3.up.weight"));
  CHECK(matches("a*b*c", "abxbc"));  // the first b is not the one
  CHECK_FALSE(matches("a*b*c", "abxb"));
  CHECK(matches("a**", "a"));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("", ""));
}
