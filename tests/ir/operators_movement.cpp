#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/split.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace {
numbers same(arrays const& in) { return {in[0].values()}; }
}  // namespace

TEST_CASE("copies, casts and fills") {
  for (shape dims : {shape{5, 6}, shape{2, 40, 33}, shape{}, shape{3, 0}}) {
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

TEST_CASE("matrices with zeros on one side of a diagonal") {
  random_stream draw(23, 1);
  for (shape dims : {shape{4, 6}, shape{2, 6, 4}, shape{1, 1}, shape{3, 0}, shape{0, 4, 4}, shape{2, 300, 200},
                     random_shape(draw, 2, 5)})
    for (std::int64_t d : {-1000, -4, -2, -1, 0, 1, 3, 6, 1000})
      for (bool upper : {false, true}) {
        int const cuts = check_operator(op::triangle{d, upper}, {{dims}}, [&](arrays const& in) {
          std::vector<double> y = in[0].values();
          auto const columns = dims[dims.rank() - 1], rows = dims[dims.rank() - 2];
          for (std::int64_t i = 0; i < in[0].count(); ++i) {
            auto const r = i / columns % rows, c = i % columns;
            if (upper ? c < r + d : c > r + d) y[static_cast<std::size_t>(i)] = 0;
          }
          return numbers{y};
        });
        if (dims == shape{2, 6, 4}) CHECK(cuts == 1);
      }
  check_operator(op::triangle{}, {{{4, 4}, -9, 9, dtype::i32}}, {}, {.tolerance = 0, .f32_tolerance = 0});
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

TEST_CASE("parts of an axis") {
  for (shape x : {shape{2, 6}, shape{4, 6, 2}, shape{0, 6}})
    for (std::int64_t parts : {1, 2, 3})
      CHECK((check_operator(op::split{1, parts}, {{x}}, [&](arrays const& in) {
               numbers all(static_cast<std::size_t>(parts));
               std::int64_t const inner = elements(x) / std::max<std::int64_t>(1, 6 * x[0]), width = 6 / parts * inner;
               for (std::int64_t i = 0; i < in[0].count(); ++i)
                 all[static_cast<std::size_t>(i / std::max<std::int64_t>(1, width) % parts)].push_back(in[0][i]);
               return all;
             }) > 0) == (x[0] > 0));
}

TEST_CASE("views of random shapes, and of nothing") {
  random_stream draw(41, 1);
  for (std::uint64_t k = 1; k <= 8; ++k) {
    shape const x = k == 8 ? shape{2, 0, 3} : random_shape(draw, 1, 5);
    auto const axes = testing::detail::random_axes(draw, x.rank());
    check_operator(op::permute{axes}, {{x}}, {}, {}, k);
    auto const axis = static_cast<std::int64_t>(draw.below(static_cast<std::uint32_t>(x.rank())));
    auto const n = x[static_cast<int>(axis)],
               from = static_cast<std::int64_t>(draw.below(static_cast<std::uint32_t>(n + 1)));
    check_operator(op::slice{axis, from, n}, {{x}}, {}, {}, k);
    check_operator(op::pad{axis, 1, static_cast<std::int64_t>(draw.below(3)), 0.5}, {{x}}, {}, {}, k);
    check_operator(op::concat{axis - x.rank()}, {{x}, {x}, {x}}, {}, {}, k);
    check_operator(op::reshape{{elements(x), 1}}, {{x}}, same, {}, k);
    shape const part = random_part(draw, x);
    check_operator(op::broadcast_to{x}, {{part}}, {}, {}, k);
    CHECK(check_operator(
              op::sum_to{part}, {{x}},
              [&](arrays const& in) {
                numbers y{std::vector<double>(static_cast<std::size_t>(elements(part)))};
                for (std::int64_t i = 0; i < in[0].count(); ++i) {
                  std::int64_t at = 0, scale = 1, rest = i;
                  for (int a = x.rank() - 1; a >= 0; --a) {
                    if (int const b = a - (x.rank() - part.rank()); b >= 0) {
                      at += (part[b] == 1 ? 0 : rest % x[a]) * scale;
                      scale *= part[b];
                    }
                    rest /= x[a];
                  }
                  y[0][static_cast<std::size_t>(at)] += in[0][i];
                }
                return y;
              },
              {}, k) >= 0);
  }
}

TEST_CASE("reshape keeps the axes that it does not mix, and the leading ones of those that it does") {
  auto const kept = [](shape from, shape to) {
    tensor_layout const a = tensor_layout::dense({dtype::f32, from}), b = tensor_layout::dense({dtype::f32, to});
    dim_context c(std::span(&a, 1), std::span(&b, 1));
    op::reshape{to}.relate(c);
    std::string text;
    for (auto const& l : c.links()) text += std::to_string(l.in_axis) + ">" + std::to_string(l.out_axis) + " ";
    return text;
  };
  CHECK(kept({4, 8, 16}, {32, 16}) == "0>0 2>1 ");
  CHECK(kept({4, 8, 16}, {4, 8, 2, 8}) == "0>0 1>1 2>2 ");
  CHECK(kept({4, 8, 16}, {4, 128}) == "0>0 1>1 ");
  CHECK(kept({6, 4}, {4, 6}) == "");  // 6 rows in 2 parts are 4 in 2 parts, but no operator needs it
  CHECK(kept({2, 3, 5}, {2, 15}) == "0>0 1>1 ");
  CHECK(kept({1, 4, 1, 6}, {4, 3, 2, 1}) == "1>0 3>1 ");
  CHECK(kept({2, 6, 5}, {2, 4, 15}) == "0>0 ");
  CHECK(kept({4, 0}, {0, 4}) == "");
  CHECK(kept({}, {1}) == "");
}

TEST_CASE("of axes that reshape joins or splits, the leading one is cut with the whole") {
  auto const kept = [](shape from, shape to) { return check_operator(op::reshape{to}, {{from}}, same); };
  CHECK(kept({4, 3, 5}, {12, 5}) == 1);
  CHECK(kept({4, 3, 6}, {12, 6}) == 2);
  CHECK(kept({24, 2}, {4, 3, 2, 2}) == 2);
  CHECK(kept({2, 12, 5}, {2, 4, 15}) == 2);
  CHECK(kept({3, 4, 2}, {24}) == 0);  // 3 in 24 cannot be halved
  random_stream draw(3);
  int cuts = 0;
  for (int k = 0; k < 200; ++k) {  // of equal counts: factors joined in two ways
    shape from, to;
    for (int factor = 0; factor < 6; ++factor) {
      std::int64_t const n = 1 + draw.below(3);
      for (auto* e : {&from, &to})
        if (e->rank() == 0 || (draw.below(2) && e->rank() < 4)) e->push_back(n);
        else (*e)[e->rank() - 1] *= n;
    }
    cuts += check_operator(op::reshape{to}, {{from}}, same, {.gradient = false, .views = false}, 7);
  }
  CHECK(cuts > 100);
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

TEST_CASE("a view of any part of a storage") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const a = e.add_source(role::input, {dtype::f32, {4, 6}});
  auto const part = e.add(op::slice{1, 2, 3}, {a})[0];
  auto const v = e.add(op::as_strided{{3, 2}, {1, 6}, 7}, {part})[0];
  CHECK(e.layout_of(v) == tensor_layout{{dtype::f32, {3, 2}}, {1, 6}, 7});
  CHECK(e.graph().storage(v) == e.graph().storage(a));
  CHECK(e.graph().record(v).alias == alias_kind::view);
  CHECK(message_of([&] {
          e.add(op::as_strided{{3, 2}, {1}, 0}, {a});
        }) == "as_strided: no view of extents [3,2], strides [1] and offset 0");
}

TEST_CASE("what cannot be moved is told") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const a = e.add_source(role::input, {dtype::f32, {4, 6}});
  auto const t = e.add(op::permute{{1, 0}}, {a})[0];
  CHECK(message_of([&] { e.add(op::reshape{{5, 5}}, {a}); }) == "reshape: from [4,6] to [5,5]: element counts differ");
  CHECK(message_of([&] { e.add(op::reshape{{24}}, {t}); }) ==
        "reshape: input 0 must be dense, got f32[6,4] with strides [1,6]");
  CHECK(message_of([&] { e.add(op::permute{{0, 0}}, {a}); }) == "permute: [0,0] does not order the axes of f32[4,6]");
  CHECK(message_of([&] { e.add(op::slice{1, 3, 9}, {a}); }) == "slice: no part 3 to 9 of axis 1 in f32[4,6]");
  CHECK(message_of([&] { e.add(op::concat{0}, {a, t}); }) == "concat: shapes differ outside axis 0, [4,6] and [6,4]");
  CHECK(message_of([&] { e.add(op::broadcast_to{{4, 5}}, {a}); }) == "broadcast_to: [4,6] does not broadcast to [4,5]");
  CHECK(op::dense(e, a) == a);
  auto const d = op::dense(e, t);
  CHECK(d != t);
  CHECK(e.graph().layout(d).is_dense());
  auto const none = e.add_source(role::input, {dtype::f32, {3, 0, 4}});  // nothing is dense, however it is turned
  CHECK(op::dense(e, e.add(op::permute{{2, 1, 0}}, {none})[0]) != none);
  CHECK(e.graph().layout(none).is_dense());
  CHECK(e.add(op::reshape{{0, 7}}, {none}).size() == 1);
}
