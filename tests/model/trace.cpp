#include <neap/model/trace.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/grad.hpp>

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

std::size_t count_of(op_graph const& g, std::string_view name) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name == name;
  return n;
}

}  // namespace

TEST_CASE("who reads what was updated in place reads the update, at whatever part of it he looks") {
  with_buffer m;
  int updates = 2;
  auto const check = [&](auto const& f, shape const& s) {
    auto const p = trace(f, tensor::ones(s));
    REQUIRE(verify(p.program).ok());
    auto const& g = p.program;
    for (auto v : p.outputs) {
      auto const read = g.inputs(g.producer(v))[0];
      CHECK(g.record(read).version == g.record(g.storage(read)).updates);
      CHECK(g.record(read).version == updates);
    }
    CHECK(p.residents.size() <= 1);
  };
  SUBCASE("through the model's handle, and through those of the trace") {
    updates = 1;
    check(
        [&](tensor const& x) {
          tensor const y = x * 2;
          (void)apply(op::accumulate{}, {m.b, y});
          (void)apply(op::accumulate{}, {y, m.b});
          return std::pair{m.b + x, y + x};
        },
        {4});
  }
  SUBCASE("through views of equal parts") {
    check(
        [&](tensor const& x) {
          (void)apply(op::accumulate{}, {slice(m.b, 0, 0, 2), x});
          (void)apply(op::accumulate{}, {m.before, x});
          return m.before + x;
        },
        {2});
  }
  SUBCASE("through others: the whole, views of the trace and from before it") {
    check(
        [&](tensor const& x) {
          tensor const all = m.b * 1, end = slice(m.b, 0, 2, 4);
          (void)apply(op::accumulate{}, {slice(m.b, 0, 0, 2), x});
          (void)apply(op::accumulate{}, {slice(m.b, 0, 1, 3), x});
          return std::vector{m.b + all, m.before + x, end + x, slice(m.b, 0, 1, 3) + x};
        },
        {2});
  }
  SUBCASE("of a result of the trace") {
    updates = 1;
    check(
        [&](tensor const& x) {
          tensor const y = concat({x, x}), turned = transpose(reshape(y, {2, 2}));
          (void)apply(op::accumulate{}, {slice(y, 0, 0, 2), x});
          return std::pair{y * 2, turned + 1};
        },
        {2});
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

TEST_CASE("what a program reads of constants") {
  tensor const zeros = tensor::zeros({2, 3}), turned = transpose(zeros);
  auto const sources = [](auto const& f) {
    auto const p = trace(f, tensor::ones({2, 3}));
    REQUIRE(verify(p.program).ok());
    return p.residents.size();
  };
  SUBCASE("a view of one that is made in the program") {
    CHECK(sources([&](tensor const& x) { return matmul(x, turned); }) == 0);
  }
  SUBCASE("one whose data exist, but are as they were made") {
    CHECK(zeros.values<float>() == std::vector<float>(6, 0));
    CHECK(sources([&](tensor const& x) { return x + zeros; }) == 0);
    zeros.data<float>()[5] = 1;
    CHECK(message_of([&] {
            (void)trace([&](tensor const& x) { return x + zeros; }, tensor::ones({2, 3}));
          }).find("neither an argument nor a part of the model") != std::string::npos);
  }
  SUBCASE("random numbers that it draws itself") {
    CHECK(sources([&](tensor const& x) { return x + tensor::randn({3}, 4) * tensor::rand({3}, 4); }) == 2);
  }
}

TEST_CASE("in a trace, data that may be others in another step are not told") {
  parameter const w({2}, initialiser::constant(3));
  buffer const b({1}, initialiser::constant(0));
  tensor const sample = tensor::ones({2}), fixed = constant(tensor::full({1}, 4));
  tensor const part = slice(w, 0, 0, 1);
  int line = 0;
  auto const message = [&](auto const& f) {
    return message_of([&] {
      (void)trace(
          [&](tensor const& x) {
            f();
            return x * w;
          },
          sample);
    });
  };
  auto const refused = [&](std::string const& what) {
    return what.find("may be others in each step of the traced program") != std::string::npos &&
           what.starts_with("trace.cpp:" + std::to_string(line) + ": ");
  };
  CHECK(refused(message([&] { line = __LINE__, (void)b.item<float>(); })));
  CHECK(refused(message([&] { line = __LINE__, (void)w.values<float>(); })));
  CHECK(refused(message([&] { line = __LINE__, (void)part.item<float>(); })));
  CHECK(refused(message([&] { line = __LINE__, (void)sample.values<float>(); })));
  auto const updated = message([&] {
    tensor const n = tensor::zeros({1});
    (void)apply(op::accumulate{}, {n, fixed});
    line = __LINE__ + 1;
    (void)n.item<float>();
  });
  CHECK(refused(updated));
  CHECK(message([&] {
          CHECK(fixed.item<float>() == 4);
          CHECK(tensor::full({1}, 2).item<float>() == 2);
          CHECK(tensor::from({5.f}, {1}).item<float>() == 5);
        }) == "no error");
  CHECK(b.item<float>() == 0);
}

TEST_CASE("a leaf in a trace: the same data, and no gradient goes through it") {
  parameter const w({2}, initialiser::constant(3));
  auto const gradients = [&](auto const& f) {
    return trace(
        [&](tensor const& x) {
          tensor const y = x * w;
          auto const [loss, wrt] = f(x, y);
          return neap::grad(loss, wrt);
        },
        tensor::ones({2}));
  };
  // of y twice, one of them detached: the product has one gradient
  auto const p = gradients([&](tensor const&, tensor const& y) {
    return std::pair{sum(y * y.detach()), std::vector<tensor>{w}};
  });
  CHECK(count_of(p.program, "as_strided") == 1);
  CHECK(count_of(p.program, "mul") == 4);  // x w, y y', g y', times x
  auto const q = gradients([&](tensor const&, tensor const& y) {
    tensor const leaf = y.with_gradient();
    return std::pair{sum(leaf * leaf), std::vector<tensor>{leaf, w}};
  });
  CHECK(q.program.type(q.outputs[0]).dims == shape{2});
  CHECK(q.program.facets(q.program.producer(q.outputs[1])).name == "fill");  // zeros: w does not reach the loss
  tensor kept;
  (void)trace([&](tensor const& x) { return kept = x * 2; }, tensor::ones({2}));
  CHECK(message_of([&] { kept.detach(); }).find("this tensor belongs to a trace that has ended") != std::string::npos);
  CHECK(message_of([&] { kept.with_gradient(); }).find("this tensor belongs to a trace that has ended") !=
        std::string::npos);
}
