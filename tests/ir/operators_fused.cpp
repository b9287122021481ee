#include <neap/ir/operators/fused.hpp>

#include <neap/ir/verify.hpp>

#include "../support/graph_text.hpp"
#include "../support/message.hpp"
#include "../support/operator_check.hpp"
#include "../support/random_fused.hpp"

#include <cstring>
#include <set>
#include <string_view>

using namespace neap;
using namespace neap::testing;

namespace {

using testing::array;

array random_array(random_stream& draw, tensor_layout const& l) {
  array x(l);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    double const number =
        draw.below(16) == 0 ? (draw.below(2) ? 0.0 : -0.0) : 6 * static_cast<double>(draw.uniform()) - 3;
    x.set(i, l.type.element == dtype::boolean ? draw.below(2) : number);
  }
  return x;
}

/// What the operators give one after another, each with memory of its own.
array by_operators(element_program const& p, std::vector<array> const& in) {
  std::vector<array> values = in;
  p.for_each_step([&](int, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
    std::vector<array> operands;
    for (int i = 0; i < f.arguments; ++i)
      operands.push_back(values[static_cast<std::size_t>(s.operands[static_cast<std::size_t>(i)])]);
    auto const& facets = facets_of_step(s);
    values.push_back(testing::detail::run({&facets, bytes}, host_kernel(facets), operands)[0]);
  });
  return values.back();
}

bool equal_bits(array const& a, array const& b) {
  auto const size = static_cast<std::size_t>(size_of(a.layout.type.element));
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::memcmp(a.ref().as<std::byte>() + static_cast<std::size_t>(a.place(i)) * size,
                    b.ref().as<std::byte>() + static_cast<std::size_t>(b.place(i)) * size, size) != 0)
      return false;
  return true;
}

std::string refusal(element_program const& p, std::vector<tensor_type> const& types) {
  std::vector<tensor_layout> in;
  for (auto const& t : types) in.push_back(tensor_layout::dense(t));
  return message_of([&] {
    shape_context c("fused", in);
    op::fused{p}.infer(c);
  });
}

element_program add_then_relu() {
  element_program make(2);
  auto const sum = make.add(op::add{}, dtype::f32, {0, 1});
  make.add(op::relu{}, dtype::f32, {*sum});
  return make;
}

}  // namespace

TEST_CASE("a fused program has the bits of its operators") {
  random_stream draw(11);
  auto const kernel = host_kernel(facets_of<op::fused>);
  std::set<int> used;
  for (int round = 0; round < 400; ++round) {
    auto const r = random_fused::draw(draw, round % 4 == 0);
    std::vector<array> in;
    for (auto const& t : r.inputs)
      in.push_back(random_array(draw, draw.below(2) ? random_view(draw, t) : tensor_layout::dense(t)));
    INFO(to_string(r.program), " of ", to_string(r.dims));
    for (int k = 0; k < r.program.step_count; ++k) used.insert(r.program.step(k).row);
    op::fused const op{r.program};
    auto const expected = by_operators(r.program, in);
    auto const got = testing::detail::run(view_of(op), kernel, in)[0];
    CHECK(got.layout == expected.layout);
    REQUIRE(equal_bits(got, expected));
    // over each input that it may take the place of
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!(in[i].layout == expected.layout)) continue;
      auto again = in;
      auto const over = testing::detail::run(view_of(op), kernel, again, {expected.layout}, {static_cast<int>(i)});
      REQUIRE(equal_bits(over[0], expected));
    }
  }
  CHECK(used.size() == op::detail::step_list::size);  // all operators that can be steps have come up
}

TEST_CASE("a fused program is cut along any axis that its steps have") {
  random_stream draw(12);
  int cuts = 0;
  for (int round = 0; round < 60; ++round) {
    auto const r = random_fused::draw(draw, round % 4 == 0);
    std::vector<array> in;
    for (auto const& t : r.inputs) in.push_back(random_array(draw, tensor_layout::dense(t)));
    op::fused const fused{r.program};
    auto const op = view_of(fused);
    auto const kernel = host_kernel(facets_of<op::fused>);
    cuts +=
        testing::detail::check_relations(to_string(r.program), op, kernel, in, testing::detail::run(op, kernel, in), 0);
  }
  CHECK(cuts > 20);
}

TEST_CASE("inner values are rounded to their types") {
  element_program make(2);
  auto const sum = make.add(op::add{}, dtype::bf16, {0, 1});
  auto const wide = make.add(op::cast{dtype::f32}, dtype::f32, {*sum});
  make.add(op::mul_scalar{3}, dtype::f32, {*wide});
  array a(tensor_layout::dense({dtype::bf16, {1}})), b = a;
  a.set(0, 1), b.set(0, 0.00390625);  // 1 + 2^-8: a tie, to 1
  auto const got = testing::detail::run(view_of(op::fused{make}), host_kernel(facets_of<op::fused>), {a, b});
  CHECK(got[0].values() == std::vector<double>{3});
}

TEST_CASE("programs that are not right are refused") {
  tensor_type const x{dtype::f32, {4, 6}}, row{dtype::f32, {6}};
  auto const good = add_then_relu();
  CHECK(refusal(good, {x, row}) == "no error");
  CHECK(to_string(good) == "t0 = add(x0, x1); t1 = relu(t0)");
  CHECK(refusal(element_program(0), {x}) == "fused: its program is of 0 inputs, 1 to 8 are possible, got 1");
  CHECK(refusal(good, {x}) == "fused: its program is of 2 inputs, 1 to 8 are possible, got 1");
  CHECK(refusal(good, {x, {dtype::f32, {5}}}).find("step 0: add: shapes do not broadcast") != std::string::npos);
  CHECK(refusal(good, {x, {dtype::bf16, {6}}}).find("step 0: add: element types differ") != std::string::npos);
  CHECK(refusal(good, {{dtype::i64, {6}}, {dtype::i64, {6}}}).find("floating numbers and booleans") !=
        std::string::npos);
  auto bad = good;
  bad.inputs = 1;
  CHECK(refusal(bad, {x}) == "fused: step 0 (add) reads what is not there: operand 1");
  bad = good;
  bad.steps[0].row = 254;
  CHECK(refusal(bad, {x, row}) == "fused: step 0 is no elementwise operator");
  bad.steps[0].row = 255;
  CHECK(refusal(bad, {x, row}) == "fused: step 0 is no elementwise operator");
  bad = good;
  bad.steps[0].row = neap::detail::standard_row<op::matmul>;
  CHECK(refusal(bad, {x, row}) == "fused: step 0 is no elementwise operator");
  bad = good;
  bad.steps[bad.step_count++] = bad.steps[0];
  CHECK(refusal(bad, {x, row}) == "fused: step 1 is not read");
  bad = good;
  bad.constant_count = 1;
  CHECK(refusal(bad, {x, row}) == "fused: its program has 1 constants, its steps take 0");
  bad = good;
  bad.step_count = element_program::max_steps + 1;
  CHECK(refusal(bad, {x, row}) == "fused: its program has no steps, or too many");
  bad = good;
  bad.steps[1].element = dtype::f64;
  CHECK(refusal(bad, {x, row}) == "fused: step 1 (relu) makes f32[4,6], not f64");
  element_program small(2);  // an inner value of another shape
  auto const neg = small.add(op::neg{}, dtype::f32, {1});
  small.add(op::add{}, dtype::f32, {0, *neg});
  CHECK(refusal(small, {x, row}) == "fused: its steps make different shapes, [6] and [4,6]");
  CHECK(refusal(small, {x, x}) == "no error");
  element_program scaled(1);
  scaled.add(op::mul_scalar{2}, dtype::f32, {0});
  bad = scaled;
  bad.constant_count = 0;
  CHECK(refusal(bad, {x}) == "fused: step 0 (mul_scalar) lacks a constant");
  element_program bent(1);
  bent.add(op::gelu{}, dtype::f32, {0});
  bad = bent;
  bad.constants[0] = 2;
  CHECK(refusal(bad, {x}) == "fused: step 0 (gelu): tanh_form is neither 0 nor 1");
  element_program both(1);
  auto const wide = both.add(op::cast{dtype::f64}, dtype::f64, {0});
  both.add(op::neg{}, dtype::f64, {*wide});
  CHECK(refusal(both, {x}) == "fused: computes in f64 or in f32, not in both");
}

TEST_CASE("results wait in as few registers as they need") {
  element_program make(1);
  int waiting[6];
  for (auto& x : waiting) x = *make.add(op::neg{}, dtype::f32, {0});
  int sum = waiting[0];
  for (int k = 1; k < 6; ++k) sum = *make.add(op::add{}, dtype::f32, {sum, waiting[k]});
  CHECK(make.fault(1) == "6 results wait at once, at most 4 may");
  random_stream draw(14);
  for (int round = 0; round < 200; ++round) {
    auto const p = random_fused::draw(draw, false).program;
    std::array<int, element_program::max_steps> of_step{};
    CHECK(p.registers(of_step) <= element_program::max_registers);
    std::array<int, element_program::max_registers> holds{};
    holds.fill(-1);
    for (int k = 0; k < p.step_count; ++k) {  // each step finds its operands where they were put
      auto const& s = p.step(k);
      for (int i = 0; i < op::detail::step_at(s.row)->arguments; ++i)
        if (auto const x = s.operands[static_cast<std::size_t>(i)] - p.inputs; x >= 0)
          REQUIRE(holds[static_cast<std::size_t>(of_step[static_cast<std::size_t>(x)])] == x);
      if (k + 1 < p.step_count) holds[static_cast<std::size_t>(of_step[static_cast<std::size_t>(k)])] = k;
    }
  }
}

TEST_CASE("a full program takes no more steps") {
  element_program make(1);
  int x = 0;
  for (int k = 0; k < element_program::max_steps; ++k) x = *make.add(op::relu{}, dtype::f32, {x});
  auto const before = make;
  CHECK(!make.add(op::relu{}, dtype::f32, {x}));
  element_program constants(1);
  x = 0;
  for (int k = 0; k < element_program::max_constants; ++k) x = *constants.add(op::add_scalar{1}, dtype::f32, {x});
  auto const full = constants;
  CHECK(!constants.add(op::add_scalar{1}, dtype::f32, {x}));
  CHECK(constants == full);
  CHECK(!element_program(2).add(op::matmul{}, dtype::f32, {0, 1}));
  CHECK(make == before);
}

TEST_CASE("graphs of fused programs come back from their text") {
  random_stream draw(13);
  for (int round = 0; round < 40; ++round) {
    auto const r = random_fused::draw(draw, round % 4 == 0);
    graph_editor edit(standard_operators::facets);
    std::vector<value_id> in;
    for (auto const& t : r.inputs) in.push_back(edit.add_source(role::input, t));
    edit.keep(edit.add(op::fused{r.program}, in)[0], role::output);
    auto const g = std::move(edit).finish();
    if (auto const s = verify(g); !s.ok()) FAIL(s.message());
    auto const again = parse_graph(standard_operators::facets, to_text(g));
    if (!again.ok()) FAIL(again.message());
    CHECK(*again == g);
    auto const* p = again->as<op::fused>(op_id{0});
    REQUIRE(p != nullptr);
    CHECK(to_string(p->prologue) == to_string(r.program));
    CHECK(element_program::of_numbers(span_of(r.program.numbers())) == r.program);
  }
}
