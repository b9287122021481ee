#include <neap/import/element_types.hpp>

#include <neap/import/graph_file.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace neap;

TEST_CASE("element types: each is known by its own name, and by PyTorch's, NumPy's, safetensors' and ONNX's") {
  for (std::size_t i = 0; i < dtype_names.size(); ++i) {
    auto const t = io::element_type(dtype_names[i]);
    REQUIRE_MESSAGE(t.ok(), t.message());
    CHECK(*t == static_cast<dtype>(i));
  }
  for (auto const& [name, type] : std::vector<std::pair<char const*, dtype>>{{"torch.float32", dtype::f32},
                                                                             {"float16", dtype::f16},
                                                                             {"torch.half", dtype::f16},
                                                                             {"bfloat16", dtype::bf16},
                                                                             {"BF16", dtype::bf16},
                                                                             {"double", dtype::f64},
                                                                             {"torch.complex64", dtype::c64},
                                                                             {"complex128", dtype::c128},
                                                                             {"C64", dtype::c64},
                                                                             {"torch.uint16", dtype::u16},
                                                                             {"U32", dtype::u32},
                                                                             {"uint64", dtype::u64},
                                                                             {"int16", dtype::i16},
                                                                             {"torch.int8", dtype::i8},
                                                                             {"torch.float8_e4m3fn", dtype::f8e4m3},
                                                                             {"torch.float8_e5m2", dtype::f8e5m2},
                                                                             {"F8_E4M3", dtype::f8e4m3},
                                                                             {"F8_E5M2", dtype::f8e5m2},
                                                                             {"f8e4m3fn", dtype::f8e4m3},
                                                                             {"float8_e4m3fnuz", dtype::f8e4m3fnuz},
                                                                             {"float8_e5m2fnuz", dtype::f8e5m2fnuz},
                                                                             {"FLOAT8E4M3FN", dtype::f8e4m3},
                                                                             {"float8_e8m0fnu", dtype::f8e8m0},
                                                                             {"F8_E8M0", dtype::f8e8m0},
                                                                             {"F6_E2M3", dtype::f6e2m3},
                                                                             {"F4", dtype::f4e2m1},
                                                                             {"int4", dtype::i4},
                                                                             {"UINT4", dtype::u4},
                                                                             {"torch.uint4", dtype::u4},
                                                                             {"b8", dtype::boolean},
                                                                             {"torch.bool", dtype::boolean},
                                                                             {"BOOL", dtype::boolean}}) {
    auto const t = io::element_type(name);
    REQUIRE_MESSAGE(t.ok(), t.message());
    CHECK_MESSAGE(*t == type, name);
  }
}

TEST_CASE("element types: another name is refused with the list of those known") {
  for (auto const& name :
       std::vector<std::string>{"f7", "", "floaty", "torch.", "f8", std::string(500, 'x'), "int-4"}) {
    auto const t = io::element_type(name);
    REQUIRE(!t.ok());
    CHECK(t.message().find("unknown element type \"") == 0);
    for (auto const known : dtype_names) CHECK(t.message().find(known) != std::string::npos);
    CHECK(t.message().size() < 500);
  }
}

TEST_CASE("element types: a graph file of any of them is planned by its bytes") {
  for (auto const type : dtype_names) {
    CAPTURE(type);
    auto const element = *io::element_type(type);
    for (std::int64_t count : {0, 1, 3, 16, 257}) {
      auto const bytes = (count * bits_of(element) + 7) / 8;
      nlohmann::json const tensor{{"buf", 0}, {"dtype", type}, {"shape", {count}}};
      auto made = tensor, again = tensor;
      made["buf"] = 1, again["buf"] = 2;
      nlohmann::json const j{
          {"format", "neap-graph"},
          {"version", 1},
          {"buffers",
           {{{"bytes", bytes}, {"kind", "input"}},
            {{"bytes", bytes}, {"kind", "temp"}},
            {{"bytes", bytes}, {"kind", "temp"}}}},
          {"tensors", {tensor, made, again}},
          {"nodes",
           {{{"name", "a"}, {"op", "aten.clone.default"}, {"in", {0}}, {"out", {1}}, {"args", {"%0"}}},
            {{"name", "b"}, {"op", "aten.neg.default"}, {"in", {1}}, {"out", {2}}, {"flags", {"pointwise"}}}}},
          {"outputs", {{{"tensor", 2}, {"kind", "output"}}}}};
      auto const g = io::read_neap_graph(j, "g.json");
      REQUIRE_MESSAGE(g.ok(), g.message());
      search_options search;
      search.memory_at_most = memory_limit::of_original(1);
      search.memory = {1, false};
      search.iterations = 5;
      auto const found = optimize(g->program, rematerialize{}, no_cost{}, g->order, search);
      CHECK(found.original.peak_bytes == 3 * bytes);
      CHECK(verify_plan(g->program, found.placed).ok());
      // One byte less in a buffer, and the tensor reaches beyond it.
      if (bytes == 0) continue;
      auto tight = j;
      tight["buffers"][1]["bytes"] = bytes - 1;
      CHECK(io::read_neap_graph(tight, "g.json").message().find("reaches beyond its buffer") != std::string::npos);
    }
  }
}

TEST_CASE("element types: what several elements of share a byte is not cut into parts") {
  CHECK(is_packed(dtype::u4));
  CHECK(!is_packed(dtype::f8e4m3));
  for (auto const type : {"u4", "u8"}) {
    nlohmann::json const tensor{{"buf", 0}, {"dtype", type}, {"shape", {4, 6}}};
    auto made = tensor;
    made["buf"] = 1;
    nlohmann::json const j{{"format", "neap-graph"},
                           {"version", 1},
                           {"buffers", {{{"bytes", 24}, {"kind", "input"}}, {{"bytes", 24}, {"kind", "temp"}}}},
                           {"tensors", {tensor, made}},
                           {"nodes",
                            {{{"name", "a"},
                              {"op", "aten.clone.default"},
                              {"in", {0}},
                              {"out", {1}},
                              {"args", {"%0"}},
                              {"flags", {"pointwise"}}}}},
                           {"outputs", {{{"tensor", 1}, {"kind", "output"}}}}};
    auto const g = io::read_neap_graph(j, "g.json");
    REQUIRE_MESSAGE(g.ok(), g.message());
    op_id const o{0};
    auto const* known = g->program.as<op::opaque>(o);
    REQUIRE(known != nullptr);
    CHECK(g->program.type(g->program.output(o)).bytes() == (std::string_view(type) == "u4" ? 12 : 24));
  }
}
