#include <neap/blocks/value_partners.hpp>

#include "remat_blocks.hpp"

#include <doctest/doctest.h>

#include <cstddef>

using namespace neap;

TEST_CASE("a value made of a larger one is idle once dropped beside it, and doomed when made again of it") {
  // 0 -> a (8 bytes) -> b (3 bytes); both are read at the end.
  remat_problem p;
  auto const value = [&](std::int64_t bytes) {
    p.values.push_back({});
    p.values.back().bytes = bytes;
  };
  value(8), value(3), value(1);
  auto const op = [&](std::vector<std::uint32_t> in, std::uint32_t out, double time) {
    p.ops.push_back({});
    p.ops.back().inputs = std::move(in), p.ops.back().outputs = {out}, p.ops.back().time = time;
  };
  op({}, 0, 1), op({0}, 1, 2), op({0, 1}, 2, 1);
  p.values[2].kept = true;
  REQUIRE(check(p).ok());
  detail::remat_facts<1> const f(p, {100});
  detail::value_partners<1> const partners(f);
  using set = detail::value_set<1>;
  auto const a = std::size_t{f.number[0]}, b = std::size_t{f.number[1]};
  set alive, idle, doomed;
  alive.set(a);
  CHECK(partners.no_smaller[b].test(a));
  CHECK(!partners.no_smaller[a].test(b));
  CHECK(partners.lone.test(b));
  partners.note_drop(b, alive, idle, doomed);
  CHECK(idle.test(b));
  set made;
  made.set(b);
  partners.note_run(1, false, made, idle, doomed);  // op 1 reads a: what was idle beside it is made of it
  CHECK(doomed.test(b));
  CHECK(!partners.may_drop(a, doomed));
  CHECK(partners.may_drop(b, doomed));
  set nothing;
  partners.note_run(2, true, nothing, idle, doomed);  // reads both
  CHECK(partners.may_drop(a, doomed));
}
