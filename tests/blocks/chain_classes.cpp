#include <neap/blocks/chain_classes.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

using namespace neap;

TEST_CASE("chain classes: sub-chains share a class exactly if they are equal") {
  random_stream draw(1);
  for (int round = 0; round < 200; ++round) {
    auto const kinds_there = 1 + draw.below(round % 5 == 0 ? 30 : 3);
    std::vector<std::uint32_t> kinds(1 + draw.below(25));
    for (auto& k : kinds) k = draw.below(kinds_there) * 1000;
    chain_classes const classes(kinds);
    std::map<std::vector<std::uint32_t>, std::uint32_t> class_of;
    std::set<std::uint32_t> ids;
    for (std::size_t a = 0; a < kinds.size(); ++a)
      for (std::size_t b = a; b < kinds.size(); ++b) {
        std::vector<std::uint32_t> const word(kinds.begin() + static_cast<std::ptrdiff_t>(a),
                                              kinds.begin() + static_cast<std::ptrdiff_t>(b) + 1);
        auto const [at, is_new] = class_of.try_emplace(word, classes(a, b));
        CHECK(at->second == classes(a, b));
        CHECK(classes.that_end(b)[a] == classes(a, b));
        CHECK(ids.insert(classes(a, b)).second == is_new);
      }
    CHECK(classes.count() == class_of.size());
    CHECK(*ids.rbegin() + 1 == ids.size());
  }
}

TEST_CASE("chain classes: a periodic chain has as many as its period for each length") {
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t i = 0; i < 300; ++i) kinds.push_back(i % 3);
  CHECK(chain_classes(kinds).count() == 3 * 300 - 3);  // lengths 299 and 300 have 2 and 1
  CHECK(chain_classes({7}).count() == 1);
}
