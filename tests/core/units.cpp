#include <neap/core/units.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace neap;
using namespace neap::literals;

static_assert(2_KiB == 2048 && 3_MiB == 3 << 20 && 1_GiB == 1 << 30);
static_assert(align_up(0, 64) == 0 && align_up(1, 64) == 64 && align_up(64, 64) == 64 && align_up(65, 1) == 65);
static_assert(checked_mul(INT64_MAX, 1) == INT64_MAX && checked_mul(INT64_MAX, 0) == 0 &&
              checked_mul(-1, INT64_MAX) == -INT64_MAX);
static_assert(checked_add(INT64_MAX, INT64_MIN) == -1);

TEST_CASE("sizes that overflow are refused") {
  CHECK_THROWS_WITH(checked_mul(INT64_MAX, 2), "size overflows 64 bits");
  CHECK_THROWS_WITH(checked_mul(INT64_MIN, -1), "size overflows 64 bits");
  CHECK_THROWS_WITH(checked_mul(std::int64_t{1} << 32, std::int64_t{1} << 31), "size overflows 64 bits");
  CHECK_THROWS_WITH(checked_add(INT64_MAX, 1), "size overflows 64 bits");
  CHECK_THROWS_WITH(checked_add(INT64_MIN, -1), "size overflows 64 bits");
  CHECK_THROWS_WITH(align_up(INT64_MAX, 64), "size overflows 64 bits");
}
