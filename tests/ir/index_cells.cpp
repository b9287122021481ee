#include <neap/ir/index_cells.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

using namespace neap;

namespace {

/// Calls f(frame) for the cells of a shape, cut until each has an answer; the cells with answers.
std::vector<index_cell> cells_of(extents const& dims, std::function<void(index_frame&)> const& f) {
  std::vector<index_cell> open{index_cell::all_of(dims)}, done;
  std::uint32_t n = 0;
  while (!open.empty()) {
    auto const c = open.back();
    open.pop_back();
    index_frame frame(c, hash_key::of(1), n++);
    f(frame);
    if (frame.is_cut()) c.cut(frame.cut(), [&](index_cell x) { open.push_back(std::move(x)); });
    else done.push_back(c);
  }
  return done;
}
/// Calls f with the values of a cell's variables.
void each_point(index_cell const& c, std::function<void(std::vector<std::int64_t> const&)> const& f) {
  std::vector<std::int64_t> t(c.variables.size(), 0);
  for (;;) {
    f(t);
    std::size_t k = t.size();
    while (k > 0 && ++t[k - 1] == c.variables[k - 1]) t[--k] = 0;
    if (k == 0) return;
  }
}
std::vector<std::int64_t> place_at(index_cell const& c, std::vector<std::int64_t> const& t) {
  std::vector<std::int64_t> p(c.at.begin(), c.at.end());
  for (auto const& x : c.terms) p[static_cast<std::size_t>(x.axis)] += x.factor * t[x.variable];
  return p;
}

}  // namespace

TEST_CASE("cells have each place of a shape once, whatever they are cut by") {
  random_stream draw(1);
  for (int k = 0; k < 200; ++k) {
    CAPTURE(k);
    extents dims;
    for (std::uint32_t a = 0, rank = 1 + draw.below(3); a < rank; ++a) dims.push_back(1 + draw.below(9));
    std::int64_t const radices[] = {1, 1 + draw.below(6), 1 + draw.below(6)};
    std::int64_t const bound = draw.below(9), by = 1 + draw.below(4);
    auto const done = cells_of(dims, [&](index_frame& f) {
      auto const& p = f.start();
      std::int64_t factors[max_rank];
      std::int64_t stride = 1;
      for (int a = p.rank() - 1; a >= 0; stride *= dims[a--]) factors[a] = stride;
      f.side(p[0], bound);
      coordinate digit[3], quotient;
      auto const n = f.combined(p, factors);
      f.digits(n, radices, 3, digit);
      f.divided(n, by, quotient);
    });
    std::set<std::vector<std::int64_t>> places;
    std::size_t count = 0;
    for (auto const& c : done) {
      std::set<bool> sides;
      each_point(c, [&](auto const& t) {
        auto const p = place_at(c, t);
        places.insert(p), ++count;
        sides.insert(p[0] < bound);
      });
      CHECK(sides.size() == 1);
    }
    CHECK(count == static_cast<std::size_t>(elements(dims)));
    CHECK(places.size() == count);
  }
}

TEST_CASE("digits are those of the number at each place") {
  random_stream draw(2);
  for (int k = 0; k < 300; ++k) {
    CAPTURE(k);
    extents dims;
    for (std::uint32_t a = 0, rank = 1 + draw.below(3); a < rank; ++a) dims.push_back(1 + draw.below(8));
    std::int64_t const radices[] = {1, 1 + draw.below(7), 1 + draw.below(7)};
    std::int64_t factors[max_rank];
    std::int64_t stride = 1;
    for (int a = dims.rank() - 1; a >= 0; stride *= dims[a--]) factors[a] = stride;
    // What the digits are where all variables are 0, and how they grow from there, as tags.
    for (auto const& c : cells_of(dims, [&](index_frame& f) {
           coordinate digit[3];
           f.digits(f.combined(f.start(), factors), radices, 3, digit);
         })) {
      index_frame frame(c, hash_key::of(1), 0);
      coordinate digit[3];
      REQUIRE(frame.digits(frame.combined(frame.start(), factors), radices, 3, digit));
      // Each digit changes by a fixed amount with each variable: a table of them, from places next to the first.
      std::map<std::size_t, std::vector<std::int64_t>> step;
      auto const digits_at = [&](std::vector<std::int64_t> const& t) {
        auto const p = place_at(c, t);
        std::int64_t n = 0;
        for (std::size_t a = 0; a < p.size(); ++a) n += p[a] * factors[a];
        return std::vector<std::int64_t>{n / radices[2] / radices[1], n / radices[2] % radices[1], n % radices[2]};
      };
      std::vector<std::int64_t> const zero(c.variables.size(), 0);
      auto const first = digits_at(zero);
      for (int i = 0; i < 3; ++i) CHECK(digit[i].at == first[static_cast<std::size_t>(i)]);
      for (std::size_t v = 0; v < zero.size(); ++v) {
        auto t = zero;
        if (c.variables[v] < 2) continue;
        t[v] = 1;
        step[v] = digits_at(t);
        for (std::size_t i = 0; i < 3; ++i) step[v][i] -= first[i];
      }
      bool linear = true;
      each_point(c, [&](auto const& t) {
        auto const is = digits_at(t);
        for (std::size_t i = 0; i < 3; ++i) {
          auto should = first[i];
          for (auto const& [v, s] : step) should += t[v] * s[i];
          linear = linear && is[i] == should;
        }
      });
      CHECK(linear);
    }
  }
}
