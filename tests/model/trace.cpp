#include <neap/model/trace.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

using namespace neap;
using neap::testing::message_of;

namespace {

struct with_buffer {
  buffer b{{4}, initialiser::constant(1)};
  tensor before;  // a view made with the model
  with_buffer() : before(slice(b, 0, 0, 2)) {}
};

tensor ones(std::int64_t n) { return tensor::ones({n}); }

std::size_t count_of(op_graph const& g, std::string_view name) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name == name;
  return n;
}

}  // namespace

TEST_CASE("who reads what was updated in place reads the update") {
  with_buffer m;
  int line = 0;
  SUBCASE("through the model's handle, and through those of the trace") {
    auto const p = trace(
        [&](tensor const& x) {
          tensor const y = x * 2;
          (void)apply(op::accumulate{}, {m.b, y});
          (void)apply(op::accumulate{}, {y, m.b});
          return std::pair{m.b + x, y + x};
        },
        ones(4));
    REQUIRE(verify(p.program).ok());
    auto const& g = p.program;
    for (auto v : p.outputs) {
      auto const read = g.inputs(g.producer(v))[0];
      CHECK(g.record(read).alias == alias_kind::update);
      CHECK(g.record(read).version == g.record(g.storage(read)).updates);
    }
    CHECK(p.residents.size() == 1);
  }
  SUBCASE("through views of equal parts") {
    auto const p = trace(
        [&](tensor const& x) {
          (void)apply(op::accumulate{}, {slice(m.b, 0, 0, 2), x});
          (void)apply(op::accumulate{}, {m.before, x});
          return m.before + x;
        },
        ones(2));
    REQUIRE(verify(p.program).ok());
    auto const& g = p.program;
    auto const read = g.inputs(g.producer(p.outputs[0]))[0];
    CHECK(g.record(read).version == 2);
  }
  auto const refused = [&](auto const& f) {
    auto const what = message_of([&] { (void)trace(f, ones(2)); });
    CAPTURE(what);
    CHECK(what.starts_with("trace.cpp:" + std::to_string(line) + ": the traced program reads f32["));
    CHECK(what.find("updated in place through f32[2], another view") != std::string::npos);
  };
  SUBCASE("not another part than was updated: a view of the trace") {
    refused([&](tensor const& x) {
      (void)apply(op::accumulate{}, {slice(m.b, 0, 0, 2), x});
      line = __LINE__ + 1;
      return m.b + 1;
    });
  }
  SUBCASE("not another part than was updated: a view from before the trace") {
    refused([&](tensor const& x) {
      (void)apply(op::accumulate{}, {m.before, x});
      line = __LINE__ + 1;
      return m.b + 1;
    });
  }
  SUBCASE("not another part than was updated: views of it") {
    refused([&](tensor const& x) {
      (void)apply(op::accumulate{}, {slice(m.b, 0, 1, 3), x});
      line = __LINE__ + 1;
      return m.before + x;
    });
  }
  SUBCASE("not another part than was updated: a result of the trace") {
    refused([&](tensor const& x) {
      tensor const y = concat({x, x});
      (void)apply(op::accumulate{}, {slice(y, 0, 0, 2), x});
      line = __LINE__ + 1;
      return y * 2;
    });
  }
}

TEST_CASE("a recorded view is made in the program, once for each value of what it looks at") {
  parameter const w({4, 3}, initialiser::uniform(-1, 1));
  tensor const t = transpose(w), half = slice(t, 1, 0, 2);  // a view of a view
  auto const p = trace([&](tensor const& x) { return matmul(x, t) + sum(half) + sum(half); }, tensor::ones({2, 3}));
  REQUIRE(verify(p.program).ok());
  CHECK(p.residents.size() == 1);
  CHECK(count_of(p.program, "permute") == 1);
  CHECK(count_of(p.program, "slice") == 1);
  for (auto v : p.program.sources()) CHECK(p.program.record(v).alias == alias_kind::fresh);
}

TEST_CASE("what a program reads of a constant that it makes itself") {
  tensor const zeros = tensor::zeros({2, 3}), turned = transpose(zeros);
  int line = 0;
  auto const what = message_of([&] {
    (void)trace(
        [&](tensor const& x) {
          line = __LINE__ + 1;
          return matmul(x, turned);
        },
        tensor::ones({2, 3}));
  });
  CHECK(what.starts_with("trace.cpp:" + std::to_string(line) + ": the traced program reads a view, f32[3,2]"));
}
