#include <neap/core/span_of.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace neap;

TEST_CASE("span_of: the elements that std::span's constructors give") {
  std::vector<std::string> const texts{"a", "b", "c"};
  CHECK(span_of(texts).data() == texts.data());
  CHECK(span_of(texts).size() == 3);
  CHECK(span_of(texts)[2] == "c");
  CHECK(span_of(std::vector<std::string>{}).empty());

  plain_vector<int> const numbers{1, 2, 3, 4};
  auto const all = span_of(numbers);
  CHECK(std::vector<int>(all.begin(), all.end()) == std::vector<int>{1, 2, 3, 4});
  auto const tail = span_of(numbers.data() + 1, 2);
  CHECK(tail.data() == std::span<int const>(numbers.data() + 1, 2).data());
  CHECK(tail.size() == 2);

  int room[3]{};
  for (int& x : mutable_span_of(room, 2)) x = 5;
  CHECK(room[0] == 5);
  CHECK(room[1] == 5);
  CHECK(room[2] == 0);
}
