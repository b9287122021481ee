#include <neap/memory/exact/conflict_sets.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace neap;

TEST_CASE("of the reasons of a limit the weakest that suffices counts") {
  detail::conflict_sets sets(100);
  sets.start(100, [](std::uint32_t i) { return i == 7 ? 5 : 0; });
  sets.clear();
  sets.add(70);
  sets.set_reason(100, 10, 7);
  sets.add(3);
  sets.set_reason(101, 20, 100);

  auto const adds = [&](std::int64_t least, bool low, bool high) {
    sets.clear();
    sets.add_reason(101, least);
    return sets.contains(70) == low && sets.contains(3) == high && !sets.contains(7);
  };
  CHECK(adds(20, true, true));
  CHECK(adds(11, true, true));
  CHECK(adds(10, true, false));
  CHECK(adds(6, true, false));
  CHECK(adds(5, false, false));  // whatever is placed
  CHECK(adds(-1, false, false));

  sets.clear();
  sets.add_reason(101, 20);
  sets.remove(3);
  CHECK(!sets.contains(3));
  CHECK(sets.contains(70));
}

TEST_CASE("reasons behind those that a search keeps are written over") {
  detail::conflict_sets sets(2);
  sets.start(2, [](std::uint32_t) { return 0; });
  for (std::uint32_t by : {0u, 1u}) {
    sets.clear();
    sets.add(by);
    sets.set_reason(2, 4, 0);
    sets.clear();
    sets.add_reason(2, 4);
    CHECK(sets.contains(by));
    CHECK(!sets.contains(1 - by));
  }
}

TEST_CASE("without reasons every record is in conflict") {
  detail::conflict_sets const none(0);
  CHECK(!none.kept());
  CHECK(none.contains(5));
}
