#include <neap/memory/exact/failed_states.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace neap;

TEST_CASE("what was put in is there until it is emptied, and nothing else") {
  detail::failed_states states;
  auto const state = [](std::uint64_t i) {
    detail::state_hash s;
    s.add(i, 7), s.add(3, i * i);
    return s;
  };
  for (std::uint64_t i = 0; i < 3000; ++i) {
    REQUIRE(!states.contains(state(i)));
    states.insert(state(i));
    states.insert(state(i / 2));
    REQUIRE(states.contains(state(i)));
  }
  for (std::uint64_t i = 0; i < 6000; ++i) REQUIRE(states.contains(state(i)) == (i < 3000));
  states.clear();
  CHECK(!states.contains(state(5)));
}

TEST_CASE("a state is a set: the order is no matter, what belongs to what is") {
  detail::state_hash a, b, c;
  a.add(1, 10), a.add(2, 20);
  b.add(2, 20), b.add(1, 10);
  c.add(1, 20), c.add(2, 10);
  CHECK(a == b);
  CHECK(!(a == c));
}
