#include <neap/cuda/grid.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace {

using neap::cuda_grid, neap::cuda_grid_of;

// How often each row and part is done, as the loops of launch.cuh walk.
std::vector<int> visits(cuda_grid const& g, std::int64_t rows) {
  std::vector<int> seen(static_cast<std::size_t>(rows * g.parts));
  std::int64_t const warps = neap::cuda_block_threads / neap::cuda_warp_threads;
  for (std::int64_t block = 0; block < g.blocks; ++block) {
    if (g.warp_rows) {
      for (std::int64_t warp = 0; warp < warps; ++warp)
        for (std::int64_t row = block * warps + warp; row < rows; row += g.rows_at_once)
          ++seen[static_cast<std::size_t>(row)];
    } else {
      for (std::int64_t row = block / g.parts; row < rows; row += g.rows_at_once)
        ++seen[static_cast<std::size_t>(row * g.parts + block % g.parts)];
    }
  }
  return seen;
}

}  // namespace

static_assert(cuda_grid_of(0, 100) == cuda_grid{});
static_assert(cuda_grid_of(5, 512).warp_rows && !cuda_grid_of(5, 513).warp_rows && !cuda_grid_of(5, 0).warp_rows);
static_assert(cuda_grid_of(9, 10).blocks == 2 && cuda_grid_of(9, 1000).blocks == 9);
static_assert(cuda_grid_of(1, 1 << 20, true).parts == 512 && cuda_grid_of(1, 1 << 20, false).parts == 1);
static_assert(cuda_grid_of(2000, 1 << 20, true).parts == 1);  // there are rows enough

TEST_CASE("every row is done once, every part of it") {
  neap::random_stream r{1};
  for (int trial = 0; trial < 2000; ++trial) {
    std::int64_t const rows = r.below(4) == 0 ? r.below(3000) : r.below(20),
                       work = r.below(3) ? r.below(2000) : r.below(9000000);
    bool const splits = r.below(2) == 0;
    auto const g = cuda_grid_of(rows, work, splits);
    CAPTURE(rows);
    CAPTURE(work);
    CAPTURE(splits);
    bool once = true;
    for (int n : visits(g, rows)) once = once && n == 1;
    CHECK(once);
    CHECK((splits || g.parts == 1));
    CHECK(g.blocks * std::int64_t{256} <= (rows + 1024) * 256);
  }
}

TEST_CASE("more rows than a launch may have blocks") {
  std::int64_t const rows = std::int64_t{1} << 40;
  for (std::int64_t work : {std::int64_t{0}, std::int64_t{8}, std::int64_t{100000}})
    for (bool splits : {false, true}) {
      auto const g = cuda_grid_of(rows, work, splits);
      CHECK((g.blocks > 0 && g.blocks <= 2147483647u));
      CHECK((g.rows_at_once > 0 && g.rows_at_once <= rows));
      CHECK(std::int64_t{g.blocks} * (g.warp_rows ? 8 : 1) == g.rows_at_once * g.parts);
    }
}

TEST_CASE("the layout of a row does not depend on how many there are") {
  for (std::int64_t work : {0, 1, 31, 512, 513, 100000})
    for (std::int64_t rows : {1, 7, 5000}) CHECK(cuda_grid_of(rows, work).warp_rows == cuda_grid_of(1, work).warp_rows);
}
