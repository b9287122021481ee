#include <neap/core/number_set.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace neap;

TEST_CASE("equal things get one number, others their own, whatever the hash does") {
  for (std::uint64_t hash_values : {1, 3, 1000, 1 << 20}) {
    random_stream draw(hash_values);
    number_set set;
    std::vector<std::uint32_t> things;
    std::map<std::uint32_t, std::uint32_t> model;
    for (int i = 0; i < 600; ++i) {
      auto const x = draw.below(200);
      auto const before = things.size();
      auto const is_x = [&](std::uint32_t at) { return things[at] == x; };
      CHECK(set.contains(x % hash_values << 40, is_x) == model.contains(x));
      auto const n = set.find_or_add(x % hash_values << 40, is_x, [&] {
        things.push_back(x);
        return things.size() - 1;
      });
      auto const [known, fresh] = model.emplace(x, n);
      CHECK(known->second == n);
      CHECK(things[n] == x);
      CHECK((things.size() > before) == fresh);
    }
    CHECK(set.size() == model.size());
    CHECK(!set.contains(7, [](std::uint32_t) { return false; }));
    CHECK(things.size() == model.size());
  }
}
