#include <neap/backend/strided.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace neap;
using detail::convert;

TEST_CASE("a number becomes an integer towards 0, the nearest there is, and 0 if it is none") {
  CHECK(convert<std::int32_t>(2.9f) == 2);
  CHECK(convert<std::int32_t>(-2.9) == -2);
  CHECK(convert<std::uint8_t>(255.5f) == 255);
  CHECK(convert<std::uint8_t>(300.0f) == 255);
  CHECK(convert<std::uint8_t>(-0.5f) == 0);
  CHECK(convert<std::uint8_t>(-3.0) == 0);
  CHECK(convert<std::int32_t>(1e20f) == std::numeric_limits<std::int32_t>::max());
  CHECK(convert<std::int32_t>(2147483520.0f) == 2147483520);  // the last float below 2^31
  CHECK(convert<std::int64_t>(-1e30) == std::numeric_limits<std::int64_t>::min());
  CHECK(convert<std::int64_t>(INFINITY) == std::numeric_limits<std::int64_t>::max());
  CHECK(convert<std::int64_t>(std::nan("")) == 0);
  CHECK(convert<std::uint8_t>(bf16(7.0f)) == 7);
  CHECK(convert<bool>(0.25f));
  CHECK(!convert<bool>(-0.0f));
}
