// What training programs do around their steps, each beside plain eager execution, with its number of graphs: teachers,
// warm restarts, mixed samples, smoothed labels, averages of snapshots, retries, batches of iterators, budgets, phases.
#include <neap/capture/cond.hpp>
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct net {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(3, 0)},
      v{{4, 2}, initialiser::normal(0, 1).with_seed(4, 0)};
  tensor operator()(tensor const& x) const { return matmul(tanh(matmul(x, w)), v); }
};
struct training {
  net student, teacher;
  state<int> n{0}, cycle{0}, failures{0};
  state<double> rate{0.1}, length{4.0}, spent{0.0};
  tracked_generator random{5};
  tracked_vector<tensor> snapshots;
};
tensor loss_of(net const& m, tensor const& x) {
  tensor const d = m(x) - sum(x, {1}, true);
  return mean(d * d);
}
template <class Rate>
void descend(net const& m, tensor const& loss, Rate const& rate) {
  auto const g = grad(loss, {m.w, m.v});
  assign(m.w, m.w - g[0] * rate), assign(m.v, m.v - g[1] * rate);
}

}  // namespace

TEST_CASE("a teacher follows the student, and is followed after a warm-up") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor loss = loss_of(s.student, x);
              if (++s.n > 5) {
                no_gradient const fixed_target;
                tensor const target = s.teacher(x);
                loss = loss + mean((s.student(x) - target) * (s.student(x) - target)) * 0.0;
              }
              descend(s.student, loss, 0.05);
              assign(s.teacher.w, s.teacher.w * 0.9 + s.student.w * 0.1);
              assign(s.teacher.v, s.teacher.v * 0.9 + s.student.v * 0.1);
              return loss;
            },
            t, 15, one_sample) == 2);
}

TEST_CASE("warm restarts: a rate by cosine, cycles that double") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              auto const part = s.n / s.length;
              auto const rate = (neap::cos(part * std::numbers::pi) + 1.0) * 0.05;
              tensor const loss = loss_of(s.student, x);
              descend(s.student, loss, rate);
              if (++s.n >= s.length) s.n = 0, s.length *= 2.0, ++s.cycle;
              return loss;
            },
            t, 30, one_sample) == 2);
  CHECK(t.cycle.plain() == 3);
}

TEST_CASE("samples mixed in a random proportion, labels smoothed more and more") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x, tensor const& other) {
              auto const part = s.random.uniform(0.2, 0.8);
              auto const smoothing = neap::min(s.n * 0.01, sym<double>(0.1));
              ++s.n;
              tensor const mixed = x * part + other * (1.0 - part);
              tensor const target = sum(mixed, {1}, true) * (1.0 - smoothing) + smoothing * 0.5;
              tensor const d = s.student(mixed) - target;
              tensor const loss = mean(d * d);
              descend(s.student, loss, 0.05);
              return loss;
            },
            t, 25,
            [](int i) {
              return std::tuple{sample(i), sample(i + 50)};
            }) == 1);
}

TEST_CASE("a mean of the last snapshots, taken every third step") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const loss = loss_of(s.student, x);
              descend(s.student, loss, 0.05);
              if (++s.n % 3 == 0) {
                s.snapshots.push_back(s.student.w * 1.0);
                if (s.snapshots.size() > 3) s.snapshots.erase(s.snapshots.begin());
              }
              tensor average = s.student.w * 1.0;
              for (tensor const& past : s.snapshots) average = average + past;
              return matmul(x, average / (s.snapshots.size() + 1));
            },
            t, 30, one_sample) <= 8);
}

TEST_CASE("a failed step is tried again with a smaller rate, by exceptions") {
  training t;
  struct rose {};
  CHECK(compare(
            [](training& s, tensor const& x) {
              tensor const before = loss_of(s.student, x);
              sym<double> rate = s.rate;
              for (int turn = 0; turn < 3; ++turn) {
                tensor const w = s.student.w * 1.0, v = s.student.v * 1.0;
                try {
                  descend(s.student, loss_of(s.student, x), rate);
                  if (item<float>(loss_of(s.student, x)) > item<float>(before)) throw rose{};
                  break;
                } catch (rose const&) {
                  assign(s.student.w, w), assign(s.student.v, v);
                  rate = rate * 0.25;
                  ++s.failures;
                }
              }
              s.rate = rate * 1.5;
              return before;
            },
            t, 30, one_sample) <= 4);
  CHECK(t.failures.plain() > 0);
}

TEST_CASE("micro-batches of an iterator, one of them possibly short") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              struct batches {
                tensor const& all;
                struct iterator {
                  tensor const* all;
                  std::int64_t at;
                  tensor operator*() const { return slice(*all, 0, at, std::min(at + 2, all->size(0))); }
                  iterator& operator++() { return at += 2, *this; }
                  bool operator!=(iterator const&) const { return at < all->size(0); }
                };
                iterator begin() const { return {&all, 0}; }
                iterator end() const { return {&all, all.size(0)}; }
              };
              tensor gw = s.student.w * 0.0, gv = s.student.v * 0.0, total = tensor::zeros({});
              for (tensor const batch : batches{x}) {
                tensor const loss = loss_of(s.student, batch);
                auto const g = grad(loss, {s.student.w, s.student.v});
                gw = gw + g[0], gv = gv + g[1], total = total + loss.detach();
              }
              assign(s.student.w, s.student.w - gw * 0.05), assign(s.student.v, s.student.v - gv * 0.05);
              return total;
            },
            t, 20, [](int i) { return std::tuple{sample(i, 4 + i % 2)}; }) == 2);
}

TEST_CASE("a budget of time, on a clock of the host, ends the epoch") {
  training t;
  CHECK(compare(
            [](training& s, tensor const& x) {
              if (s.spent > 2.0) {
                s.spent = 0.0;
                ++s.cycle;
                return tensor::zeros({});
              }
              auto const took = external([](int n) { return 0.25 * (n % 3 + 1); }, s.n);
              ++s.n;
              s.spent += took;
              tensor const loss = loss_of(s.student, x);
              descend(s.student, loss, 0.02);
              return loss;
            },
            t, 30, one_sample) == 2);
  CHECK(t.cycle.plain() > 2);
}

TEST_CASE("phases by name: warm-up, train, tune; each has its loss and what it trains") {
  struct phased {
    net student;
    state<int> n{0};
    std::string phase = "warm-up";
  } t;
  CHECK(compare(
            [](phased& s, tensor const& x) {
              std::map<std::string, double> const weights{{"fit", s.phase == "tune" ? 0.1 : 1.0}, {"size", 0.01}};
              tensor loss = loss_of(s.student, x) * weights.at("fit");
              if (s.phase != "warm-up") loss = loss + sum(s.student.w * s.student.w) * weights.at("size");
              auto const g = grad(loss, {s.student.w, s.student.v});
              assign(s.student.v, s.student.v - g[1] * 0.05);
              if (s.phase == "train") assign(s.student.w, s.student.w - g[0] * 0.05);
              if (++s.n == 5) s.phase = "train";
              else if (s.n == 12) s.phase = "tune";
              return loss;
            },
            t, 20, one_sample) == 5);
}

TEST_CASE("optional parts and a variant of losses, chosen per call") {
  enum class kind : std::uint8_t { squared, absolute, huber };
  training t;
  CHECK(compare(
            [](training& s, tensor const& x, std::optional<tensor> const& weight, kind how) {
              tensor d = s.student(x) - sum(x, {1}, true);
              if (weight) d = d * *weight;
              tensor loss;
              switch (how) {
                case kind::squared: loss = mean(d * d); break;
                case kind::absolute: loss = mean(abs(d)); break;
                case kind::huber: loss = mean(where(abs(d) < 1.0, d * d * 0.5, abs(d) - 0.5)); break;
              }
              descend(s.student, loss, 0.02);
              return loss;
            },
            t, 24,
            [](int i) {
              return std::tuple{sample(i), i % 2 ? std::optional<tensor>(tensor::full({3, 1}, 0.5)) : std::nullopt,
                                static_cast<kind>(i % 3)};
            }) == 6);
}
