// Training programs that decide by what they have computed, each beside plain eager execution, with its number of graphs.
#include <neap/capture/cond.hpp>
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct net {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(3, 0)},
      v{{4, 1}, initialiser::normal(0, 1).with_seed(4, 0)};
  tensor operator()(tensor const& x) const { return matmul(tanh(matmul(x, w)), v); }
};
tensor loss_of(net const& m, tensor const& x) {
  tensor const d = m(x) - sum(x, {1}, true);
  return mean(d * d);
}
void descend(net const& m, tensor const& loss, sym<double> const& rate) {
  auto const g = grad(loss, {m.w, m.v});
  assign(m.w, m.w - g[0] * rate), assign(m.v, m.v - g[1] * rate);
}
struct training {
  net model;
  state<int> n{0}, patience{0}, skipped{0};
  state<float> best{1e9F};
  state<double> rate{0.1}, average{0.0};
  state<bool> stopped{false};
  buffer w_before{{4, 4}}, v_before{{4, 1}};
};

}  // namespace

TEST_CASE("clipping at a running average of the norm") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const loss = loss_of(s.model, x);
              auto const g = grad(loss, {s.model.w})[0];
              auto const norm = neap::sqrt(item<double>(sum(g * g)));
              s.average = s.average * 0.9 + norm * 0.1;
              assign(s.model.w, s.model.w - g * (norm > s.average * 2 ? s.average * 2 / norm : sym<double>(1.0)));
              return loss;
            },
            t, 30, one_sample) == 2);
}

TEST_CASE("early stopping by the best loss, and a rate that falls on plateaus") {
  training t, u;
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const loss = loss_of(s.model, x);
              if (s.stopped) return loss;
              auto const now = item<float>(loss);
              if (now < s.best) {
                s.best = now, s.patience = 0;
              } else if (++s.patience; s.patience >= 6) {
                s.stopped = true;
              }
              descend(s.model, loss, s.rate);
              return loss;
            },
            t, 60, one_sample) == 4);
  CHECK(t.stopped.plain());
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const loss = loss_of(s.model, x);
              auto const now = item<float>(loss);
              auto const better = now < s.best;
              s.best = select(better, now, sym<float>(s.best));
              s.patience = select(better, sym<int>(0), s.patience + 1);
              s.rate = select(s.patience > 3, s.rate * 0.5, sym<double>(s.rate));
              descend(s.model, loss, s.rate);
              return loss;
            },
            u, 40, one_sample) == 1);
}

TEST_CASE("solvers: bisection by item, power iteration until it has converged, backtracking line search") {
  training t;
  auto const turns = compare(
      [](training& s, tensor const& x) {
        tensor low = tensor::zeros({}), high = tensor::ones({}) * 4;
        tensor const target = mean(x * x);
        for (int i = 0; i < 4; ++i) {
          tensor const middle = (low + high) * 0.5;
          if (item<float>(middle * middle - target) > 0) high = middle;
          else low = middle;
        }
        s.average = item<double>(low);
        return low;
      },
      t, 40, one_sample);
  CHECK(turns <= 16);
  CHECK(turns >= 2);
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const a = matmul(permute(x, {1, 0}), x);
              tensor v = tensor::ones({4, 1});
              int i = 0;
              for (; i < 6; ++i) {
                tensor const next = matmul(a, v);
                tensor const unit = next / sqrt(sum(next * next));
                auto const moved = item<float>(sum((unit - v) * (unit - v)));
                v = unit;
                if (moved < 1e-2F) break;
              }
              s.n += i;
              return v;
            },
            t, 40, one_sample) <= 7);
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const loss = loss_of(s.model, x);
              auto const g = grad(loss, {s.model.w})[0];
              assign(s.w_before, s.model.w);
              sym<double> step = s.rate * 16;
              for (int i = 0; i < 5; ++i) {
                assign(s.model.w, s.w_before - g * step);
                if (item<float>(loss_of(s.model, x)) < item<float>(loss)) break;
                step = step * 0.25;
              }
              s.average = step;
              return loss;
            },
            t, 40, one_sample) <= 6);
}

TEST_CASE("decoding: the token that is read picks the next row, until the end") {
  struct decoder {
    parameter rows{{4, 4}, initialiser::normal(0, 1).with_seed(7, 0)},
        out{{4, 4}, initialiser::normal(0, 1).with_seed(8, 0)};
    state<std::int64_t> produced{0};
  } d;
  auto const paths = compare(
      [](decoder& m, tensor const& x) {
        tensor h = x[0];
        for (int i = 0; i < 3; ++i) {
          tensor const scores = reshape(matmul(reshape(h, {1, 4}), m.out), {4});
          auto const token = arg_max(scores, 0).item<std::int64_t>();
          ++m.produced;
          if (token == 0) break;
          h = tanh(h + m.rows[token]);
        }
        return h;
      },
      d, 60, one_sample);
  CHECK(paths > 1);
  CHECK(paths <= 1 + 3 + 9 + 27);
}

TEST_CASE("a router on the host runs one expert of a list; a batch of padding alone is skipped") {
  struct experts {
    std::vector<net> all = std::vector<net>(3);
    parameter gate{{4, 3}, initialiser::normal(0, 1).with_seed(9, 0)};
    std::array<state<int>, 3> chosen;
    state<int> skipped{0};
  } e;
  CHECK(compare(
            [](experts& m, tensor const& x) {
              auto const k = static_cast<std::size_t>(arg_max(mean(matmul(x, m.gate), {0}), 0).item<std::int64_t>());
              ++m.chosen[k];
              return m.all[k](x);
            },
            e, 40, one_sample) == 3);
  CHECK(compare(
            [](experts& m, tensor const& x, tensor const& is_real) {
              if (!item<bool>(any(is_real))) {
                ++m.skipped;
                return tensor::zeros({});
              }
              tensor const loss = mean(m.all[0](x));
              assign(m.all[0].w, m.all[0].w - grad(loss, {m.all[0].w})[0] * 0.1);
              return loss;
            },
            e, 20,
            [](int i) {
              return std::tuple{sample(i), tensor::full({3}, i % 4 == 0 ? 0 : 1, dtype::boolean)};
            }) == 2);
}

TEST_CASE("losses that switch form, curricula and adversarial steps by thresholds") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const d = s.model(x) - sum(x, {1}, true);
              tensor const size = mean(abs(d));
              tensor const loss = item<float>(size) < 1.5F ? mean(d * d) * 0.5 : size - 0.5;
              descend(s.model, loss, s.rate);
              return loss;
            },
            t, 40, one_sample) == 2);
  CHECK(compare(
            [](training& s, tensor const& x) {
              s.average += 0.1;
              tensor const loss = loss_of(s.model, x);
              if (item<double>(loss) > s.average * 20) return ++s.skipped, loss;  // too hard so far
              descend(s.model, loss, s.rate);
              return loss;
            },
            t, 40, one_sample) <= 2);
  CHECK(compare(
            [](training& s, tensor const& given) {
              tensor x = given.with_gradient();
              tensor const loss = loss_of(s.model, x);
              auto const now = item<double>(loss);
              auto const easy = now < s.average;
              s.average = s.average * 0.5 + now * 0.5;
              if (easy) x = x.detach() + grad(loss, {x})[0].detach() * 0.1;
              tensor const again = loss_of(s.model, x);
              descend(s.model, again, s.rate);
              return again;
            },
            t, 30, one_sample) == 2);
}

TEST_CASE("two models trained against each other, one of them only while it is the weaker") {
  struct pair {
    net maker, judge;
    state<int> judged{0};
  } p;
  CHECK(compare(
            [](pair& g, tensor const& x) {
              tensor const made = g.maker(x) * tensor::ones({1, 4});
              tensor const right = mean(sigmoid(g.judge(x))), wrong = mean(sigmoid(g.judge(made.detach())));
              if (item<float>(right - wrong) < 0.1F) {
                tensor const loss = wrong - right;
                descend(g.judge, loss, 0.1);
                ++g.judged;
              }
              tensor const loss = -mean(sigmoid(g.judge(made)));
              descend(g.maker, loss, 0.1);
              return loss;
            },
            p, 30, one_sample) == 2);
}

TEST_CASE("weights are kept before each step and brought back where the loss is no number") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              ++s.n;
              tensor const loss = loss_of(s.model, x);
              if (!isfinite(item<float>(loss))) {
                assign(s.model.w, s.w_before), assign(s.model.v, s.v_before);
                ++s.skipped;
                return loss;
              }
              assign(s.w_before, s.model.w), assign(s.v_before, s.model.v);
              descend(s.model, loss, s.rate);
              if (s.n > 10) assign(s.w_before, s.w_before * 0.5 + s.model.w * 0.5);  // averaged after a warm-up
              return loss;
            },
            t, 40,
            [](int i) {
              return std::tuple{i % 9 == 5 ? sample(i) * std::numeric_limits<double>::quiet_NaN() : sample(i)};
            }) == 3);
  CHECK(t.skipped.plain() == 4);
}

TEST_CASE("an element of a state decides, and one of memory that the same call has written") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              if (item<float>(s.w_before[0][0]) > 1.0F) assign(s.w_before, s.w_before * 0.25);
              assign(s.w_before, s.w_before + 0.3);
              tensor const view = s.w_before[1];
              if (item<float>(view[2]) > 1.0F) s.n += 1;
              assign(view, view + item<float>(x[0][0]));
              return x + view * item<double>(s.w_before[1][3]);
            },
            t, 30, one_sample) <= 4);
}
