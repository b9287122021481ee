#include <neap/core/sort_once.hpp>

#include <doctest/doctest.h>

#include <vector>

TEST_CASE("sort_once sorts and leaves one of each") {
  std::vector<int> list{3, 1, 3, 2, 1, 3};
  neap::detail::sort_once(list);
  CHECK(list == std::vector{1, 2, 3});
  std::vector<int> none;
  neap::detail::sort_once(none);
  CHECK(none.empty());
}
