#include <neap/import/known_operators.hpp>

#include <neap/import/graph_file.hpp>

#include "../support/aten_twin.hpp"
#include "../support/graph_text.hpp"
#include "../support/random_algebra.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;
using nlohmann::json;

namespace {

using shapes = std::vector<extents>;

/// What a node means, as text; empty if it is not known.
std::string text_of(std::optional<io::known_operator> const& known) {
  if (!known) return "";
  auto const m = known->view();
  std::string s(m.facets->name);
  for (auto const& a : m.facets->attributes) {
    s += ' ';
    neap::detail::print_attribute(s, a.get(m.bytes));
  }
  return s;
}
std::string aten(std::string const& target, char const* args, shapes const& in, shapes const& out,
                 char const* kwargs = "null", dtype to = dtype::f32) {
  std::vector<tensor_layout> from, made;
  for (auto const& d : in) from.push_back(tensor_layout::dense({dtype::f32, d}));
  for (auto const& d : out) made.push_back(tensor_layout::dense({to, d}));
  std::vector<int> places;
  for (int j = 0; j < static_cast<int>(out.size()); ++j) places.push_back(j);
  auto const a = json::parse(args), k = json::parse(kwargs);
  return text_of(io::known_aten({"aten." + target, &a, &k, from, made, places}));
}
std::string magis(char const* tag, char const* attributes, shapes const& in, extents const& out) {
  return text_of(io::known_magis(tag, json::parse(attributes), in, out));
}

}  // namespace

TEST_CASE("nodes of PyTorch's mean operators of neap's") {
  extents const m{4, 6};
  CHECK(aten("add.Tensor", R"(["%0","%1"])", {m, m}, {m}) == "add");
  CHECK(aten("add.Tensor", R"(["%0", 2.5])", {m}, {m}) == "add_scalar 2.5");
  CHECK(aten("sub.Tensor", R"(["%0", 2])", {m}, {m}) == "add_scalar -2");
  CHECK(aten("div.Tensor", R"(["%0", 8])", {m}, {m}) == "mul_scalar 0.125");
  CHECK(aten("pow.Tensor_Scalar", R"(["%0", 2.0])", {m}, {m}) == "square");
  CHECK(aten("gelu.default", R"(["%0"])", {m}, {m}, R"({"approximate":"tanh"})") == "gelu true");
  CHECK(aten("gelu.default", R"(["%0"])", {m}, {m}) == "gelu false");
  CHECK(aten("mm.default", R"(["%0","%1"])", {m, {6, 2}}, {{4, 2}}) == "matmul false false");
  CHECK(aten("t.default", R"(["%0"])", {m}, {{6, 4}}) == "permute [1,0]");
  CHECK(aten("transpose.int", R"(["%0", -1, 0])", {{2, 3, 4}}, {{4, 3, 2}}) == "permute [2,1,0]");
  CHECK(aten("view.default", R"(["%0", [2, -1]])", {m}, {{2, 12}}) == "reshape [2,12]");
  CHECK(aten("slice.Tensor", R"(["%0", 1, -3, 9223372036854775807])", {m}, {{4, 3}}) == "slice 1 3 6");
  CHECK(aten("slice.Tensor", R"(["%0", 0, 1, -1])", {m}, {{2, 6}}) == "slice 0 1 3");
  CHECK(aten("slice_backward.default", R"(["%0", [4, 6], 1, 2, 5, 1])", {{4, 3}}, {m}) == "pad 1 2 1 0");
  CHECK(aten("cat.default", R"([["%0","%1"], -1])", {m, m}, {{4, 12}}) == "concat 1");
  CHECK(aten("split.Tensor", R"(["%0", 3, 1])", {m}, {{4, 3}, {4, 3}}) == "split 1 2");
  CHECK(aten("sum.dim_IntList", R"(["%0", [-1], true])", {m}, {{4, 1}}) == "sum [1] true");
  CHECK(aten("clone.default", R"(["%0"])", {m}, {m}, R"({"memory_format":"torch.contiguous_format"})") == "copy");
  CHECK(aten("_to_copy.default", R"(["%0"])", {m}, {m}, R"({"dtype":"torch.bfloat16"})", dtype::bf16) == "cast bf16");
  CHECK(aten("convolution.default", R"(["%0","%1",null,[2,2],[1,1],[1,1],false,[0,0],1])", {{1, 3, 8, 8}, {5, 3, 3, 3}},
             {{1, 5, 4, 4}}) == "conv2d [2,2] [1,1] [1,1] 1");
}
TEST_CASE("nodes of another form mean nothing") {
  extents const m{4, 6};
  CHECK(aten("add.Tensor", R"(["%0","%1"])", {m, m}, {m}, R"({"alpha":2})").empty());
  CHECK(aten("mul.Tensor", R"(["%0","%0"])", {m}, {m}).empty());  // one input, read twice
  CHECK(aten("sub.Tensor", R"(["%1","%0"])", {m, m}, {m}).empty());
  CHECK(aten("div.Tensor", R"(["%0", 3])", {m}, {m}).empty());
  CHECK(aten("gelu.default", R"(["%0"])", {m}, {m}, R"({"approximate":"other"})").empty());
  CHECK(aten("slice.Tensor", R"(["%0", 0, 0, 4, 2])", {m}, {{2, 6}}).empty());
  CHECK(aten("sum.dim_IntList", R"(["%0", [9]])", {m}, {m}).empty());
  CHECK(aten("sum.dim_IntList", R"(["%0", [0]])", {m}, {{6}}, R"({"dtype":"torch.float64"})").empty());
  CHECK(aten("split.Tensor", R"(["%0", 4, 1])", {m}, {{4, 4}, {4, 2}}).empty());
  CHECK(aten("convolution.default", R"(["%0","%1",null,[2,2],[1,1],[1,1],true,[0,0],1])", {{1, 3, 8, 8}, {5, 3, 3, 3}},
             {{1, 5, 4, 4}})
            .empty());
  CHECK(aten("native_dropout.default", R"(["%0", 0.1, true])", {m}, {m, m}).empty());
  CHECK(aten("mm.default", "null", {m, m}, {m}).empty());
}
TEST_CASE("nodes of MAGIS's mean operators of neap's") {
  extents const m{4, 6};
  CHECK(magis("ewise.bin.add", R"({"commutative":true})", {m, m}, m) == "add");
  CHECK(magis("ewise.uni.const.div", R"({"const":8.0})", {m}, m) == "mul_scalar 0.125");
  CHECK(magis("ewise.uni.const.div", R"({"const":3.0})", {m}, m).empty());
  CHECK(magis("matmul", R"({"trans_a":false,"trans_b":true,"trans_c":false})", {m, m}, {4, 4}) == "matmul false true");
  CHECK(magis("matmul", R"({"trans_a":false,"trans_b":true,"trans_c":true})", {m, m}, {4, 4}).empty());
  char const* flex = R"({"trans_a":false,"trans_b":false,"trans_c":false,"n_batch_dims":0,"n_reduce_dims":1})";
  CHECK(magis("flex_matmul", flex, {{2, 4, 6}, {6, 5}}, {2, 4, 5}) == "matmul false false");
  CHECK(magis("flex_matmul", flex, {{2, 4, 6}, {6, 5, 2}}, {2, 4, 5, 2}).empty());
  CHECK(magis("slice", R"({"dims":[1],"starts":[2],"ends":[5]})", {m}, {4, 3}) == "slice 1 2 5");
  CHECK(magis("conv2d", R"({"layout":"nchw","padding":[3,3],"stride":[2,2],"dilation":[1,1]})",
              {{1, 3, 8, 8}, {5, 3, 7, 7}}, {1, 5, 4, 4}) == "conv2d [2,2] [3,3] [1,1] 1");
  CHECK(magis("softmax", R"({"dim":3})", {m}, m).empty());
}

TEST_CASE("what a twin's ops mean is what they were") {
  std::size_t known = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    auto const g = random_algebra(seed).make(16);
    auto const twin = aten_twin(g);
    REQUIRE(twin.op_count() == g.op_count());
    for (auto o : g.ops()) {
      ++all;
      if (aten_text_of(g, o).target.empty()) continue;
      CAPTURE(twin.details(o));
      REQUIRE(twin.as<op::opaque>(o));
      REQUIRE(neap::detail::same_operator(twin.meaning(o), g.view(o)));
      ++known;
    }
  }
  CHECK(known * 4 > all * 3);
}

TEST_CASE("an op means nothing that gives other types") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 6}});
  output_rule const rule{tensor_layout::dense({dtype::f32, {4, 6}}), alias_kind::fresh, -1, -1};
  auto const o = edit.add_opaque("mine", {}, {&x, 1}, {&rule, 1});
  CHECK_FALSE(edit.set_meaning(o, view_of(op::permute{{1, 0}})));
  CHECK_FALSE(edit.set_meaning(o, view_of(op::add{})));
  CHECK(edit.graph().meaning(o).facets == &facets_of<op::opaque>);
  CHECK(edit.set_meaning(o, view_of(op::relu{})));
  CHECK(edit.graph().means<op::relu>(o));
  CHECK_FALSE(edit.graph().as<op::relu>(o));
  edit.keep(edit.output(o), role::output);
  auto const g = std::move(edit).finish();
  CHECK(g.means<op::relu>(o));
}
