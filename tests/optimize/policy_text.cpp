#include <neap/optimize/policy_text.hpp>

#include <neap/core/error.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace neap;

TEST_CASE("each number of a policy has a name of its own, and is set by it alone") {
  std::set<std::string> names;
  auto const usual = numbers_of({});
  CHECK(usual.size() > 150);
  for (auto const& n : usual) {
    CAPTURE(n.name);
    CHECK(names.insert(n.name).second);
    search_policy policy;
    auto const other = n.value == 0 ? 1.0 : 0.0;
    set_number(policy, n.name, other);
    CHECK_FALSE(policy == search_policy{});
    auto const now = numbers_of(policy);
    for (std::size_t k = 0; k < now.size(); ++k)
      CHECK(now[k].value == (usual[k].name == n.name ? other : usual[k].value));
    set_number(policy, n.name, n.value);
    CHECK(policy == search_policy{});
  }
}

TEST_CASE("a policy is written as a line for each number") {
  search_policy policy;
  policy.segments.share = 0.75;
  policy.tighter.on = false;
  policy.offloads.leads[1] = 1.0 / 3;
  auto const text = to_string(policy);
  CHECK(text.find("segments.share = 0.75\n") != text.npos);
  CHECK(text.find("tighter.on = 0\n") != text.npos);
  CHECK(text.find("epochs.growth = 4\n") == 0);
  CHECK(text.find("offloads.leads.1 = 0.33333333333333331\n") != text.npos);
  search_policy again;
  for (auto const& n : numbers_of(policy)) set_number(again, n.name, n.value);
  CHECK(again == policy);
}

TEST_CASE("names and values that are none are refused") {
  search_policy policy;
  CHECK_THROWS_WITH_AS(set_number(policy, "segments.shore", 1), "search_policy: there is no number segments.shore",
                       error);
  CHECK_THROWS_AS(set_number(policy, "segments", 1), error);
  CHECK_THROWS_WITH_AS(set_number(policy, "dives.on", 0.5), "search_policy: dives.on does not take 0.5", error);
  CHECK_THROWS_AS(set_number(policy, "segments.share", -1), error);
  CHECK_THROWS_AS(set_number(policy, "segments.share", 0.0 / 0.0), error);
  CHECK_THROWS_AS(set_number(policy, "segments.max_tries", 2.5), error);
  CHECK_THROWS_AS(set_number(policy, "segments.max_tries", 1e12), error);
  CHECK(policy == search_policy{});
}
