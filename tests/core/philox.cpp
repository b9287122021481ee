#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace neap;

using four = std::array<std::uint32_t, 4>;

// The known answers that come with Random123 (philox4x32, 10 rounds).
static_assert(philox{0}(0, 0) == four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox{0xffffffffffffffff}(0xffffffffffffffff, 0xffffffffffffffff) ==
              four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox{0x299f31d0a4093822}(0x85a308d3243f6a88, 0x0370734413198a2e) ==
              four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST_CASE("unit floats lie in [0, 1)") {
  static_assert(unit_float(0) == 0.0f);
  static_assert(unit_float(0xffffffff) < 1.0f);
  static_assert(unit_float(0x80000000) == 0.5f);
}

TEST_CASE("streams repeat by seed and differ by seed and stream number") {
  random_stream a(1), b(1), c(2), d(1, 1);
  bool c_differs = false, d_differs = false;
  for (int i = 0; i < 100; ++i) {
    auto const x = a();
    CHECK(x == b());
    c_differs = c_differs || x != c();
    d_differs = d_differs || x != d();
  }
  CHECK(c_differs);
  CHECK(d_differs);
}

TEST_CASE("below is uniform enough: 10 bins, 100,000 draws, chi-squared of 9 degrees") {
  random_stream draw(7);
  std::vector<int> bins(10);
  for (int i = 0; i < 100000; ++i) ++bins[draw.below(10)];
  double chi = 0;
  for (int n : bins) chi += (n - 10000.0) * (n - 10000.0) / 10000.0;
  CHECK(chi < 27.9);  // 0.1 % of true randomness is worse
  CHECK(draw.below(1) == 0);
}
