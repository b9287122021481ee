#include <neap/core/readable.hpp>
#include <neap/core/units.hpp>

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::literals;

TEST_CASE("bytes, seconds and ratios as people read them") {
  CHECK(readable_bytes(0) == "0 B");
  CHECK(readable_bytes(1023) == "1023 B");
  CHECK(readable_bytes(1536) == "1.50 KiB");
  CHECK(readable_bytes(1_MiB - 1) == "1.00 MiB");  // not 1024.0 KiB
  CHECK(readable_bytes(100_MiB) == "100.0 MiB");
  CHECK(readable_bytes(9e18).ends_with(" PiB"));
  CHECK(readable_seconds(2.5e-6) == "2.5 us");
  CHECK(readable_seconds(0.0123) == "12.3 ms");
  CHECK(readable_seconds(90) == "90 s");
  CHECK(readable_seconds(12.341) == "12.34 s");
  CHECK(readable_percent(0.125) == "12.5 %");
  CHECK(readable_percent(0.000123) == "0.012 %");
  CHECK(readable_percent(0) == "0.0 %");
}
