// Operators between tensors as they are written in other libraries: comparisons, masks, += and indices.
#include <neap/model/model.hpp>

#include <neap/train/grad.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

using namespace neap;
using neap::testing::message_of;

namespace {
using ints = std::vector<int>;
using v = std::vector<float>;

void told(int line, std::string const& what, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("operators.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}
}  // namespace

TEST_CASE("comparisons give masks") {
  tensor const x = tensor::from<float>({1, 2, 3}, {3}), y = tensor::from<float>({3, 2, 1}, {3});
  CHECK((x > y).values<int>() == ints{0, 0, 1});
  CHECK((x >= 2).values<int>() == ints{0, 1, 1});
  CHECK((2 > x).values<int>() == ints{1, 0, 0});
  CHECK((x < 2.5).values<int>() == ints{1, 1, 0});
  CHECK((x <= y).values<int>() == ints{1, 1, 0});
  CHECK((x == y).values<int>() == ints{0, 1, 0});
  CHECK((x != 2).values<int>() == ints{1, 0, 1});
  CHECK((3 == x).values<int>() == ints{0, 0, 1});
  CHECK((arange(3) == 1).values<int>() == ints{0, 1, 0});
  CHECK((reshape(x, {3, 1}) == x).values<int>() == ints{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK((x > 0).element() == dtype::boolean);
  parameter const w({3}, initialiser::constant(2));
  CHECK((w == x).values<int>() == ints{0, 1, 0});
  CHECK((x < w).values<int>() == ints{1, 0, 0});
  CHECK(((x > 1) & (x < 3)).values<int>() == ints{0, 1, 0});
  CHECK(((x < 2) | (x > 2)).values<int>() == ints{1, 0, 1});
  CHECK(((x < 3) ^ (x > 1)).values<int>() == ints{1, 0, 1});
  CHECK((~(x == 2)).values<int>() == ints{1, 0, 1});
  CHECK(((x > 1) & true).values<int>() == ints{0, 1, 1});
  CHECK(where(x > 1, x, 0).values<int>() == ints{0, 2, 3});
  static_assert(std::is_same_v<decltype(x == y), tensor>);
  told(__LINE__, message_of([&] { (void)(x > tensor::ones({3}, dtype::f64)); }), "greater: element types differ");
  told(__LINE__, message_of([&] { (void)(arange(3) > 0.5); }), "greater: 0.5 is no i64");
  told(__LINE__, message_of([&] { (void)(x & (x > 0)); }), "logical_and: needs booleans, got f32[3]");
  told(__LINE__, message_of([&] { (void)~x; }), "logical_not: needs booleans");
  told(__LINE__, message_of([&] { (void)((x > 0) & 2); }), "2");
}

TEST_CASE("x += y is x = x + y") {
  tensor x = tensor::from<float>({1, 2}, {2});
  tensor const before = x;
  x += 1;
  CHECK(x.values<float>() == v{2, 3});
  CHECK(before.values<float>() == v{1, 2});
  x -= before;
  x *= tensor::from<float>({3, 4}, {2});
  x /= 2;
  CHECK(x.values<float>() == v{1.5f, 2});
  x += x;
  CHECK(x.values<float>() == v{3, 4});
  (x += 1) *= 2;
  CHECK(x.values<float>() == v{8, 10});
  x += tensor::ones({3, 2});  // broadcasts
  CHECK(x.shape() == shape{3, 2});
  std::vector<tensor> some{x};
  some[0] -= 1;
  CHECK(some[0].values<float>()[0] == 8);

  // a residual connection, with its gradient, eager and traced
  parameter const w({2}, initialiser::constant(3));
  auto const loss = [&](tensor h) {
    tensor const skip = h;
    h *= w;
    h += skip;
    return sum(h);
  };
  CHECK(grad(loss(tensor::ones({2})), {w}).front().values<float>() == v{1, 1});
  auto const p = trace(loss, tensor::ones({2}));
  CHECK(p.program.op_count() == 3);
  CHECK_FALSE(p.program.has_updates());
  told(__LINE__, message_of([&] { x += tensor::ones({5}); }), "add: shapes do not broadcast, [3,2] and [5]");
  told(__LINE__, message_of([&] { x *= arange(2); }), "mul: element types differ");
  told(__LINE__, message_of([&] { x -= tensor(); }), "empty");
}

TEST_CASE("indices pick places of the first axes") {
  tensor const x = reshape(arange(24), {2, 3, 4});
  CHECK(x[1].shape() == shape{3, 4});
  CHECK(x[1][2][3].item<int>() == 23);
  CHECK(x.at(1, 2, 3).item<int>() == 23);
  CHECK(x.at(-1, 0).values<int>() == ints{12, 13, 14, 15});
  CHECK(x[-2].values<int>() == select(x, 0, 0).values<int>());
  for (std::size_t i = 0; i < 2; ++i) CHECK(x[i].shape() == shape{3, 4});
  for (unsigned i = 0; i < 2; ++i) CHECK(x.at(i, i).shape() == shape{4});
  parameter const w({2, 3}, initialiser::constant(1));
  CHECK(grad(sum(w[1]), {w}).front().values<float>() == v{0, 0, 0, 1, 1, 1});
  std::vector<tensor> const row{x[0], x[1]};
  CHECK(row[1][0].shape() == shape{4});
  told(__LINE__, message_of([&] { x[2]; }), "x[2]: there is no such place in i64[2,3,4]");
  told(__LINE__, message_of([&] { x[-3]; }), "x[-3]: there is no such place");
  told(__LINE__, message_of([&] { x.at(0, 3); }), "x[3]: there is no such place in i64[3,4]");
  told(__LINE__, message_of([&] { x.at(0, 0, 0, 0); }), "x[0]: the tensor has no axis to pick from, i64[]");
  told(__LINE__, message_of([&] { tensor()[0]; }), "empty");
}
