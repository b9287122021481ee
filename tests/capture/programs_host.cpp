// Programs that print, log, count, time, fetch and throw, each beside plain eager execution, with its number of graphs.
#include <neap/capture/host.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

/// What the host does, of which both ways must do the same.
struct host_state {
  std::string text;
  int time = 0, stops = 0;
  std::deque<int> queue;
  std::vector<std::vector<float>> saved;
};
host_state now;

/// compare() with all that the host does besides.
template <class F, class Model, class Arguments>
std::size_t compare(F f, Model& model, int calls, Arguments arguments, compile_options const& options = {}) {
  Model plain = model;
  auto compiled = compile(f, options);
  host_state mine, its;
  auto const begin = [](int i) {
    host_state h;
    h.time = 10 * i;
    h.queue = {i, i + 1};
    h.stops = i % 7 == 6;
    return h;
  };
  for (int i = 0; i < calls; ++i) {
    std::string got, expected;
    auto const call = [&](auto const& g, Model& m, std::string& to) {
      auto all = arguments(i);
      now = begin(i);
      try {
        auto r = std::apply([&](auto&... x) { return g(m, x...); }, all);
        to = content_of(r);
      } catch (std::runtime_error const& e) { to = e.what(); }
      to += now.text + " " + std::to_string(now.time) + " " + std::to_string(now.queue.size());
      for (auto const& s : now.saved)
        for (float const x : s) to += " " + std::to_string(x);
      to += content_of(all);
    };
    call([&](Model& m, auto&... x) { return compiled(m, x...); }, model, got);
    call(f, plain, expected);
    CAPTURE(i);
    CAPTURE(compiled.why_missed());
    REQUIRE(got == expected);
    REQUIRE(content_of(model) == content_of(plain));
  }
  return compiled.graphs();
}

struct model {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(3, 0)};
  state<int> n{0};
  state<std::int64_t> seen{0};
  state<double> sum{0.0}, time{0.0};
  tracked_generator random{11};
};
tensor step(model& m, tensor const& x) {
  tensor const loss = mean(tanh(matmul(x, m.w)));
  assign(m.w, m.w - grad(loss, {m.w})[0] * 0.1);
  return loss;
}
void print(std::string const& line) { now.text += line + "\n"; }

}  // namespace

TEST_CASE("the mean loss of ten steps is printed every ten steps") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              tensor const loss = step(s, x);
              s.sum += item<double>(loss);
              if (++s.n; s.n % 10 == 0) {
                effect([](int n, double mean) { print("step " + std::to_string(n) + ": " + std::to_string(mean)); },
                       s.n, s.sum / 10);
                s.sum = 0;
              }
              return loss;
            },
            m, 50, one_sample) == 2);
}

TEST_CASE("examples are counted and printed with the loss in each call, in the middle of the step") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              s.seen += x.size(0);
              effect([](std::int64_t n) { print(std::to_string(n)); }, s.seen);
              tensor const loss = mean(tanh(matmul(x, s.w)));
              effect([](float l, std::string const& what) { print(what + std::to_string(l)); }, item<float>(loss),
                     std::string("loss "));
              assign(s.w, s.w - grad(loss, {s.w})[0] * 0.1);
              return loss;
            },
            m, 20, one_sample) == 1);
}

TEST_CASE("a clock around the step, and throughput as a state") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              auto const begin = external([] { return now.time++; });
              tensor const loss = step(s, x);
              auto const end = external([] { return now.time += 3; });
              s.time += end - begin;
              if (s.time > 40.0) s.time = 0;
              return loss;
            },
            m, 30, one_sample) == 2);
}

TEST_CASE("a function pointer as callback, called with the loss; another one is another graph") {
  model m;
  using callback = void (*)(float);
  CHECK(compare(
            [](model& s, tensor const& x, callback const& f) {
              tensor const loss = step(s, x);
              effect(f, item<float>(loss));
              return loss;
            },
            m, 20,
            [](int i) {
              return std::tuple{sample(i), i % 4 == 3 ? callback([](float x) { print("rare " + std::to_string(x)); })
                                                      : callback([](float x) { print(std::to_string(x)); })};
            }) == 2);
}

TEST_CASE("weights are saved every five steps, and histograms taken of a tensor in the middle") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              tensor const y = matmul(x, s.w);
              effect(
                  [](tensor const& t) {
                    int negative = 0;
                    for (float const v : t.values<float>()) negative += v < 0;
                    print(std::to_string(negative));
                  },
                  y);
              ++s.n;
              if (s.n % 5 == 1) effect([](tensor const& t) { now.saved.push_back(t.values<float>()); }, s.w);
              assign(s.w, s.w * 0.9);
              if (s.n % 5 == 2) effect([](tensor const& t) { now.saved.push_back(t.values<float>()); }, s.w[1]);
              return y;
            },
            m, 20, one_sample) == 3);
}

TEST_CASE("batches from a queue of the host, of two shapes, until a flag of the host says stop") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              tensor sum_of_all = sum(x);
              for (int i = 0; i < 2; ++i) {
                if (external([] { return now.stops != 0; })) break;
                tensor const batch = external([] {
                  int const k = now.queue.front();
                  now.queue.pop_front();
                  return sample(k, k % 2 ? 2 : 3);
                });
                sum_of_all = sum_of_all + step(s, batch);
              }
              return sum_of_all;
            },
            m, 30, one_sample) == 3);
}

TEST_CASE("a generator restarts each epoch, orders layers by value, and scales noise") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              if (s.n % 8 == 0) s.random.seed(static_cast<std::uint64_t>(5));
              ++s.n;
              auto const which = s.random.below(3).value();
              tensor y = which == 0 ? tanh(x) : which == 1 ? relu(x) : x * 0.5;
              return y + s.random.normal() * 0.1;
            },
            m, 40, one_sample) <= 6);
}

TEST_CASE("effects in recursion and loops, with texts of the path") {
  model m;
  struct recursive {
    static tensor run(tensor const& x, sym<int> const& depth, std::string const& path) {
      effect([](float v, std::string const& p) { print(p + " " + std::to_string(v)); }, item<float>(mean(x)), path);
      return depth > 0 ? run(tanh(x), depth - 1, path + "/down") : x;
    }
  };
  CHECK(compare(
            [](model& s, tensor const& x) {
              s.n = s.n % 3 + 1;
              return recursive::run(x, s.n, "top");
            },
            m, 12, one_sample) == 3);
}

TEST_CASE("exceptions as control flow: thrown and caught within the function, by data and by state") {
  model m;
  struct too_large {};
  CHECK(compare(
            [](model& s, tensor const& x) {
              ++s.n;
              try {
                tensor const y = x * 2;
                if (item<float>(sum(y)) > 0) throw too_large{};
                return y + s.n;
              } catch (too_large const&) {
                effect([](int n) { print("caught " + std::to_string(n)); }, s.n);
                return x - s.n;
              }
            },
            m, 30, one_sample) == 2);
}

TEST_CASE("exceptions by data leave what was written before them, and earlier output; good calls are kept") {
  model m;
  CHECK(compare(
            [](model& s, tensor const& x) {
              ++s.n;
              assign(s.w, s.w * 0.5);
              effect([](int n) { print(std::to_string(n)); }, s.n);
              if (item<float>(sum(x)) > 3.0F) throw std::runtime_error("too large");
              assign(s.w, s.w + 1);
              ++s.seen;
              return x * s.seen;
            },
            m, 40, one_sample) == 1 + neap::testing::keeps_exceptions);
}

TEST_CASE("functions that fixed() vouches for, and more values than graphs: eager from then on, still right") {
  model m;
  int offset = 3;
  CHECK(compare(fixed([&offset](model& s, tensor const& x) {
                  effect(fixed([&offset](int n) { print(std::to_string(n + offset)); }), s.n);
                  ++s.n;
                  return x * offset;
                }),
                m, 10, one_sample) == 1);
#if !defined(NEAP_COMPILES_FOR_DEVICE)  // where nothing runs eagerly
  CHECK(compare(
            [](model& s, tensor const& x) {
              auto const tick = external([] { return now.time++; });
              effect([](int t) { print("t" + std::to_string(t)); }, tick);
              ++s.n;
              return x * tick.value();  // one graph for each tick
            },
            m, 12, one_sample, {.graphs = 4}) == 4);
#endif
}
