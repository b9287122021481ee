#include <neap/train/accumulate.hpp>

#include <neap/core/philox.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/message.hpp"
#include "run_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::message_of;

namespace {

struct sample {
  tensor x, y, mask, weight, target, number;
};

/// Labels of which some are ignored, unevenly over the batch; a mask that is 0 in the second half, but for one.
sample make_sample(std::uint64_t seed, std::int64_t n = 16) {
  random_stream draw(seed, 3);
  std::vector<std::int64_t> y;
  std::vector<float> mask;
  for (std::int64_t i = 0; i < n; ++i) {
    y.push_back(draw.below(3) == 0 || (i > n / 2 && i != n - 2) ? -100 : static_cast<std::int64_t>(draw.below(5)));
    mask.push_back(i < n / 2 + 1 && draw.below(4) != 0 ? 1.f : 0.f);
  }
  mask[0] = 1, y[0] = 2;
  return {tensor::randn({n, 6}, seed + 1),   tensor::from(y, {n}),        tensor::from(mask, {n}),
          tensor::rand({n}, seed + 2) + 0.1, tensor::randn({n, 5}, seed), tensor::full({}, 0.5)};
}

struct net {
  nn::linear a{6, 8}, b{8, 5};
  parameter scale{{}, initialiser::constant(1.5)};
  tensor operator()(tensor const& x) const { return b(tanh(a(x))); }
};

struct told {
  tensor loss, accuracy, labels, prediction, perplexity, largest, root;
};

constexpr std::uint32_t kinds = 20, sums = 15;  // the first are sums over samples, the others are none

/// One term of a loss.
tensor term(std::uint32_t kind, net const& m, sample const& s, tensor const& p) {
  tensor const rows = mean(square(p - s.target), {1});
  switch (kind) {
    case 0: return mean(rows);
    case 1: return sum(rows) * 0.01;
    case 2: return sum(rows * s.mask) / sum(s.mask);
    case 3: return sum(s.weight * rows) / sum(s.weight) * m.scale;
    case 4: return cross_entropy_loss(p, s.y);
    case 5: return cross_entropy_loss(p, s.y, -100, 0.1) * s.number + mse_loss(p, s.target);
    case 6: return sum(rows * s.mask) / maximum(sum(s.mask), tensor::full({}, 1));
    case 7: {
      tensor const n = sum(s.mask);
      return where(greater(n, 0), sum(rows * s.mask) / n, tensor::full({}, 0));
    }
    case 8: return sum(rows) * (1 / static_cast<double>(s.x.size(0))) + sum(square(m.a.weight)) * 0.1;
    case 9: return sum(rows * softmax(s.weight));  // normalised over the batch
    case 10: {                                     // the labels of the model itself
      tensor const sure = cast(greater(max(p.detach(), {1}), 0.2), dtype::f32);
      return sum(rows * sure) / (sum(sure) + 1);
    }
    case 11: {  // centred over the batch, and as sequences of two
      tensor const centred = s.x - mean(s.x, {0}, true);
      tensor const q = m(reshape(centred, {s.x.size(0) / 2, 2, 6}));
      return mean(square(q)) * 3 - mean(reshape(q, {-1})) / 2 + 4;
    }
    case 12: {  // weights of classes by how often they are there
      tensor const label = where(less(s.y, 0), tensor::full({}, 0, dtype::i64), s.y);
      tensor const often = sum(cast(one_hot(label, 5), dtype::f32), {0}) + 1;
      return mean(index_select(1 / often, label) * rows);
    }
    case 13: return huber_loss(p, s.target, 0.5, loss_reduction::sum) / 7 + mean(matmul(transpose(s.target), p));
    case 14: return (mean(rows) + sum(rows * s.weight) / sum(s.weight)) * m.scale + exp(m.scale) * 0.1;
    case 15: return sqrt(mean(rows));
    case 16: return log(sum(exp(rows)));
    case 17: return max(rows);
    case 18: return mean(matmul(p, transpose(p)));  // each sample with each other one
    default: return mean(square(p - mean(p, {0}, true)));
  }
}

struct random_loss {
  std::vector<std::uint32_t> terms;
  told operator()(net const& m, sample const& s) const {
    tensor const p = m(s.x);
    tensor loss;
    for (auto k : terms) loss = loss.is_empty() ? term(k, m, s, p) : loss + term(k, m, s, p);
    tensor const counts = not_equal(s.y, -100);
    tensor const right = mul(cast(equal(arg_max(p), s.y), dtype::f32), cast(counts, dtype::f32));
    return {loss,
            sum(right) / cast(sum(counts), dtype::f32),
            sum(counts),
            p,
            exp(loss * 0.1),
            max(p),
            sqrt(mean(square(p - s.target)))};
  }
};

void check_close(tensor const& a, tensor const& b) {
  REQUIRE(a.shape() == b.shape());
  auto const x = a.values<double>(), y = b.values<double>();
  double largest = 1e-2;
  for (auto v : x) largest = std::max(largest, std::abs(v));
  for (std::size_t k = 0; k < x.size(); ++k) CHECK(std::abs(x[k] - y[k]) <= 2e-5 * largest);
}

void check_equal(loss_and_gradients const& whole, loss_and_gradients const& sum) {
  check_close(whole.loss, sum.loss);
  REQUIRE(whole.outputs.size() == sum.outputs.size());
  for (std::size_t k = 0; k < whole.outputs.size(); ++k) {
    CAPTURE(whole.outputs[k].name);
    CHECK(whole.outputs[k].name == sum.outputs[k].name);
    check_close(whole.outputs[k].tensor, sum.outputs[k].tensor);
  }
  for (std::size_t k = 0; k < whole.gradients.size(); ++k) {
    REQUIRE(whole.gradients[k].is_empty() == sum.gradients[k].is_empty());
    if (!whole.gradients[k].is_empty()) check_close(whole.gradients[k], sum.gradients[k]);
  }
}

}  // namespace

TEST_CASE("random losses over parts of a batch equal the whole batch's, or are refused with the op and its line") {
  eager_context const context{{.threads = 1}};
  int refused = 0, equal = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    random_stream draw(seed, 8);
    random_loss loss;
    bool is_sum = true;
    if (seed < kinds) loss.terms = {static_cast<std::uint32_t>(seed)};
    else
      for (std::uint32_t n = 1 + draw.below(3); n > 0; --n)
        loss.terms.push_back(draw.below(8) == 0 ? draw.below(kinds) : draw.below(sums));
    for (auto k : loss.terms) is_sum = is_sum && k < sums;
    net m;
    initialise(m, seed);
    auto const s = make_sample(seed);
    auto const whole = accumulated(loss, m, s, parameters(m));
    auto const odd = 3 + static_cast<std::int64_t>(seed % 15);  // parts of 16 samples, mostly of two sizes
    bool const has_pairs = std::find(loss.terms.begin(), loss.terms.end(), 11u) != loss.terms.end();  // of samples
    for (std::int64_t parts : {std::int64_t{1}, std::int64_t{2}, std::int64_t{8}, odd}) {
      CAPTURE(seed);
      CAPTURE(parts);
      CAPTURE(loss.terms.front());
      if (parts == 1 || (is_sum && !(has_pairs && 8 % parts != 0))) {
        check_equal(whole, accumulated(loss, m, s, parameters(m), {.parts = parts}));
        ++equal;
        continue;
      }
      auto const what = message_of([&] { (void)accumulated(loss, m, s, parameters(m), {.parts = parts}); });
      CHECK(what.find("accumulate.cpp:") != std::string::npos);
      CHECK(what.find("would not give the whole batch's loss: ") != std::string::npos);
      CHECK(what.find('\n') == std::string::npos);
      ++refused;
    }
  }
  CHECK(equal > 200);
  CHECK(refused > 15);
}

TEST_CASE("a traced step over parts of a batch has the bits of the eager one") {
  eager_context const context{{.threads = 1}};
  for (std::uint32_t k = 0; k < sums; ++k)
    for (std::int64_t parts : {2, 5}) {
      CAPTURE(k);
      if (parts == 5 && (k == 11 || (k + 5) % sums == 11)) continue;  // pairs of samples
      net planned, eager;
      initialise(planned, 3), initialise(eager, 3);
      random_loss const loss{{k, (k + 5) % sums}};
      training_options const options{.micro_batches = parts};
      auto const p = training_step(planned, make_sample(0), loss, sgd{.rate = 0.1}, options);
      support::program_runner run(p);
      training_state state;
      for (std::uint64_t i = 0; i < 3; ++i) {
        auto const s = make_sample(i);
        p.set();
        CHECK(run({s.x, s.y, s.mask, s.weight, s.target, s.number}) ==
              eager_step(eager, s, loss, sgd{.rate = 0.1}, state, options).item<double>());
        CHECK(planned.a.weight.values<float>() == eager.a.weight.values<float>());
      }
    }
}

TEST_CASE("dropout draws over parts what it draws over the whole batch") {
  eager_context const context{{.threads = 1}};
  struct dropped {
    nn::linear a{6, 8}, b{8, 5};
    nn::dropout drop{0.4};
    tensor operator()(tensor const& x) const { return drop(b(drop(tanh(a(x))))); }
  };
  std::vector<double> losses;
  for (std::int64_t parts : {1, 2, 8, 5, 20}) {
    dropped m;
    initialise(m, 3);
    training_state state;
    auto const s = make_sample(1);
    for (int i = 0; i < 2; ++i)
      losses.push_back(eager_step(m, std::pair{s.x, s.target}, mse{}, sgd{.rate = 0.1}, state, {.micro_batches = parts})
                           .item<double>());
    CHECK(state.counter().item<std::int64_t>() == 2);
  }
  for (std::size_t k = 2; k < losses.size(); ++k) CHECK(losses[k] == doctest::Approx(losses[k % 2]).epsilon(1e-5));
}

TEST_CASE("what is no row of the batch goes with every part, whatever its extent") {
  eager_context const context{{.threads = 1}};
  struct shared {
    tensor weights, x, y, mask;
  };
  auto const loss = [](net& m, shared const& s) {
    auto const p = gather(log_softmax(m(s.x)), unsqueeze(s.y, 1), 1);
    auto const w = index_select(s.weights, s.y);
    auto const seen = matmul(softmax(s.mask), transpose(m(s.x)));  // (k, k) (k, n)
    return mean(square(seen)) - sum(squeeze(p, 1) * w) / sum(w);
  };
  for (std::int64_t n : {12, 7, 3, 1})
    for (std::int64_t parts : {2, 3, 4}) {
      CAPTURE(n);
      CAPTURE(parts);
      net m;
      initialise(m, 3);
      shared const s{tensor::rand({5}, 1) + 0.5, tensor::randn({n, 6}, 2), randint(0, 5, {n}, 3),
                     triu(tensor::full({5, 5}, -9), 1)};
      check_equal(accumulated(loss, m, s, parameters(m)), accumulated(loss, m, s, parameters(m), {.parts = parts}));
    }
}

TEST_CASE("a model that joins the samples of the batch is refused over parts, with the op that does") {
  struct normed {
    nn::linear a{6, 8}, b{8, 5};
    nn::batch_norm2d norm{8};
    tensor operator()(tensor const& x) const {
      return b(reshape(norm(reshape(a(x), {x.size(0), 8, 1, 1})), {x.size(0), 8}));
    }
  };
  normed m;
  auto const s = make_sample(1);
  std::pair const b{s.x, s.target};
  auto const what = message_of([&] { (void)training_step(m, b, mse{}, sgd{}, {.micro_batches = 2}); });
  CHECK(what.find("batch_norm") != std::string::npos);
  CHECK(what.find("joins samples of the batch") != std::string::npos);
  auto const frozen = [](normed& n, auto const& part) {
    tensor const p = [&] {
      evaluation const off;
      return n(part.first).detach();
    }();
    return mse_loss(n.b(n.a(part.first)) * p, part.second);
  };
  check_equal(accumulated(frozen, m, b, parameters(m)), accumulated(frozen, m, b, parameters(m), {.parts = 4}));
}

TEST_CASE("dropout over parts needs the batch on its first axis, and says so") {
  struct dropping {
    nn::linear a{6, 5};
    tensor operator()(tensor const& x, bool first) const {
      tensor const y = reshape(a(x), {x.size(0), 1, 5});
      tensor const z = first ? y : permute(concat({y, y}, 1), {1, 0, 2});
      return sum(dropout(z, 0.5));
    }
  };
  dropping m;
  initialise(m, 1);
  auto const s = make_sample(1);
  std::pair const b{s.x, s.target};
  for (bool first : {true, false}) {
    auto const loss = [first](dropping& n, auto const& part) { return n(part.first, first); };
    auto const what = message_of([&] { (void)training_step(m, b, loss, sgd{}, {.micro_batches = 2}); });
    CHECK((what == "no error") == first);
    if (!first)
      CHECK(what.find("dropout f32[2,16,5] draws for all samples at once: the batch is not its first axis") !=
            std::string::npos);
  }
}

TEST_CASE("steps of a recurrent net and other stacks of samples are cut with the batch") {
  struct recurrent_net {
    nn::gru cell{3, 4, {.layers = 2}};
    nn::lstm other{3, 4};
    nn::linear out{8, 5};
    tensor operator()(tensor const& x) const {
      auto const steps = reshape(x, {x.size(0), 2, 3});
      return out(concat({slice(cell(steps).output, 1, 1, 2), slice(other(steps).output, 1, 0, 1)}, -1));
    }
  };
  recurrent_net m;
  initialise(m, 1);
  auto const s = make_sample(1);
  std::pair const b{s.x, reshape(s.target, {s.target.size(0), 1, 5})};
  auto const loss = [](recurrent_net& n, auto const& part) { return mse_loss(n(part.first), part.second); };
  for (std::int64_t parts : {2, 4})
    check_equal(accumulated(loss, m, b, parameters(m)), accumulated(loss, m, b, parameters(m), {.parts = parts}));

  // Stacks in front of, behind and between axes, with a part that is the same for all samples; one that is read besides.
  struct stacker {
    nn::linear a{6, 4}, b{6, 4};
    parameter same{{16, 4}, initialiser::normal(0, 1)};
  };
  stacker n;
  initialise(n, 2);
  int refused = 0;
  for (int kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    auto const stacked = [kind](stacker& w, auto const& part) {
      tensor const x = w.a(part.first), y = tanh(w.b(part.first));
      tensor const z = kind < 3    ? stack({x, y, x * y}, kind)
                       : kind == 3 ? permute(stack({x, y, w.same * x}, 0), {1, 0, 2})
                       : kind == 4 ? reshape(concat({x, y}, 0), {2, x.size(0), 4})
                                   : reshape(concat({x, y}, 0), {x.size(0), 2, 4});  // another sample's rows
      return mean(square(kind == 0 || kind == 4 ? permute(z, {1, 0, 2}) : z)) + mean(z);
    };
    auto const whole = accumulated(stacked, n, b, parameters(n));
    for (std::int64_t parts : {2, 4}) try {
        check_equal(whole, accumulated(stacked, n, b, parameters(n), {.parts = parts}));
      } catch (error const& e) {
        CHECK(std::string(e.what()).find("joins samples of the batch") != std::string::npos);
        CHECK(kind >= 3);
        ++refused;
      }
  }
  CHECK(refused <= 4);
}

TEST_CASE("buffers that a loss reads and writes are over parts as over the whole batch") {
  struct carried {
    nn::linear a{6, 5};
    buffer h{{16, 5}}, average{{5}}, count{{}};
    tensor operator()(tensor const& x) {
      tensor const next = tanh(a(x) + h);
      assign(count, count + 1);
      assign(h, next);
      assign(average, average * 0.9 + mean(next, {0}) * 0.1);
      return next / (count + 1);
    }
  };
  eager_context const context{{.threads = 1}};
  carried whole, parts;
  initialise(whole, 5), initialise(parts, 5);
  training_state a, b;
  auto const s = make_sample(2);
  for (int i = 0; i < 3; ++i) {
    std::pair const batch{s.x, s.target};
    double const l = eager_step(whole, batch, mse{}, sgd{.rate = 0.1}, a).item<double>();
    CHECK(eager_step(parts, batch, mse{}, sgd{.rate = 0.1}, b, {.micro_batches = 4}).item<double>() ==
          doctest::Approx(l).epsilon(1e-5));
  }
  check_close(whole.h, parts.h);
  check_close(whole.average, parts.average);
  check_close(whole.count, parts.count);
  check_close(whole.a.weight, parts.a.weight);

  struct read_again {
    nn::linear a{6, 5};
    buffer h{{16, 5}};
    tensor operator()(tensor const& x) {
      assign(h, tanh(a(x)));
      return h * a(x);
    }
  };
  read_again m;
  auto const what = message_of([&] {
    (void)training_step(m, std::pair{s.x, s.target}, mse{}, sgd{}, {.micro_batches = 2});
  });
  CHECK(what.find("assign") != std::string::npos);
  CHECK(what.find("read afterwards") != std::string::npos);
}

TEST_CASE("gradients of bf16 and f16 weights over many parts are added in f32") {
  for (dtype t : {dtype::bf16, dtype::f16}) {
    struct {
      parameter w{{1, 1}, initialiser::constant(1)};
    } m;
    set_element(m, t);
    std::int64_t const n = t == dtype::bf16 ? 512 : 4096;
    tensor const x = cast(tensor::ones({n, 1}), t);
    auto const loss = [](auto& net, tensor const& part) { return sum(matmul(part, net.w)); };
    auto const sum = accumulated(loss, m, x, parameters(m), {.parts = n});
    CHECK(sum.gradients[0].element() == t);
    CHECK(sum.gradients[0].item<double>() == static_cast<double>(n));
    CHECK(sum.loss.item<double>() == static_cast<double>(n));
  }
}
