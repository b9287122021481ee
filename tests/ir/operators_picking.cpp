#include <neap/ir/operators/picking.hpp>

#include <neap/backend/kernels/indexed.hpp>
#include <neap/backend/kernels/topk.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/multinomial.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>
#include <numeric>

using namespace neap;
using namespace neap::testing;

namespace {
/// Where element (o, i, r) of a shape lies, seen as what is before an axis, the axis, what is behind it.
struct along {
  std::int64_t outer = 1, n = 1, inner = 1;
  along(shape const& x, std::int64_t axis) {
    int const k = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
    for (int i = 0; i < x.rank(); ++i) (i < k ? outer : i == k ? n : inner) *= x[i];
  }
  std::int64_t at(std::int64_t o, std::int64_t i, std::int64_t r) const { return (o * n + i) * inner + r; }
};
shape with_extent(shape s, std::int64_t axis, std::int64_t n) {
  s[static_cast<int>(axis < 0 ? axis + s.rank() : axis)] = n;
  return s;
}
struct indexed {
  shape x;
  std::int64_t axis, n;
};
// Parts of few elements, of many, cut in pieces, none; axes from both ends.
std::vector<indexed> const cases{{{5}, 0, 7},     {{4, 6}, 0, 3},       {{4, 6}, 1, 8},     {{4, 6}, -1, 2},
                                 {{6, 40}, 0, 5}, {{40, 6}, 1, 4},      {{2, 3, 4}, 1, 5},  {{6, 4, 5}, -2, 3},
                                 {{4, 6}, 0, 0},  {{0, 6}, 1, 4},       {{3, 20000}, 0, 4}, {{2, 2, 2, 2}, 2, 6},
                                 {{0, 6}, 0, 0},  {{40, 5, 300}, 1, 4}, {{5, 0}, 0, 3}};
}  // namespace

TEST_CASE("parts by number") {
  std::uint64_t seed = 0;
  for (auto const& c : cases) {
    operand const index{{c.n}, 0, static_cast<double>(along(c.x, c.axis).n), dtype::i64};
    int const cuts = check_operator(
        op::index_select{c.axis}, {{c.x}, index},
        [&](arrays const& in) {
          along const x(c.x, c.axis);
          std::vector<double> y;
          for (std::int64_t o = 0; o < x.outer; ++o)
            for (std::int64_t i = 0; i < c.n; ++i)
              for (std::int64_t r = 0; r < x.inner; ++r)
                y.push_back(in[0][x.at(o, static_cast<std::int64_t>(in[1][i]), r)]);
          return numbers{y};
        },
        {}, ++seed);
    if (c.x == shape{4, 6} && c.n == 8) CHECK(cuts == 2);
    shape const given = with_extent(c.x, c.axis, c.n);
    for (dtype element : {dtype::f64, dtype::i32, dtype::i64})
      check_operator(
          op::index_add{c.axis}, {{c.x, -9, 9, element}, index, {given, -9, 9, element}},
          [&](arrays const& in) {
            along const x(c.x, c.axis), from(given, c.axis);
            std::vector<double> y = in[0].values();
            for (std::int64_t o = 0; o < x.outer; ++o)
              for (std::int64_t i = 0; i < c.n; ++i)
                for (std::int64_t r = 0; r < x.inner; ++r)
                  y[static_cast<std::size_t>(x.at(o, static_cast<std::int64_t>(in[1][i]), r))] +=
                      in[2][from.at(o, i, r)];
            return numbers{y};
          },
          {}, ++seed);
  }
}

TEST_CASE("ones at numbered places") {
  for (shape ids : {shape{4}, shape{}, shape{2, 3}, shape{0}, shape{2, 0, 3}})
    for (dtype element : {dtype::f32, dtype::f64, dtype::i64, dtype::i32, dtype::boolean, dtype::bf16, dtype::u8}) {
      int const cuts = check_operator(op::one_hot{5, element}, {{ids, 0, 5, dtype::i64}}, [&](arrays const& in) {
        std::vector<double> y;
        for (double id : in[0].values())
          for (int k = 0; k < 5; ++k) y.push_back(k == id);
        return numbers{y};
      });
      CHECK(cuts == (ids.rank() > 0 && ids[0] > 0 ? 1 : 0));  // odd extents are not cut
    }
}

TEST_CASE("the largest and the smallest along an axis, in order") {
  struct ranked {
    shape x;
    std::int64_t axis, k;
  };
  std::vector<ranked> few{{{4, 6}, 1, 3},    {{4, 6}, 0, 1},     {{4, 6}, -2, 4},    {{7}, 0, 7},
                          {{2, 3, 4}, 1, 2}, {{3, 5}, 1, 0},     {{3, 0}, 1, 0},     {{0, 4}, 1, 2},
                          {{1, 1}, 0, 1},    {{2, 1000}, 1, 17}, {{700, 3}, 0, 700}, {{40, 2, 9}, 2, 2}};
  random_stream draw(17, 1);
  for (int i = 0; i < 6; ++i) {
    shape const x = random_shape(draw, 1, 4);
    std::int64_t const axis = draw.below(static_cast<std::uint32_t>(x.rank()));
    few.push_back({x, axis - (draw.below(2) ? x.rank() : 0),
                   draw.below(static_cast<std::uint32_t>(x[static_cast<int>(axis)]) + 1)});
  }
  std::uint64_t seed = 0;
  for (auto const& c : few)
    for (bool largest : {true, false})
      // whole numbers below 4: many are equal
      for (dtype element : {dtype::f64, dtype::i64, dtype::u8, dtype::boolean}) {
        int const cuts = check_operator(
            op::topk{c.k, c.axis, largest},
            {{c.x, element == dtype::u8 || element == dtype::boolean ? 0.0 : -4.0, 4, element}},
            [&](arrays const& in) {
              along const x(c.x, c.axis);
              along const y(with_extent(c.x, c.axis, c.k), c.axis);
              std::vector<double> values(static_cast<std::size_t>(y.outer * y.n * y.inner)), places(values.size());
              for (std::int64_t o = 0; o < x.outer; ++o)
                for (std::int64_t r = 0; r < x.inner; ++r) {
                  std::vector<std::int64_t> order(static_cast<std::size_t>(x.n));
                  std::iota(order.begin(), order.end(), 0);
                  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                    double const p = in[0][x.at(o, a, r)], q = in[0][x.at(o, b, r)];
                    return largest ? p > q : p < q;
                  });
                  for (std::int64_t i = 0; i < c.k; ++i) {
                    auto const at = static_cast<std::size_t>(y.at(o, i, r));
                    places[at] = static_cast<double>(order[static_cast<std::size_t>(i)]);
                    values[at] = in[0][x.at(o, order[static_cast<std::size_t>(i)], r)];
                  }
                }
              return numbers{values, places};
            },
            {}, ++seed);
        if (c.x == shape{2, 3, 4}) CHECK(cuts == 4);  // two axes of two outputs
      }
}

TEST_CASE("whole numbers beyond f64's are ranked as they are") {
  std::int64_t const big = std::int64_t{1} << 62;
  std::vector<std::int64_t> x{big, big + 1, -big, -big - 1, INT64_MAX, INT64_MIN}, values(6), places(6);
  host_backend b(1);
  std::vector<std::byte> scratch(static_cast<std::size_t>(topk_workspace({6}, 6, 0)));
  auto const ref = [](auto& v) { return tensor_ref{v.data(), dtype::i64, {6}, {1}}; };
  topk(b, ref(values), ref(places), ref(x), 6, 0, true, scratch.data());
  CHECK(places == std::vector<std::int64_t>{4, 1, 0, 2, 3, 5});
  topk(b, ref(values), ref(places), ref(x), 6, 0, false, scratch.data());
  CHECK(values == std::vector<std::int64_t>{INT64_MIN, -big - 1, -big, big, big + 1, INT64_MAX});
}

TEST_CASE("numbers that are outside are told, and shapes that do not go together") {
  std::int64_t const wrong[] = {1, 5};
  double x[5] = {}, y[2] = {};
  host_backend b(1);
  tensor_ref const numbers{const_cast<std::int64_t*>(wrong), dtype::i64, {2}, {1}};
  CHECK(message_of([&] {
          index_select(b, {y, dtype::f64, {2}, {1}}, {x, dtype::f64, {5}, {1}}, numbers, 0);
        }) == "index_select: number 5 at place 1 is not below 5");
  CHECK(message_of([&] {
          index_add(b, op::add{}, {x, dtype::f64, {5}, {1}}, {x, dtype::f64, {5}, {1}}, numbers,
                    {y, dtype::f64, {2}, {1}}, 0, nullptr);
        }) == "index_add: number 5 at place 1 is not below 5");
  CHECK(message_of([&] {
          one_hot(b, {std::vector<double>(10).data(), dtype::f64, {2, 5}, {5, 1}}, numbers);
        }) == "one_hot: id 5 at place 1 is not a class below 5");

  graph_editor e{operator_table(standard_operators::facets)};
  auto const source = [&](dtype t, shape s) { return e.add_source(role::input, {t, s}); };
  auto const m = source(dtype::f32, {4, 6}), index = source(dtype::i64, {3}), table = source(dtype::i64, {3, 2});
  CHECK(message_of([&] { e.add(op::index_select{2}, {m, index}); }) == "index_select: no axis 2 in f32[4,6]");
  CHECK(message_of([&] {
          e.add(op::index_select{0}, {m, table});
        }) == "index_select: the numbers must have one axis, got i64[3,2]");
  CHECK(message_of([&] {
          e.add(op::index_add{0}, {m, index, m});
        }) == "index_add: what is added must have shape [3,6], got f32[4,6]");
  CHECK(message_of([&] { e.add(op::one_hot{3}, {m}); }) == "one_hot: numbers must be i64, got f32[4,6]: cast them");
  CHECK(message_of([&] { e.add(op::topk{7}, {m}); }) == "topk: axis 1 of f32[4,6] has no 7 elements");
}

namespace {
struct own_operator {
  static constexpr std::string_view name = "own_operator";
  void infer(shape_context& c) const { c.fresh(c.in(0)); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
struct own_total_operator {
  static constexpr std::string_view name = "own_total_operator";
  static constexpr bool checks_numbers = false;
  void infer(shape_context& c) const { c.fresh(c.in(0)); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
template <class Backend>
void run(Backend&, own_operator const&, kernel_arguments const&) {}
template <class Backend>
void run(Backend&, own_total_operator const&, kernel_arguments const&) {}
}  // namespace

TEST_CASE("operators say whether their kernels throw for numbers; a program's own is taken to, unless it says") {
  CHECK(facets_of<op::embedding>.checks_numbers);
  CHECK(facets_of<op::scatter_add>.checks_numbers);
  CHECK(facets_of<op::cross_entropy>.checks_numbers);
  CHECK(facets_of<op::multinomial>.checks_numbers);
  CHECK(!facets_of<op::binary_cross_entropy>.checks_numbers);
  CHECK(!facets_of<op::copy>.checks_numbers);
  CHECK(facets_of<own_operator>.checks_numbers);
  CHECK(!facets_of<own_total_operator>.checks_numbers);
}
