// The log of a call's operators beside the graph editor, and what recording leaves of a call's memory.
#include <neap/capture/operator_log.hpp>

#include "../support/graph_text.hpp"
#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/core/philox.hpp>
#include <neap/ir/operators/movement.hpp>

#include <memory>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::detail;
using neap::testing::message_of;

namespace log_operators {

/// A program's own operator with the name of a standard one.
struct false_relu {
  static constexpr std::string_view name = "relu";
  void infer(shape_context& s) const { s.fresh(s.in(0)); }
  void relate(dim_context&) const {}
};
template <class Backend>
void run(Backend&, false_relu const&, kernel_arguments const&) {}
/// One whose shape rule gives something else at each call.
struct fickle {
  static constexpr std::string_view name = "fickle";
  static inline std::int64_t extent = 0;
  void infer(shape_context& s) const { s.fresh(tensor_type{dtype::f32, {++extent}}); }
  void relate(dim_context&) const {}
};

/// Another one of that name.
struct second_fickle : fickle {};

}  // namespace log_operators

namespace {

/// Adds random operators to a log and to an editor, in sections of their own graphs.
void add_random(operator_log& log, std::vector<graph_editor>& graphs, random_stream& draw, std::size_t ops) {
  auto const section = static_cast<std::uint32_t>(graphs.size());
  log.begin_section();
  auto& edit = graphs.emplace_back(table_of<standard_operators>());
  auto const first = log.value_count();
  tensor_layout const source = tensor_layout::dense({dtype::f32, {1 + draw.below(3), 4}});
  auto const from = log.add_source(role::weight, log.layout_number(source), "w");
  CHECK(log.in_section(section, from) == edit.add_source_at(role::weight, source, "w"));
  std::vector<value_id> values{value_id{0}};
  auto const add = [&](auto const& op, std::vector<value_id> const& in) {
    std::vector<std::uint32_t> numbers;
    for (auto v : in) numbers.push_back(first + static_cast<std::uint32_t>(index(v)));
    auto const made = edit.add(op, span_of(in));
    std::vector<output_rule> rules;
    for (auto v : made)
      rules.push_back({edit.graph().layout(v), edit.graph().record(v).alias, edit.graph().record(v).of});
    auto const at = log.add(view_of(op), span_of(numbers), span_of(rules), {});
    CHECK(log.in_section(section, at) == made.front());
    values.insert(values.end(), made.begin(), made.end());
  };
  for (std::size_t k = 0; k < ops; ++k) {
    auto const v = values[draw.below(static_cast<std::uint32_t>(values.size()))];
    auto const type = edit.graph().type(v);
    switch (draw.below(6)) {
      case 0: add(op::relu{}, {v}); break;
      case 1: add(op::mul{}, {v, v}); break;
      case 2: add(op::fill{{1, 2}, dtype::f64, 0.5}, {}); break;
      case 3: add(op::copy{}, {v}); break;
      case 4: add(op::reshape{{type.count()}}, {v}); break;
      default: add(op::tanh{}, {v});
    }
  }
}

}  // namespace

TEST_CASE("a log's sections become the graphs that an editor makes of the same operators") {
  operator_log log;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    random_stream draw(seed, 3);
    log.clear();  // and is used again
    std::vector<graph_editor> graphs;
    for (auto n = 1 + draw.below(3); n > 0; --n) add_random(log, graphs, draw, draw.below(40));
    for (std::uint32_t k = 0; k < graphs.size(); ++k) {
      graph_editor built{table_of<standard_operators>()};
      std::vector<std::source_location> places;
      log.build(k, built, places);
      CHECK(places.size() == built.graph().op_count());
      CHECK(to_text(graph(std::move(built).finish())) == to_text(graph(std::move(graphs[k]).finish())));
    }
  }
}

TEST_CASE("a log refuses what a graph refuses, with the place of the operator") {
  operator_log log;
  log.begin_section();
  tensor_layout const l = tensor_layout::dense({dtype::f32, {2}});
  auto const x = log.add_source(role::input, log.layout_number(l), "x");
  auto const here = std::source_location::current();
  output_rule const same{l};
  (void)log.add(op::relu{}, span_of(&x, 1), same, here);
  auto const clash = [&] { (void)log.add(log_operators::false_relu{}, span_of(&x, 1), same, here); };
  CHECK(message_of(clash) == "relu: another operator in the graph has this name");
  log.begin_section();  // another graph
  auto const y = log.add_source(role::input, log.layout_number(l), "x");
  (void)log.add(log_operators::fickle{}, span_of(&y, 1), same, here);
  auto const second = [&] { (void)log.add(log_operators::second_fickle{}, span_of(&y, 1), same, here); };
  CHECK(message_of(second) == "fickle: another operator in the graph has this name");
  graph_editor built{table_of<standard_operators>()};
  std::vector<std::source_location> places;
  CHECK(message_of([&] { log.build(1, built, places); }) ==
        error::place(here) + "compile: fickle has another layout in the graph");
}

namespace {
std::weak_ptr<tensor_storage> intermediate;
bool was_freed = false;
tensor two_steps(tensor const& x) {
  tensor y = tanh(x);
  intermediate = y.storage();
  y = relu(y);
  was_freed = intermediate.expired();
  return y * 2.0;
}
/// Keeps what an effect makes, where no capture sees it.
struct unseen_tensors {
  static inline std::vector<tensor> all{};
};
tensor uses_unseen(tensor const& x) {
  for (int i = 0; i < 8; ++i) (void)tanh(x);  // freed at once
  effect([] {
    for (int i = 0; i < 8; ++i) unseen_tensors::all.push_back(relu(tensor::ones({4})));
  });
  return x + unseen_tensors::all.back();
}
}  // namespace

TEST_CASE("a recorded call frees its intermediate tensors as an eager call does") {
  auto step = compile(&two_steps);
  (void)step(tensor::ones({4}));
  CHECK(was_freed);
  CHECK(step.graphs() == 1);
}

TEST_CASE("a tensor that no recorded operator made is refused also where a freed one was") {
  auto step = compile(&uses_unseen);
  CHECK(message_of([&] { (void)step(tensor::ones({4})); }).find("neither an argument nor a part of one") !=
        std::string::npos);
  unseen_tensors::all.clear();
}
