#include <neap/core/text_part.hpp>

#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace neap;
using detail::text_of;

TEST_CASE("a text has its parts, one after the other") {
  std::string const name = "w";
  CHECK(text_of({}) == "");
  CHECK(text_of({"weight ", name, ' ', std::string("x") + name, std::string_view("yz").substr(1)}) == "weight w xwz");
  CHECK(text_of({-1, " ", 7u, " ", INT64_MIN, " ", UINT64_MAX, " ", true}) ==
        "-1 7 -9223372036854775808 18446744073709551615 1");
  CHECK(text_of({0.5, " ", 2.f, " ", 0.1, " ", 1e-9}) == "0.5 2 0.1 1e-09");
  extents const dims{2, 3};
  CHECK(text_of({dims, " ", tensor_type{dtype::f32, dims}, " ", dtype::i64}) == "[2,3] f32[2,3] i64");
}

TEST_CASE("an error is thrown with such a text, and with the place that it is about") {
  CHECK_THROWS_WITH_AS(throw_error({"needs ", 2, " inputs"}), "needs 2 inputs", error);
  auto const here = std::source_location::current();
  auto const text = "text_part.cpp:" + std::to_string(here.line()) + ": needs 2 inputs";
  CHECK_THROWS_WITH_AS(throw_error(here, {"needs ", 2, " inputs"}), text.c_str(), error);
  CHECK_THROWS_WITH_AS(throw_error(std::source_location{}, {"needs"}), "needs", error);
}
