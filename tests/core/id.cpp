#include <neap/core/id.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <vector>

using namespace neap;

static_assert(std::input_iterator<id_range<op_id>::iterator>);
static_assert(id_range<op_id>(3).size() == 3 && id_range<op_id>(0).empty());
static_assert(id_range(value_id{5}, 2).front() == value_id{5} && id_range(value_id{5}, 2).back() == value_id{6});
static_assert(nothing<op_id> == op_id{no_id} && id_at<op_id>(7) == op_id{7} && index(op_id{7}) == 7);

TEST_CASE("a range of ids is each id once, ascending from the first") {
  for (std::uint32_t first : {0u, 1u, 17u})
    for (std::size_t n = 0; n < 9; ++n) {
      id_range const ids(value_id{first}, n);
      std::vector<value_id> const all(ids.begin(), ids.end());
      REQUIRE(all.size() == n);
      CHECK(ids.size() == n);
      CHECK(ids.empty() == (n == 0));
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(all[i] == value_id{first + static_cast<std::uint32_t>(i)});
        CHECK(ids[i] == all[i]);
      }
    }
  std::vector<op_id> from_zero;
  for (auto o : id_range<op_id>(3)) from_zero.push_back(o);
  CHECK(from_zero == std::vector{op_id{0}, op_id{1}, op_id{2}});
}

TEST_CASE("a table is a vector that its ids index") {
  table<op_id, int> t(2, 4);
  CHECK(t.push_back(5) == op_id{2});
  CHECK(t[op_id{1}] == 4);
  t[op_id{1}] = 6;
  CHECK(std::vector<int>(t.begin(), t.end()) == std::vector{4, 6, 5});
  t.resize(4);
  CHECK(t[op_id{3}] == 0);
  t.clear();
  CHECK(t.empty());
}
