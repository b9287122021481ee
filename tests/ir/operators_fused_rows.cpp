#include <neap/ir/operators/fused.hpp>

#include "../support/fused_rows_cases.hpp"
#include "../support/message.hpp"

#include <array>
#include <cstring>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

std::string text_of_form(anchor f, rows_form const& form) {
  return "function " + std::to_string(static_cast<int>(f)) + (form.before ? ", before" : "") +
         (form.after ? ", after" : "") + (form.keeps_x ? ", x" : "") + (form.keeps_y ? ", y" : "") +
         (form.scale ? ", scaled" : "");
}
bool same_memory(testing::array const& a, testing::array const& b) {
  return std::memcmp(a.ref().data, b.ref().data, static_cast<std::size_t>(a.layout.type.bytes())) == 0;
}
std::string refusal_of(op::fused const& op, std::vector<tensor_type> const& types) {
  std::vector<tensor_layout> in;
  for (auto const& t : types) in.push_back(tensor_layout::dense(t));
  return message_of([&] {
    shape_context c("fused", in);
    op.infer(c);
  });
}

}  // namespace

TEST_CASE("functions of rows with programs: values, views, parts") {
  each_rows_form([](anchor f, rows_form const& form) {
    CAPTURE(text_of_form(f, form));
    auto const op = rows_with_programs(f, dtype::f64, form);
    auto const shapes = op.is_of_channels() ? std::vector{shape{2, 4, 6}, shape{4, 4, 2, 3}, shape{4, 6}}
                                            : std::vector{shape{2, 4, 6}, shape{5, 33}};
    for (auto const& x : shapes) {
      int const cuts = check_operator(op, operands_of(op, x, form.scale),
                                      [&](arrays const& in) {
                                        numbers out;
                                        for (auto const& y : by_operators(op, {in.begin(), in.end()}))
                                          out.push_back(y.values());
                                        return out;
                                      },
                                      {.f32 = false});
      if (op.is_of_channels()) CHECK(cuts >= 1);  // channels, or samples
      else if (x.rank() == 3) CHECK(cuts >= 2);   // both axes of rows
    }
  });
}

TEST_CASE("a function of rows with programs has the bits of the operators one after another") {
  random_stream draw(3);
  std::vector const rows{shape{3, 5, 7}, shape{130, 70}, shape{2, 3000}, shape{7}, shape{0, 4}},
      channels{shape{3, 6, 7}, shape{5, 4, 3, 9}, shape{40, 130}, shape{2, 2, 70, 70}, shape{0, 4, 3}, shape{2, 4, 0}};
  each_rows_form([&](anchor f, rows_form const& form) {
    for (auto const t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
      for (auto const& x : rows_with_programs(f, t, form).is_of_channels() ? channels : rows) {
        CAPTURE(text_of_form(f, form));
        CAPTURE(name_of(t));
        CAPTURE(x.back());
        auto const op = rows_with_programs(f, t, form);
        std::vector<testing::array> in;
        auto const all = operands_of(op, x, form.scale);
        for (auto const& o : all) {
          in.emplace_back(tensor_layout::dense({is_statistic(o) ? computed_in(t) : t, o.dims}));
          for (std::int64_t i = 0; i < in.back().count(); ++i)
            in.back().set(i, o.low + (o.high - o.low) * static_cast<double>(draw.uniform()));
        }
        auto const got = testing::detail::run(view_of(op), host_kernel(facets_of<op::fused>), in);
        auto const one_by_one = by_operators(op, in);
        REQUIRE(got.size() == one_by_one.size());
        for (std::size_t j = 0; j < got.size(); ++j) {
          CAPTURE(j);
          CHECK(same_memory(got[j], one_by_one[j]));
        }
      }
  });
}

TEST_CASE("what does not fit a function of rows with programs is refused") {
  auto const f32 = [](shape const& s) { return tensor_type{dtype::f32, s}; };
  auto const good = rows_with_programs(anchor::softmax, dtype::f32, {true, true, true, true});
  std::vector<tensor_type> const types{f32({2, 3}), f32({2, 3}), f32({3}), f32({3}), f32({2, 3})};
  CHECK(refusal_of(good, types) == "no error");
  auto op = good;
  op.middle = static_cast<anchor>(20);
  CHECK(refusal_of(op, types) == "fused: there is no anchor 20");
  op = good;
  op.groups = 2;
  CHECK(refusal_of(op, types) == "fused: it has an attribute that its anchor has not");
  op = good;
  op.prologue.inputs = 9;
  CHECK(refusal_of(op, types) == "fused: its programs are of 9 and 3 inputs, got 5");
  op = good;
  op.prologue.inputs = 2;
  CHECK(refusal_of(op, types).starts_with("fused: prologue: "));
  op = good;
  op.prologue = element_program(1);
  CHECK(refusal_of(op, types) == "fused: it makes no x, and has inputs for it or keeps it");
  op = good;
  op.epilogue = element_program(1);
  CHECK(refusal_of(op, types) == "fused: it goes on from no y, and has inputs for it or keeps it");
  op.epilogue = {}, op.keeps_y = false, op.prologue = {}, op.keeps_x = false;
  CHECK(refusal_of(op, {f32({2, 3})}) == "fused: it has no steps");
  CHECK(
      refusal_of(good, {f32({2, 3}), f32({2, 3}), f32({3}), f32({3}), f32({4, 2, 3})}).starts_with("fused: epilogue"));
  CHECK(refusal_of(good, {f32({2, 3}), f32({2, 3}), f32({3}), f32({3}), f32({3}), f32({2, 3})})
            .starts_with("fused: softmax: takes 1 inputs, got 2"));
  op = rows_with_programs(anchor::rms_norm, dtype::bf16, {false, true});
  CHECK(
      refusal_of(op, {f32({2, 3}), f32({3}), f32({2, 3})}).starts_with("fused: epilogue: step 0 (mul) makes f32[2,3]"));
}
