// Buffers that a model reads and writes, in whatever order: random small programs train eagerly and planned, in order
// and under a limit, to the last bit, buffers included; and are evaluated so.
#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>

#include <neap/core/philox.hpp>
#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/message.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::message_of;
using neap::testing::sanitized;

namespace {

constexpr std::int64_t rows = 5, width = 4;

/// A module with a state of its own.
struct memory {
  nn::linear in{width, width};
  buffer kept{{rows, width}, initialiser::constant(0.25)};
  tensor operator()(tensor const& x) const {
    tensor const y = tanh(in(x)*kept + kept);
    assign(kept, y);
    return y + kept * 0.5;
  }
};

struct counts {
  std::size_t reads = 0, writes = 0, views = 0, copies = 0, programs = 0;
};

struct program {
  std::uint64_t seed = 0;
  std::vector<nn::linear> layers = std::vector<nn::linear>(3, nn::linear{width, width});
  buffer state{{rows, width}, initialiser::constant(0.5)}, other{{rows, width}, initialiser::constant(-0.25)};
  buffer row{{width}, initialiser::constant(1)}, square_state{{width, width}, initialiser::constant(0.125)}, number{{}};
  memory nested;

  friend auto neap_fields(program& p) {
    return std::tie(p.layers, p.state, p.other, p.row, p.square_state, p.number, p.nested);
  }

  tensor operator()(tensor const& x) const {
    random_stream draw(seed, 31);
    auto const below = [&](std::uint32_t n) { return draw.below(n); };
    tensor y = layers[0](x);
    std::vector<tensor> views{state, row};  // handles and views, read later whatever is written in between
    auto const full = [&]() -> buffer const& { return below(2) ? state : other; };
    auto const read = [&] {
      switch (below(8)) {
        case 0: y = y * full(); break;
        case 1: y = tanh(y + full() * row); break;
        case 2: y = matmul(y, square_state); break;
        case 3: y = y * (number + 1); break;
        case 4: y = y + mean(full(), {0}) * y; break;
        case 5: y = layers[1](y * full()); break;
        case 6: y = y * views[below(static_cast<std::uint32_t>(views.size()))]; break;
        default: y = y * slice(full(), 0, 1, 2) + select(square_state, 0, below(width)); break;
      }
    };
    auto const some = [&]() -> tensor {  // to write into a buffer of all rows
      switch (below(6)) {
        case 0: return y;
        case 1: return tanh(y * full());
        case 2: return full();
        case 3: return state * 0.5 + other;
        case 4: return copy(full());
        default: return layers[2](x);
      }
    };
    auto const write = [&] {
      switch (below(9)) {
        case 0: assign(full(), some()); break;
        case 1: assign(state, state * 0.75 + y * 0.25); break;
        case 2: assign(row, row * 0.5 + mean(y, {0})); break;
        case 3: assign(square_state, tanh(matmul(transpose(y), y)) * 0.2); break;
        case 4: assign(number, number * 0.5 + mean(y)); break;
        case 5: assign(slice(full(), 0, 1, 3), slice(some(), 0, 0, 2)); break;
        case 6: {
          auto const& b = full();  // rows move on
          assign(slice(b, 0, 1, rows), slice(b, 0, 0, rows - 1));
          break;
        }
        case 7: assign(square_state, transpose(square_state)); break;
        default: apply(op::accumulate{}, {full(), y * 0.1}); break;
      }
    };
    auto const n = 3 + below(6);
    for (std::uint32_t i = 0; i < n; ++i) {
      switch (below(6)) {
        case 0:
        case 1: read(); break;
        case 2:
        case 3: write(); break;
        case 4: {
          no_gradient const off;
          write();
          break;
        }
        default:
          switch (below(4)) {
            case 0: views.push_back(slice(full(), 0, 0, 1)); break;
            case 1: views.push_back(select(square_state, 1, 1)); break;
            case 2: views.push_back(full()); break;
            default: y = nested(y); break;
          }
      }
      y = tanh(y);
    }
    if (below(2)) read();
    return y;
  }
};

struct told {
  tensor loss, state, seen;
};
told loss_of_program(program const& m, std::pair<tensor, tensor> const& b) {
  tensor const y = m(b.first);
  tensor l = mse_loss(y, b.second);
  if (m.seed % 3 == 0) l = l + mean(y * m.state);
  if (m.seed % 5 == 0) assign(m.other, y);
  return {l, m.state, m.row + 0};
}

std::vector<std::pair<std::string, std::vector<double>>> all_of(program& m) {
  std::vector<std::pair<std::string, std::vector<double>>> all;
  for (auto r : {role::weight, role::buffer})
    for (auto const& t : named_tensors(m, r)) all.emplace_back(t.name, t.tensor.values<double>());
  return all;
}
std::pair<tensor, tensor> batch(std::uint64_t i) {
  return {tensor::randn({rows, width}, 2 * i), tensor::randn({rows, width}, 2 * i + 1)};
}

}  // namespace

TEST_CASE("random programs with buffers: eager and planned to the last bit, buffers included") {
  eager_context const context{{.threads = 1}};
  counts seen;
  momentum const optimizer{.rate = 0.05};
  for (std::uint64_t seed = 0; seed < (sanitized ? 40u : 300u); ++seed) {
    CAPTURE(seed);
    program eager, in_order, limited;
    for (auto* m : {&eager, &in_order, &limited}) m->seed = seed, initialise(*m, seed + 1);
    auto const a = training_step(in_order, batch(0), loss_of_program, optimizer);
    auto const b = training_step(limited, batch(0), loss_of_program, optimizer);
    if (auto const valid = verify(a.program); !valid.ok()) FAIL(valid.message());
    for (auto o : a.program.ops()) seen.copies += a.program.as<op::copy>(o) != nullptr;
    search_options o;
    o.iterations = 40;
    auto const found = optimize(b, default_moves, o, memory_limit::of_original(0.6));
    if (auto const verdict = verify_plan(b.program, found.placed); !verdict.ok()) FAIL(verdict.message());
    host_backend backend(1);
    trainer plain(a, plan_in_order(a.program), backend), tight(b, found.placed, backend);
    auto const forward = [](program const& m, tensor const& x) { return m(x); };
    auto const evaluated = evaluation_step(in_order, batch(0).first, forward);
    evaluator eval(evaluated, plan_in_order(evaluated.program), backend);
    training_state state;
    for (std::uint64_t i = 0; i < 4; ++i) {
      auto const s = batch(i);
      double const l = eager_step(eager, s, loss_of_program, optimizer, state).item<double>();
      CHECK(plain(s) == l);
      CHECK(tight(s) == l);
      CHECK(all_of(in_order) == all_of(eager));
      CHECK(all_of(limited) == all_of(eager));
      CHECK(plain.output("state").values<float>() == eager.state.values<float>());
      CHECK(plain.output("seen").values<float>() == eager.row.values<float>());
      if (i % 2 == 0) continue;
      {
        evaluation const off;
        CHECK(eval(s.first).values<float>() == eager(s.first).values<float>());
        (void)limited(s.first);
      }
      CHECK(all_of(in_order) == all_of(eager));
      CHECK(all_of(limited) == all_of(eager));
    }
    ++seen.programs;
  }
  CHECK(seen.copies > seen.programs / 4);
}

TEST_CASE("a recurrent state that a buffer carries trains eagerly as it does planned, read itself or by a copy") {
  struct net {
    nn::linear in{8, 16}, state{16, 16};
    buffer h{{32, 16}};
    bool copies = false;
    tensor operator()(tensor const& x) {
      auto const next = tanh(in(x) + state(copies ? copy(h) : h));
      assign(h, next);
      return next;
    }
  };
  eager_context const context{{.threads = 1}};
  std::pair const batch{tensor::randn({32, 8}, 1), tensor::randn({32, 16}, 2)};
  net eager, planned, copying;
  copying.copies = true;
  for (auto* m : {&eager, &planned, &copying}) initialise(*m, 1);
  auto const step = training_step(planned, batch, mse{}, sgd{.rate = 0.1});
  host_backend backend(1);
  trainer run(step, plan_in_order(step.program), backend);
  training_state a, b;
  for (int i = 0; i < 4; ++i) {
    double const l = eager_step(eager, batch, mse{}, sgd{.rate = 0.1}, a).item<double>();
    CHECK(run(batch) == l);
    CHECK(eager_step(copying, batch, mse{}, sgd{.rate = 0.1}, b).item<double>() == l);
    CHECK(planned.h.values<float>() == eager.h.values<float>());
    CHECK(copying.h.values<float>() == eager.h.values<float>());
    CHECK(planned.state.weight.values<float>() == eager.state.weight.values<float>());
  }
}

TEST_CASE("copy: gradients go through it, and what writes the original leaves it alone") {
  parameter const w({3}, initialiser::constant(2));
  tensor const c = copy(w);
  CHECK(grad(sum(c * c), {w})[0].values<float>() == std::vector<float>(3, 4));
  buffer const b({2, 3}, initialiser::constant(1));
  tensor const before = copy(transpose(b)), view = slice(b, 0, 0, 1);
  assign(b, b + 1);
  CHECK(before.values<float>() == std::vector<float>(6, 1));
  CHECK(before.shape() == shape{3, 2});
  CHECK(before.layout().is_dense());
  CHECK(view.values<float>() == std::vector<float>(3, 2));
  CHECK(message_of([&] { (void)copy(tensor()); }).find("buffers.cpp:") != std::string::npos);
  CHECK(message_of([&] { assign(b, w); }).find("buffers.cpp:") != std::string::npos);
}
