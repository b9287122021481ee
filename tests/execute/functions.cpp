// Functions of tensors that models use, in a training step: eager, traced and planned it has the same bits.
#include <neap/model/functions.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <doctest/doctest.h>

using namespace neap;

namespace {

/// Rows are sent to the better of four experts, two each, weighted; what comes back is added in place of the rows.
struct routed {
  nn::linear route{8, 4};
  std::vector<nn::linear> experts = std::vector<nn::linear>(4, nn::linear(8, 8));

  tensor operator()(tensor const& x) const {
    auto const best = topk(softmax(route(x)), 2);
    tensor const chosen = sum(one_hot(best.places, 4, dtype::i64), {1});                  // (rows, 4)
    tensor const place = cumsum(chosen, 0) - chosen;                                      // within each expert
    tensor const share = sum(one_hot(best.places, 4) * unsqueeze(best.values, -1), {1});  // (rows, 4)
    tensor y = x;
    for (std::int64_t e = 0; e < 4; ++e) {
      // The first six rows of an expert; the others have places behind it and are left out.
      tensor const mine = logical_and(equal(select(chosen, 1, e), 1), less(select(place, 1, e), 6));
      tensor const rows = slice(arg_sort(mine, 0, true), 0, 0, 6);
      tensor const weight = index_select(where(mine, select(share, 1, e), 0), rows);
      y = index_add(y, rows, experts[static_cast<std::size_t>(e)](index_select(x, rows)) * unsqueeze(weight, -1));
    }
    return y;
  }
};

struct network {
  routed first;
  nn::linear out{8, 8};
  parameter phase{{8}, initialiser::uniform(-1, 1)};

  tensor operator()(tensor const& x) const {
    tensor y = first(x);
    y = (y - mean(y, {1}, true)) / (stddev(y, {-1}, {.keepdim = true}) + 0.1);
    tensor const waves = sin(y + phase) * cos(transpose(transpose(y)));
    tensor const table = stack({y, waves, clamp(y, -0.5, 1)}, 1);  // (rows, 3, 8)
    tensor const scores = tril(matmul(table, table, {.transpose_b = true}), 0);
    y = sum(matmul(scores, table), {1}) + cumsum(y, 0) * 0.01 + sort(waves, 0).values;
    y = where(greater(y, 3), sqrt(clamp(y, {.low = 3})), y) + maximum(y, -2) * sign(waves) + y * floor(y * 0.1);
    tensor const chosen = index_select(y, multinomial(softmax(mean(y, {1}))));  // a row, drawn
    y = elu(y, 0.5) + einsum("rc,xc->rx", {y, tanh(chosen)}) * 0.1 + roll(flip(y, {1}), {3}, {0}) * norm(y, 2, {0});
    y = y + unsqueeze(cosine_similarity(y, waves), -1) + prod(clamp(table, 0.5, 1), {1}) +
        masked_fill(logsumexp(table, {1}), greater(waves, 0.5), 0);
    return out(y);
  }
};

}  // namespace

TEST_CASE("a step of many functions: eager, planned in the order given, and planned under half the memory") {
  network eager;
  initialise(eager, 7);
  std::pair const batch{tensor::randn({16, 8}, 1), clamp(tensor::randn({16, 8}, 2), {.low = 0, .high = 1})};
  adamw const optimizer{.rate = 0.01};
  binary_cross_entropy_with_logits const loss;
  std::vector<double> expected;
  network const start = eager;
  {
    network same = start;
    training_state state;
    for (int i = 0; i < 4; ++i) expected.push_back(eager_step(same, batch, loss, optimizer, state).item<double>());
    eager = same;
  }
  CHECK(expected[3] < expected[0]);
  for (double limit : {1.0, 0.5}) {
    network planned = start;
    auto const step = training_step(planned, batch, loss, optimizer);
    auto const valid = verify(step.program);
    REQUIRE_MESSAGE(valid.ok(), valid.message());
    search_options search;
    search.memory_at_most = memory_limit::of_original(limit);
    search.iterations = 60;
    auto const found = optimize(step, zip(rematerialize{} | truncate(12), neap::swap{1e9} | truncate(4)), search);
    auto const right = verify_plan(step.program, found.placed);
    REQUIRE_MESSAGE(right.ok(), right.message());
    trainer run(step, found.placed, eager_context::current().backend());
    for (double e : expected) CHECK(run(batch) == e);
    auto const a = parameters(eager), b = parameters(planned);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].values<double>() == b[i].values<double>());
  }
}
