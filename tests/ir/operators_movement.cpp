#include <neap/ir/operators/movement.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace {
numbers same(arrays const& in) { return {in[0].values()}; }
}  // namespace

TEST_CASE("copies, casts and fills") {
  for (shape dims : {shape{5, 6}, shape{2, 40, 33}, shape{}}) {
    check_operator(op::copy{}, {{dims}}, same);
    check_operator(op::cast{dtype::f64}, {{dims}}, same);
    check_operator(op::cast{dtype::f32}, {{dims}}, same, {.gradient = false});
    check_operator(op::cast{dtype::i64}, {{dims, -9, 9}},
                   [](arrays const& in) {
                     std::vector<double> y;
                     for (double x : in[0].values()) y.push_back(std::trunc(x));
                     return numbers{y};
                   },
                   {.gradient = false});
  }
  check_operator(op::fill{{2, 3}, dtype::f64, 2.5}, {}, [](arrays const&) {
    return numbers{{2.5, 2.5, 2.5, 2.5, 2.5, 2.5}};
  });
}

TEST_CASE("views see what they say") {
  check_operator(op::reshape{{6, 5}}, {{{5, 6}}}, same);
  check_operator(op::reshape{{2, 15}}, {{{5, 6}}}, same);
  check_operator(op::permute{{2, 0, 1}}, {{{2, 3, 4}}}, [](arrays const& in) {
    std::vector<double> y;
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < 2; ++b)
        for (int c = 0; c < 3; ++c) y.push_back(in[0].at({b, c, a}));
    return numbers{y};
  });
  check_operator(op::slice{-1, 1, 3}, {{{2, 5}}}, [](arrays const& in) {
    return numbers{{in[0].at({0, 1}), in[0].at({0, 2}), in[0].at({1, 1}), in[0].at({1, 2})}};
  });
  check_operator(op::broadcast_to{{2, 3, 2}}, {{{3, 1}}}, [](arrays const& in) {
    std::vector<double> y;
    for (int i = 0; i < 12; ++i) y.push_back(in[0][i / 2 % 3]);
    return numbers{y};
  });
}

TEST_CASE("reshape keeps the axes that it does not mix") {
  auto const kept = [](shape from, shape to) {
    tensor_layout const a = tensor_layout::dense({dtype::f32, from}), b = tensor_layout::dense({dtype::f32, to});
    dim_context c(std::span(&a, 1), std::span(&b, 1));
    op::reshape{to}.relate(c);
    std::string text;
    for (auto const& l : c.links()) text += std::to_string(l.in_axis) + ">" + std::to_string(l.out_axis) + " ";
    return text;
  };
  CHECK(kept({4, 8, 16}, {32, 16}) == "2>1 ");
  CHECK(kept({4, 8, 16}, {4, 8, 2, 8}) == "0>0 1>1 ");
  CHECK(kept({4, 8, 16}, {4, 128}) == "0>0 ");
  CHECK(kept({6, 4}, {4, 6}) == "");
}

TEST_CASE("concatenation, padding, sums to a shape") {
  check_operator(op::concat{1}, {{{2, 3}}, {{2, 1}}, {{2, 2}}}, [](arrays const& in) {
    std::vector<double> y;
    for (int i = 0; i < 2; ++i)
      for (auto const& x : in)
        for (int j = 0; j < x.layout.type.dims[1]; ++j) y.push_back(x.at({i, j}));
    return numbers{y};
  });
  check_operator(op::pad{0, 2, 1, 0.5}, {{{2, 2}}}, [](arrays const& in) {
    return numbers{{.5, .5, .5, .5, in[0][0], in[0][1], in[0][2], in[0][3], .5, .5}};
  });
  check_operator(op::sum_to{{4, 1}}, {{{3, 4, 6}}}, [](arrays const& in) {
    std::vector<double> y(4);
    for (int i = 0; i < 72; ++i) y[static_cast<std::size_t>(i / 6 % 4)] += in[0][i];
    return numbers{y};
  });
  CHECK(check_operator(op::sum_to{{}}, {{{4, 6}}}) == 2);
}

TEST_CASE("what cannot be moved is told") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const a = e.add_source(role::input, {dtype::f32, {4, 6}});
  auto const t = e.add(op::permute{{1, 0}}, {a})[0];
  CHECK(message_of([&] { e.add(op::reshape{{5, 5}}, {a}); }) == "reshape: from [4,6] to [5,5]: element counts differ");
  CHECK(message_of([&] { e.add(op::reshape{{24}}, {t}); }) ==
        "reshape: input 0 must be dense, was given f32[6,4] with strides [1,6]");
  CHECK(message_of([&] { e.add(op::permute{{0, 0}}, {a}); }) == "permute: [0,0] does not order the axes of f32[4,6]");
  CHECK(message_of([&] { e.add(op::slice{1, 3, 9}, {a}); }) == "slice: no part 3 to 9 of axis 1 in f32[4,6]");
  CHECK(message_of([&] { e.add(op::concat{0}, {a, t}); }) == "concat: shapes differ outside axis 0, [4,6] and [6,4]");
  CHECK(message_of([&] { e.add(op::broadcast_to{{4, 5}}, {a}); }) == "broadcast_to: [4,6] does not broadcast to [4,5]");
  CHECK(op::dense(e, a) == a);
  auto const d = op::dense(e, t);
  CHECK(d != t);
  CHECK(e.graph().layout(d).is_dense());
}
