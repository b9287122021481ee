// What training programs remember and decide by it, each beside plain eager execution: replayed samples, best weights,
// curves of losses, memory banks, caches; swapped modules, two optimizers, recomputation by hand, callbacks that stop.
#include <neap/capture/cond.hpp>
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

enum class phase : std::uint8_t { easy, medium, hard };

struct small_net {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(3, 0)};
  parameter v{{4, 2}, initialiser::normal(0, 1).with_seed(4, 0)};
  tensor operator()(tensor const& x) const { return matmul(tanh(matmul(x, w)), v); }
};
struct remembering {
  small_net net, other;
  tracked_vector<tensor> samples, sums;
  tracked_vector<double> losses, rates, rewards;
  tracked_map<std::string, tensor> best;
  tracked_map<std::string, double> log;
  tracked_map<int, tensor> cache;
  tracked_generator random{5};
  state<int> n{0}, patience{0};
  state<double> rate{0.05}, lowest{1e9};
  state<phase> now{phase::easy};
  state<bool> is_over{false};
};

struct layered {
  std::vector<small_net> nets = std::vector<small_net>(3);
  std::unique_ptr<small_net> extra = std::make_unique<small_net>();
  state<int> n{0};
  layered() = default;
  layered(layered const& x) : nets(x.nets), extra(std::make_unique<small_net>(*x.extra)), n(x.n) {}
  friend auto neap_fields(layered& l) { return std::tie(l.nets, l.extra, l.n); }
};

tensor loss_of(small_net const& m, tensor const& x) {
  tensor const d = m(x) - sum(x, {1}, true);
  return mean(d * d);
}
template <class Rate>
void descend(small_net const& m, tensor const& loss, Rate const& rate) {
  auto const g = grad(loss, {m.w, m.v});
  assign(m.w, m.w - g[0] * rate), assign(m.v, m.v - g[1] * rate);
}

std::map<std::string, double> logged;

}  // namespace

TEST_CASE("a replay buffer: samples are kept by their loss, and one that is drawn is learnt again") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor const loss = loss_of(s.net, x);
              if (auto const now = item<double>(loss); now > 1.5) {
                s.samples.push_back(x * 1.0);
                s.rewards.push_back(now);
                if (s.samples.size() > 4) s.samples.erase(s.samples.begin()), s.rewards.erase(s.rewards.begin());
              }
              descend(s.net, loss, 0.02);
              if (s.samples.size() > 1) {
                auto const drawn = static_cast<std::size_t>(s.random.below(s.samples.size()).value());
                descend(s.net, loss_of(s.net, s.samples[drawn]) * (s.rewards[drawn] / 10.0), 0.02);
              }
              return loss;
            },
            r, 40, one_sample) > 4);
}

TEST_CASE("early stopping: the best weights are kept by name, and brought back") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              if (s.is_over) return s.net(x);
              tensor const loss = loss_of(s.net, x);
              descend(s.net, loss, 0.1);
              if (auto const now = item<double>(loss); now < s.lowest) {
                s.lowest = now, s.patience = 0;
                s.best["w"] = s.net.w * 1.0, s.best["v"] = s.net.v * 1.0;
              } else if (++s.patience > 6) {
                assign(s.net.w, s.best.at("w")), assign(s.net.v, s.best.at("v"));
                s.is_over = true;
              }
              return loss;
            },
            r, 40, one_sample) > 3);
  CHECK(r.is_over.plain());
}

TEST_CASE("a curriculum by an enum, which the mean of the last losses moves on") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor easier = x;
              switch (s.now.value()) {
                case phase::easy: easier = x * 0.25; break;
                case phase::medium: easier = x * 0.5 + 0.1; break;
                case phase::hard: break;
              }
              tensor const loss = loss_of(s.net, easier);
              descend(s.net, loss, 0.05);
              s.losses.push_back(item<double>(loss));
              if (s.losses.size() < 5) return loss;
              sym<double> mean_loss = 0.0;
              for (auto const& l : s.losses) mean_loss = mean_loss + l / 5.0;
              if (mean_loss < 1.0 && s.now != phase::hard) s.now = s.now == phase::easy ? phase::medium : phase::hard;
              s.losses.clear();
              return loss * mean_loss;
            },
            r, 40, one_sample) > 4);
  CHECK(r.now.plain() != phase::easy);
}

TEST_CASE("a search for the rate: it grows until the loss does, and the curve is kept") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              if (s.is_over) return s.net(x) * s.rate;
              tensor const loss = loss_of(s.net, x);
              auto const now = item<double>(loss);
              s.losses.push_back(now), s.rates.push_back(s.rate);
              if (now < s.lowest) s.lowest = now;
              if (now > s.lowest * 6.0) {
                s.is_over = true;
                s.rate = s.rates[s.losses.size().value() / 2] * 0.1;
              } else {
                descend(s.net, loss, s.rate);
                s.rate *= 1.3;
              }
              return loss;
            },
            r, 30, one_sample) > 3);
}

TEST_CASE("gradients are summed until their norm is large enough") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor const loss = loss_of(s.net, x);
              auto const g = grad(loss, {s.net.w, s.net.v});
              if (s.sums.empty()) {
                for (auto const& each : g) s.sums.push_back(each * 1.0);
              } else {
                for (std::size_t i = 0; i < g.size(); ++i) s.sums.set(i, s.sums[i] + g[i]);
              }
              auto const norm = sqrt(item<double>(sum(s.sums[0] * s.sums[0]) + sum(s.sums[1] * s.sums[1])));
              if (norm > 3.0) {
                assign(s.net.w, s.net.w - s.sums[0] * 0.02), assign(s.net.v, s.net.v - s.sums[1] * 0.02);
                s.sums.clear();
                ++s.n;
              }
              return loss * norm;
            },
            r, 30, one_sample) == 4);
  CHECK(r.n.plain() > 2);
}

TEST_CASE("a memory bank: keys of earlier batches in the loss, the farthest of which is replaced") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor const key = mean(s.net(x), {0});
              tensor loss = mean(key * key);
              std::size_t farthest = 0;
              double most = -1;
              std::size_t i = 0;
              for (auto const& k : s.samples) {
                tensor const d = key - k;
                loss = loss + mean(exp(-(d * d)));
                if (double const far = item<double>(sum(d * d)).value(); far > most) most = far, farthest = i;
                ++i;
              }
              descend(s.net, loss, 0.05);
              if (i < 3) s.samples.push_back(key.detach());
              else s.samples.set(farthest, key.detach());
              return loss;
            },
            r, 30, one_sample) > 4);
  CHECK(r.samples.size().plain() == 3);
}

TEST_CASE("decoding with a cache for each layer, until the token that is read is the last") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor h = mean(x, {0}, true);
              s.cache.clear();
              for (int step = 0; step < 6; ++step) {
                tensor keys = h;
                if (s.cache.contains(0)) keys = concat({s.cache.at(0), h}, 0);
                s.cache[0] = keys;
                h = tanh(matmul(mean(keys, {0}, true), s.net.w));
                if (item<float>(h[0][0]) > 0.0F) break;
                s.cache[step + 1] = h;
              }
              s.log["tokens"] = static_cast<double>(s.cache.size().value());
              return h * s.log.at("tokens");
            },
            r, 30, one_sample) > 3);
}

TEST_CASE("metrics into a map of the host and into a tracked one, where they are worth it") {
  remembering r;
  auto const f = [](remembering& s, tensor const& x) {
    tensor const loss = loss_of(s.net, x);
    descend(s.net, loss, 0.05);
    auto const now = item<double>(loss);
    if (++s.n % 3 == 0) {
      s.log["loss"] = now;
      effect([](int n, double l) { logged["loss " + std::to_string(n)] = l; }, s.n, now);
    }
    if (now < s.lowest) {
      s.lowest = now;
      s.log["lowest"] = now, s.log["at"] = s.n * 1.0;
      effect([](double l) { logged["lowest"] += l; }, now);
    }
    return loss;
  };
  remembering plain = r;
  auto step = compile(f);
  std::map<std::string, double> its;
  for (int i = 0; i < 24; ++i) {
    CAPTURE(i);
    tensor x = sample(i);
    auto got = step(r, x);
    std::swap(logged, its);
    auto expected = f(plain, x);
    std::swap(logged, its);
    CHECK(content_of(got) == content_of(expected));
    CHECK(content_of(r) == content_of(plain));
    CHECK(logged == its);
  }
  CHECK(its.size() == 9);
  logged.clear();
}

TEST_CASE("modules that are swapped at run time, by a counter and by what is read") {
  layered l;
  for (std::size_t k = 0; k < 3; ++k) assign(l.nets[k].w, l.nets[k].w * static_cast<double>(k + 1));
  CHECK(compare(
            [](layered& s, tensor const& x) {
              tensor const y = s.nets[0](x) - s.nets[1](x) * 0.5 + (*s.extra)(x);
              descend(s.nets[0], mean(y * y), 0.05);
              if (++s.n % 3 == 0) std::swap(s.nets[0], s.nets[2]);
              if (item<float>(sum(y)) > 0) std::swap(s.nets[1], *s.extra);
              return y;
            },
            l, 30, one_sample) > 3);
}

TEST_CASE("two optimizers with rates of their own: momentum for one part, Adam by hand for the other") {
  struct optimized {
    small_net net;
    buffer velocity{{4, 4}}, first{{4, 2}}, second{{4, 2}};
    state<int> n{0};
    state<double> fast{0.05}, slow{0.01};
  } o;
  CHECK(compare(
            [](optimized& s, tensor const& x) {
              tensor const loss = loss_of(s.net, x);
              auto const g = grad(loss, {s.net.w, s.net.v});
              ++s.n;
              assign(s.velocity, s.velocity * 0.9 + g[0]);
              assign(s.net.w, s.net.w - s.velocity * s.slow);
              assign(s.first, s.first * 0.9 + g[1] * 0.1);
              assign(s.second, s.second * 0.99 + g[1] * g[1] * 0.01);
              auto const a = 1.0 - pow(0.9, s.n), b = 1.0 - pow(0.99, s.n);
              assign(s.net.v, s.net.v - (s.first / a) / (sqrt(s.second / b) + 1e-6) * s.fast);
              if (s.n % 8 == 0) s.fast *= 0.5;
              return loss;
            },
            o, 20, one_sample) == 2);
}

TEST_CASE("recomputation by hand: a segment runs without history, and again for its gradient") {
  remembering r;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              tensor h;
              {
                no_gradient const unrecorded;
                h = s.net(x);
              }
              parameter cut{h.shape()};  // the segment's result, as a leaf
              assign(cut, h);
              tensor const loss = mean(tanh(cut) * tanh(cut));
              tensor const back = grad(loss, {cut})[0].detach();
              auto const g = grad(sum(s.net(x) * back), {s.net.w, s.net.v});
              assign(s.net.w, s.net.w - g[0] * 0.1), assign(s.net.v, s.net.v - g[1] * 0.1);
              return loss.detach();
            },
            r, 12, one_sample) == 1);
}

TEST_CASE("copies of a model within the step: an inner step on the copy, a gradient at its end for the original") {
  remembering r, kept;
  CHECK(compare(
            [](remembering& s, tensor const& x) {
              small_net fast = s.net;
              for (int k = 0; k < 2; ++k) descend(fast, loss_of(fast, x * 0.5), s.rate);
              tensor const outer = loss_of(fast, x);
              auto const g = grad(outer, {fast.w, fast.v});
              assign(s.net.w, s.net.w - g[0] * 0.05), assign(s.net.v, s.net.v - g[1] * 0.05);
              if (item<double>(outer) < s.lowest) {
                s.lowest = item<double>(outer);
                assign(s.other.w, fast.w), assign(s.other.v, fast.v);
              }
              return outer;
            },
            r, 20, one_sample) == 2);
  // A weight that the call leaves behind is an argument of another kind from then on.
  struct holder {
    small_net net;
    tensor slot;
  } h;
  CHECK(compare(
            [](holder& s, tensor const& x) {
              parameter fresh{{4, 4}, initialiser::constant(0.25)};
              assign(fresh, fresh + s.net.w);
              tensor const y = matmul(x, fresh);
              if (s.slot.is_empty()) s.slot = y;
              return y;
            },
            h, 6, one_sample) == 2);
  holder g;
  CHECK(compare(
            [](holder& s, tensor const& x) {
              parameter fresh{{4, 4}, initialiser::constant(0.25)};
              assign(fresh, fresh + s.net.w);
              s.slot = fresh;
              return matmul(x, fresh);
            },
            g, 6, one_sample) == 2);
  CHECK(g.slot.storage()->role() == role::weight);
  CHECK(g.slot.wants_gradient());
}

TEST_CASE("a callback that stops the training by an exception, after what the step has kept") {
  remembering r, plain;
  struct stop : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  auto const f = [](remembering& s, tensor const& x, sym<double> bound) {
    tensor const loss = loss_of(s.net, x);
    descend(s.net, loss, 0.05);
    s.losses.push_back(item<double>(loss));
    s.samples.push_back(loss);
    effect(
        [](double l, double most) {
          if (l > most) throw stop("loss " + std::to_string(l));
        },
        item<double>(loss), bound);
    s.samples.pop_back();
    ++s.n;
    return loss;
  };
  auto step = compile(f);
  int stopped = 0;
  for (int i = 0; i < 24; ++i) {
    CAPTURE(i);
    auto const call = [&](auto& g, remembering& m) -> std::string {
      tensor x = sample(i);
      try {
        auto y = g(m, x, sym<double>(i % 4 == 3 ? 1.0 : 100.0));
        return content_of(y);
      } catch (stop const& e) { return ++stopped, e.what(); }
    };
    auto const mine = call(step, r), its = call(f, plain);
    CHECK(mine == its);
    CHECK(content_of(r) == content_of(plain));
  }
  CHECK(stopped > 0);
}
