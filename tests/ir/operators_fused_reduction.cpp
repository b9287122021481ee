#include <neap/ir/operators/fused.hpp>

#include "../support/fused_reduction_cases.hpp"
#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// What the operators give one after another.
std::vector<testing::array> one_after_another(op::fused const& op, std::vector<testing::array> const& in) {
  auto const run = [](auto const& one, std::vector<testing::array> of) {
    return testing::detail::run(view_of(one), host_kernel(facets_of<std::decay_t<decltype(one)>>), std::move(of));
  };
  auto const x = run(op::fused{op.prologue}, in);
  std::vector<testing::array> made;
  op.with_anchor([&](auto const& f) { made = run(f, x); });
  if (op.keeps_x) made.push_back(x[0]);
  return made;
}
std::string text_of_reduction(op::fused const& op) {
  std::string s = "reduction " + std::to_string(static_cast<int>(op.middle)) + " of axes";
  for (auto k : op.axes) s += " " + std::to_string(k);
  return s + (op.keepdim ? ", kept" : "") + (op.keeps_x ? ", x" : "");
}
bool has_same_memory(testing::array const& a, testing::array const& b) {
  return std::memcmp(a.ref().data, b.ref().data, static_cast<std::size_t>(a.layout.type.bytes())) == 0;
}
std::string refused(op::fused const& op, std::vector<tensor_type> const& types) {
  std::vector<tensor_layout> in;
  for (auto const& t : types) in.push_back(tensor_layout::dense(t));
  return message_of([&] {
    shape_context c("fused", in);
    op.infer(c);
  });
}

}  // namespace

TEST_CASE("reductions with programs: values, views, parts") {
  shape const x{2, 4, 6};
  each_reduction(x, dtype::f64, [&](op::fused const& op) {
    CAPTURE(text_of_reduction(op));
    for (bool const columns : {false, true}) {
      int const cuts = check_operator(op, operands_of_reduction(x, columns),
                                      [&](arrays const& in) {
                                        numbers out;
                                        for (auto const& y : one_after_another(op, {in.begin(), in.end()}))
                                          out.push_back(y.values());
                                        return out;
                                      },
                                      {.f32 = false});
      CHECK(cuts >= 2);
    }
  });
}

TEST_CASE("a reduction with a program has the bits of the operators one after another") {
  random_stream draw(3);
  for (auto const t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
    for (auto const& x : {shape{3, 5, 7}, shape{40, 50, 10}, shape{2, 3, 3000}, shape{130, 2, 300}, shape{1, 1, 40000},
                          shape{1, 1, 1}, shape{0, 4, 3}, shape{3, 4, 0}, shape{2, 40, 1}})
      each_reduction(x, t, [&](op::fused const& op) {
        CAPTURE(text_of_reduction(op));
        CAPTURE(name_of(t));
        CAPTURE(x.back());
        std::vector<testing::array> in;
        for (auto const& o : operands_of_reduction(x, draw.below(2) == 0)) {
          in.emplace_back(tensor_layout::dense({t, o.dims}));
          for (std::int64_t i = 0; i < in.back().count(); ++i)
            in.back().set(i, o.low + (o.high - o.low) * static_cast<double>(draw.uniform()));
        }
        auto const got = testing::detail::run(view_of(op), host_kernel(facets_of<op::fused>), in);
        auto const expected = one_after_another(op, in);
        REQUIRE(got.size() == expected.size());
        for (std::size_t j = 0; j < got.size(); ++j) {
          CAPTURE(j);
          CHECK(has_same_memory(got[j], expected[j]));
        }
      });
}

TEST_CASE("what does not fit a reduction with a program is refused") {
  auto const f32 = [](shape const& s) { return tensor_type{dtype::f32, s}; };
  std::vector<tensor_type> const types{f32({2, 3}), f32({3}), f32({2, 3})};
  auto const good = reduction_with_steps(op::sum{{1}, false}, dtype::f32, true);
  CHECK(refused(good, types) == "no error");
  auto op = good;
  op.dims = {3};
  CHECK(refused(op, types) == "fused: it has an attribute that its anchor has not");
  op = reduction_with_steps(op::sum_to{{3}}, dtype::f32, false);
  op.axes = {0};
  CHECK(refused(op, types) == "fused: it has an attribute that its anchor has not");
  CHECK(refused(op::fused::of(op::sum{}), {f32({2})}) == "fused: a reduction has steps before it alone");
  op = good;
  op.epilogue = op.prologue;
  CHECK(refused(op, {f32({2, 3}), f32({3}), f32({2, 3}), f32({3}), f32({3})}) ==
        "fused: a reduction has steps before it alone");
  CHECK(refused(good, {f32({2, 3})}) == "fused: its programs are of 3 and 1 inputs, got 1");
  CHECK(refused(reduction_with_steps(op::sum{{2}, false}, dtype::f32, false), types).starts_with("fused: sum: "));
  CHECK(refused(reduction_with_steps(op::sum_to{{4}}, dtype::f32, false), types).starts_with("fused: sum_to: "));
  element_program truths(2);
  truths.add(op::greater{}, dtype::boolean, {0, 1});
  op = good;
  op.prologue = truths;
  CHECK(refused(op, {f32({2, 3}), f32({3})}) == "fused: its steps make bool[2,3], which is of no floating type");
}
