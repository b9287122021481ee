// Parts of a tensor as arguments of compiled functions: one graph for all that differ in where they begin alone, with the
// values, the memory written and the views returned of the plain function.
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/tracked_sequence.hpp>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::deep;
using neap::testing::in_stages;
using neap::testing::new_deep;

namespace {

template <class F, class Arguments>
std::size_t compare_parts(F f, int calls, Arguments arguments, tensor const& whole) {
  auto const other = copy(whole);
  auto compiled = compile(f);
  for (int i = 0; i < calls; ++i) {
    CAPTURE(i);
    auto mine = arguments(whole, i), its = arguments(other, i);
    auto const a = std::apply(compiled, mine);
    auto const b = std::apply(f, its);
    CAPTURE(compiled.why_missed());
    REQUIRE(content_of(a) == content_of(b));
    REQUIRE(content_of(mine) == content_of(its));
    REQUIRE(content_of(whole) == content_of(other));
  }
  return compiled.graphs();
}
/// Call i gets arguments(whole, i): parts of a tensor of 41 rows of 6, which owns its memory or borrows it. All of it is
/// compared after each call.
template <class F, class Arguments>
std::size_t compare_parts(F f, int calls, Arguments arguments) {
  auto const own = tensor::randn({41, 6}, 5);
  auto numbers = own.values<float>();
  auto const graphs = compare_parts(f, calls, arguments, own);
  CHECK(compare_parts(f, calls, arguments, tensor::borrow(numbers.data(), {41, 6})) == graphs);
  return graphs;
}
tensor rows(tensor const& x, std::int64_t first, std::int64_t n) { return slice(x, 0, first, first + n); }

tensor doubled(tensor const& x) { return x * 2.0 + sum(x, {0}); }
tensor of_two(tensor const& x, tensor const& y) { return matmul(x, y, {.transpose_b = true}); }
tensor moved(tensor const& x, tensor const& y) {
  assign(x, x * 0.5 + y);
  return x + y;
}
tensor part_of(tensor const& x) { return rows(x, 1, 2); }

}  // namespace

TEST_CASE("minibatches that are parts of a tensor share a graph") {
  CHECK(compare_parts(doubled, 12, [](tensor const& x, int i) { return std::tuple{rows(x, 3 * i, 4)}; }) == 1);
  SUBCASE("columns") {
    CHECK(compare_parts(doubled, 5, [](tensor const& x, int i) { return std::tuple{slice(x, 1, i, i + 2)}; }) == 1);
  }
  SUBCASE("turned") {
    CHECK(compare_parts(doubled, 9, [](tensor const& x, int i) { return std::tuple{transpose(rows(x, 4 * i, 3))}; }) ==
          1);
  }
  SUBCASE("a training step") {
    deep model = new_deep(), plain = model;
    auto const data = tensor::randn({40, 32}, 3);
    auto compiled = compile(in_stages);
    for (int epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t i = 0; i < 8; ++i) {
        auto const a = compiled(model, rows(data, 5 * i, 5)), b = in_stages(plain, rows(data, 5 * i, 5));
        REQUIRE(content_of(a) == content_of(b));
        REQUIRE(content_of(model) == content_of(plain));
      }
    CHECK(compiled.graphs() <= 2);
  }
}

TEST_CASE("parts of one tensor are told apart by where they are to one another") {
  auto const at = [](std::int64_t apart) {
    return [apart](tensor const& x, int i) { return std::tuple{rows(x, i, 3), rows(x, i + apart, 3)}; };
  };
  CHECK(compare_parts(of_two, 10, at(5)) == 1);
  CHECK(compare_parts(moved, 10, at(5)) == 1);
  CHECK(compare_parts(moved, 10, at(1)) == 1);  // overlapping
  CHECK(compare_parts(moved, 10, at(0)) == 1);
  CHECK(compare_parts(moved, 12, [](tensor const& x, int i) {
          return std::tuple{rows(x, i, 3), rows(x, i + i % 3, 3)};
        }) == 3);
  CHECK(compare_parts(moved, 6, [](tensor const& x, int i) { return std::tuple{x, rows(x, i, 1)}; }) == 6);
  CHECK(compare_parts(moved, 6, [](tensor const& x, int i) {
          return std::tuple{rows(x, 2 * i, 3), rows(copy(x), 3 * i, 3)};
        }) == 1);
}

TEST_CASE("views of a part that are returned are of the tensor") {
  CHECK(compare_parts(part_of, 10, [](tensor const& x, int i) { return std::tuple{rows(x, 2 * i, 4)}; }) == 1);
  auto const whole = tensor::zeros({20, 3});
  auto compiled = compile(part_of);
  for (std::int64_t i = 0; i < 5; ++i) {
    tensor const view = compiled(rows(whole, 4 * i, 4));
    assign(view, tensor::full({2, 3}, static_cast<double>(i + 1)));
  }
  CHECK(compiled.graphs() == 1);
  CHECK(sum(whole, {1}).values<float>() ==
        std::vector<float>{0, 3, 3, 0, 0, 6, 6, 0, 0, 9, 9, 0, 0, 12, 12, 0, 0, 15, 15, 0});
}

TEST_CASE("elements of a tracked container may share memory with a part") {
  struct holder {
    tracked_vector<tensor> kept;
    void neap_parts(parts& list) { list(kept); }
  };
  auto const f = [](holder& h, tensor const& x) {
    assign(x, x + 1.0);
    return h.kept.front() * 2.0;
  };
  auto const run = [&](auto&& call) {
    auto const whole = tensor::zeros({12, 2});
    holder h;
    h.kept.push_back(rows(whole, 2, 6));
    std::vector<std::vector<float>> got;
    for (std::int64_t i = 0; i < 8; ++i) {
      auto const at = i % 4 == 3 ? tensor::zeros({4, 2}) : rows(whole, i, 4);
      got.push_back(call(h, at).template values<float>());
    }
    got.push_back(whole.values<float>());
    return got;
  };
  auto compiled = compile(f);
  CHECK(run(compiled) == run(f));
}

TEST_CASE("a function that uses more than its part of a tensor has graphs of the whole") {
  tensor const whole = tensor::randn({10, 2}, 4);
  auto const f = [](tensor const& x) { return apply(op::as_strided{{3, 2}, {2, 1}, 0}, {x}) + x; };
  auto compiled = compile(f);
  for (std::int64_t i = 0; i < 4; ++i)
    for (int twice = 0; twice < 3; ++twice) {
      auto const a = compiled(rows(whole, i, 3)), b = f(rows(whole, i, 3));
      REQUIRE(content_of(a) == content_of(b));
    }
  CHECK(compiled.graphs() == 4);
}
