// What the host does within a compiled function: elements that are read and decide, effects in order, functions that are
// called in each call, generators; each beside plain eager execution, with the number of graphs.
#include <neap/capture/host.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/cond.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/mutate/default_moves.hpp>

#include <limits>
#include <stdexcept>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct small_model {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(3, 0)};
  buffer mean_of_all{{}};
  state<int> n{0}, skipped{0};
  state<double> scale{4.0}, last{0.0};
};
struct layer_like {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(6, 0)};
};

}  // namespace

TEST_CASE("an element that is read decides by its comparison: two graphs, whatever the values") {
  small_model m;
  CHECK(compare(
            [](small_model& s, tensor const& x) {
              ++s.n;
              tensor const y = matmul(x, s.w);
              assign(s.mean_of_all, s.mean_of_all * 0.9 + mean(y));
              auto const total = item<float>(sum(y));
              if (total > 0) {
                s.scale *= 0.5;
                return y * total;
              }
              assign(s.w, s.w * 0.99);
              s.last = total;
              return relu(y) + s.scale;
            },
            m, 40, one_sample) == 2);
}

TEST_CASE("an element as a factor, or kept, decides nothing; as a plain number it is a graph for each value") {
  small_model m;
  CHECK(compare(
            [](small_model& s, tensor const& x) {
              auto const mean_now = item<double>(mean(x));
              s.last = s.last + mean_now;  // read at the end: no graph ends here
              return x * 2 + item<float>(sum(x)) + s.last;
            },
            m, 20, one_sample) == 1);
  CHECK(compare(
            [](small_model& s, tensor const& x) {
              tensor const sign = greater(sum(x), 0);
              bool const yes = sign.item<bool>();
              ++s.n;
              return yes ? x * 2 : x - 1;
            },
            m, 20, one_sample) == 2);
  auto const f = [](small_model& s, tensor const& x) {
    float const plain = sum(x).item<float>();
    s.last = plain;
    return plain > 0 ? x * plain : x;
  };
  small_model again;
#if !defined(NEAP_COMPILES_FOR_DEVICE)
  CHECK(compare(f, again, 12, one_sample, {.graphs = 5}) == 5);
#endif
  CHECK(compare(f, again, 12, [](int i) { return std::tuple{sample(i % 3)}; }) == 3);
  CHECK(compare(
            [](small_model&, tensor const& x) {
              auto const all = greater(x[0], 0).values<bool>();
              tensor y = x;
              for (bool const each : all) y = each ? y * 2 : y + 1;
              return y;
            },
            again, 40, [](int i) { return std::tuple{sample(i % 5)}; }) <= 5);
}

TEST_CASE("reads of other element types, of views and of arguments") {
  small_model m;
  auto const f = [](small_model& s, tensor const& x, tensor const& whole, tensor const& wide) {
    tensor y = x;
    if (item<int>(whole[1]) % 2 == 0) y = y * 2;
    if (item<float>(wide[0][2]) > 0.5F) y = y + 1;
    if (item<double>(permute(x, {1, 0})[1][2]) > 0) y = -y;
    if (item<bool>(any(greater(x, 2)))) y = y * 0.5;
    s.last = item<float>(x[2][3]) + item<float>(whole[0]);
    return y;
  };
  auto const all = [](int i) {
    std::vector<std::int64_t> numbers{i, i % 3};
    return std::tuple{sample(i), tensor::from(numbers, {2}),
                      tensor::rand({2, 3}, static_cast<std::uint64_t>(i) + 5, i % 2 ? dtype::f64 : dtype::f32)};
  };
  CHECK(compare(f, m, 60, all) <= 32);
}

TEST_CASE("a loop that ends by a tensor's value: a graph for each number of turns") {
  small_model m;
  std::vector<bool> met(11);
  auto const turns = [](tensor x) {
    int i = 0;
    while (i < 10 && sum(x * x).item<float>() > 1) x = x * 0.5, ++i;
    return static_cast<std::size_t>(i);
  };
  auto const inputs = [](int i) { return std::tuple{sample(i) * (0.05 * (i % 40 + 1) * (i % 40 + 1))}; };
  for (int i = 0; i < 60; ++i) met[turns(std::get<0>(inputs(i)))] = true;
  auto const count = static_cast<std::size_t>(std::ranges::count(met, true));
  CHECK(count > 3);
  CHECK(compare(
            [](small_model& s, tensor x) {
              int i = 0;
              while (i < 10 && item<float>(sum(x * x)) > 1.0F) x = x * 0.5, ++i;
              s.n += i;
              return x;
            },
            m, 60, inputs) == count);
}

TEST_CASE("gradients with a read in the middle: loss scaling, skipped steps, clipping, each bit-equal") {
  small_model m;
  auto const scaled = [](small_model& s, tensor const& x) {
    tensor const loss = mean(tanh(matmul(x, s.w)));
    auto const g = grad(loss * s.scale, {s.w})[0];
    ++s.n;
    if (!isfinite(item<float>(sum(g)))) {
      s.scale /= 2, s.n = 0, ++s.skipped;
      return loss;
    }
    assign(s.w, s.w - g * (0.1 / s.scale));
    if (s.n % 20 == 0) s.scale *= 2;
    return loss;
  };
  auto const overflowing = [](int i) {
    tensor x = sample(i);
    if (i == 7 || i == 40 || i == 41) x = x * std::numeric_limits<float>::infinity();
    return std::tuple{x};
  };
  CHECK(compare(scaled, m, 100, overflowing) == 3);
  CHECK(m.skipped.plain() == 3);

  small_model clipped;
  CHECK(compare(
            [](small_model& s, tensor const& x) {
              tensor const loss = mean(matmul(x, s.w) * matmul(x, s.w));
              if (isnan(item<float>(loss))) throw std::runtime_error("no number");  // between forward and backward
              auto const g = grad(loss, {s.w})[0];
              auto const norm = neap::sqrt(item<double>(sum(g * g)));
              auto const factor = norm > 0.5 ? 0.5 / norm : sym<double>(1.0);
              assign(s.w, s.w - g * factor);
              s.last = norm;
              return loss;
            },
            clipped, 30, one_sample) <= 2);
}

TEST_CASE("a path of several graphs under a memory limit computes the same bits in one arena") {
  auto m = neap::testing::new_deep(), plain = neap::testing::new_deep();
  auto step = compile(&neap::testing::in_stages,
                      plan_with(default_moves, memory_limit::of_original(0.7), time_budget{std::chrono::seconds(20)}));
  for (int i = 0; i < 8; ++i) {
    tensor const x = tensor::randn({512, 32}, static_cast<std::uint64_t>(i)) * (i % 3 == 2 ? 0.001 : 1.0);
    CHECK(step(m, x).values<float>() == neap::testing::in_stages(plain, x).values<float>());
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 2);
}

namespace {
std::string printed;
int calls_of_clock = 0;
}  // namespace

TEST_CASE("effects run in the order of the program, with the values of their moment, once a call") {
  small_model m, plain;
  auto const f = [](small_model& s, tensor const& x) {
    ++s.n;
    effect([](int n) { printed += "begin " + std::to_string(n) + "\n"; }, s.n);
    tensor const y = matmul(x, s.w);
    if (s.n % 10 == 0)
      effect([](tensor const& t, char const* name) { printed += name + std::to_string(t.item<float>()) + "\n"; },
             mean(y), "mean ");
    effect([](tensor const& w) { printed += std::to_string(w.values<float>()[3]) + "\n"; }, s.w);
    assign(s.w, s.w * 0.9);
    effect([](tensor const& w) { printed += std::to_string(w.values<float>()[3]) + "\n"; }, s.w);
    effect([](float loss) { printed += "end " + std::to_string(loss) + "\n"; }, item<float>(sum(y)));
    return y;
  };
  auto step = compile(f);
  for (int i = 0; i < 50; ++i) {
    printed.clear();
    auto const got = step(m, sample(i)).values<float>();
    auto const mine = std::exchange(printed, {});
    CHECK(got == f(plain, sample(i)).values<float>());
    CHECK(mine == printed);
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 2);
}

TEST_CASE("an effect that throws leaves the state as eager execution does, and what was done is not repeated") {
  small_model m, plain;
  auto const f = [](small_model& s, tensor const& x) {
    ++s.n;
    assign(s.w, s.w + 1);
    effect([](int n) { printed += std::to_string(n); }, s.n);
    effect(
        [](int n) {
          if (n % 4 == 3) throw std::out_of_range("third");
          printed += "!";
        },
        s.n);
    assign(s.w, s.w * 0.5);
    ++s.skipped;
    return x * s.n;
  };
  auto step = compile(f);
  for (int i = 0; i < 12; ++i) {
    printed.clear();
    bool threw = false, expected = false;
    try {
      (void)step(m, sample(i));
    } catch (std::out_of_range const& e) { threw = std::string(e.what()) == "third"; }
    auto const mine = std::exchange(printed, {});
    try {
      (void)f(plain, sample(i));
    } catch (std::out_of_range const&) { expected = true; }
    CHECK(threw == expected);
    CHECK(mine == printed);
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 1);
}

TEST_CASE(
    "external functions are called once in each call, in order, and their results decide where they are used to") {
  small_model m, plain;
  auto const f = [](small_model& s, tensor const& x) {
    auto const before = external([] { return ++calls_of_clock; });
    tensor const y = matmul(x, s.w) * before;
    effect([](float v) { printed += std::to_string(v); }, item<float>(sum(y)));
    auto const seen = external([](float v) { return static_cast<int>(printed.size()) + static_cast<int>(v); },
                               item<float>(mean(y)));  // after the effect
    s.last = seen;
    if (before % 3 == 0) {
      auto const again = external([] { return ++calls_of_clock * 0.5; });
      return y + again;
    }
    return y - seen;
  };
  auto step = compile(f);
  for (int i = 0; i < 30; ++i) {
    printed.clear(), calls_of_clock = i;
    auto const got = step(m, sample(i)).values<float>();
    auto const mine = std::exchange(printed, {});
    int const calls = std::exchange(calls_of_clock, i);
    CHECK(got == f(plain, sample(i)).values<float>());
    CHECK(mine == printed);
    CHECK(calls == calls_of_clock);
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 2);
}

TEST_CASE("external tensors: data that the host fetches, of changing type, written in place afterwards") {
  small_model m;
  auto const f = [](small_model& s, tensor const& x) {
    ++s.n;
    tensor const batch = external(
        [](int n) {
          return tensor::randn({n % 3 == 0 ? 2 : 3, 4}, static_cast<std::uint64_t>(n));
        },
        s.n);
    assign(batch, batch * 2);
    tensor const y = sum(matmul(batch, s.w), {0});
    if (item<float>(sum(y)) > 0) assign(batch, batch + 1);
    return std::pair{x + y, batch};
  };
  CHECK(compare(f, m, 30, one_sample) == 4);

  // Ranks and lengths that a sum of them would mix up.
  state<int> n{0};
  auto const shapes = [](state<int>& k, tensor const& x) {
    ++k;
    tensor const t = external([](int i) { return i % 2 == 0 ? tensor::ones({7}) : tensor::ones({2, 5}); }, k);
    return std::pair{x, t * 2};
  };
  CHECK(compare(shapes, n, 4, one_sample) == 2);
}

TEST_CASE("an exception of an external function, and paths that are found after it") {
  small_model m, plain;
  auto const f = [](small_model& s, tensor const& x) {
    ++s.n;
    assign(s.w, s.w * 0.5);
    auto const tick = external(
        [](int n) {
          ++calls_of_clock;
          if (n % 5 == 4) throw std::runtime_error("no data");
          return n % 3;
        },
        s.n);
    assign(s.w, s.w + tick);
    if (tick == 1) return x * 2;
    if (item<float>(sum(x)) > 0) return x + 1;
    return x;
  };
  auto step = compile(f);
  for (int i = 0; i < 40; ++i) {
    calls_of_clock = 0;
    std::string got, expected;
    auto const call = [&](auto const& g, small_model& s, std::string& to) {
      try {
        tensor y = g(s, sample(i));
        to = content_of(y);
      } catch (std::runtime_error const& e) { to = e.what(); }
    };
    call([&](small_model& s, tensor const& x) { return step(s, x); }, m, got);
    int const calls = std::exchange(calls_of_clock, 0);
    call(f, plain, expected);
    CHECK(got == expected);
    CHECK(calls == calls_of_clock);
    CHECK(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() == 3);
}

TEST_CASE("host generators: draws anew in each call, a branch for each answer, no read of a tensor") {
  struct dropped {
    tracked_generator random{7};
    std::vector<layer_like> layers = std::vector<layer_like>(2);
  } m;
  CHECK(compare(
            [](dropped& d, tensor x) {
              for (auto& l : d.layers)
                if (d.random.uniform() < 0.5) x = x + tanh(matmul(x, l.w));
              return x;
            },
            m, 60, one_sample) == 4);
  dropped shifted;
  CHECK(compare(
            [](dropped& d, tensor const& x) {
              return x * d.random.uniform(0.5, 2.0) + d.random.normal() + sym_cast<float>(d.random.below(10));
            },
            shifted, 20, one_sample) == 1);
  // Plain eager draws: in range, and not all alike.
  tracked_generator g(3);
  double low = 1, high = 0, total = 0;
  std::vector<int> counts(5);
  for (int i = 0; i < 2000; ++i) {
    double const u = g.uniform().plain();
    low = std::min(low, u), high = std::max(high, u);
    total += g.normal().plain();
    ++counts[static_cast<std::size_t>(g.below(5).plain())];
  }
  CHECK(low >= 0);
  CHECK(low < 0.01);
  CHECK(high < 1);
  CHECK(high > 0.99);
  CHECK(std::abs(total / 2000) < 0.1);
  for (int const n : counts) CHECK(std::abs(n - 400) < 100);
}

TEST_CASE("cond and loop: one graph for all answers, gradients included") {
  struct blocks {
    std::vector<layer_like> layers = std::vector<layer_like>(3);
    state<int> n{0};
  };
  blocks by_read, by_cond;
  auto const policy = [](int i) {
    std::vector<float> bits;
    for (int k = 0; k < 3; ++k) bits.push_back(static_cast<float>(i >> k & 1));
    return std::tuple{sample(i), tensor::from(bits, {3})};
  };
  CHECK(compare(
            [](blocks& b, tensor x, tensor const& keep) {
              for (std::size_t k = 0; k < 3; ++k)
                if (item<float>(keep[k]) != 0.0F) x = x + tanh(matmul(x, b.layers[k].w));
              return x;
            },
            by_read, 24, policy) == 8);
  CHECK(compare(
            [](blocks& b, tensor x, tensor const& keep) {
              for (std::size_t k = 0; k < 3; ++k)
                x = cond(
                    keep[k], [&] { return x + tanh(matmul(x, b.layers[k].w)); }, [&] { return x; });
              auto const g = grad(mean(x), {b.layers[0].w})[0];
              assign(b.layers[0].w, b.layers[0].w - g);
              return x;
            },
            by_cond, 24, policy) == 1);
  CHECK(compare(
            [](blocks& b, tensor const& x, tensor const&) {
              ++b.n;
              auto const even = b.n % 2 == 0;
              auto const [y, k] = cond(
                  even,
                  [&] {
                    return std::pair{x * 2, sym<int>(b.n)};
                  },
                  [&] {
                    return std::pair{x + 1, b.n * 3};
                  });
              return y * k;
            },
            by_cond, 10, policy) == 1);

  struct recurrent {
    parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(5, 0)};
  } r;
  auto const padded = [](int i) { return std::tuple{sample(i, 8), sym<int>(4 + 2 * (i % 3))}; };
  CHECK(compare(
            [](recurrent& m, tensor const& x, sym<int> const& length) {
              tensor const h = tensor::zeros({1, 4});
              return loop(
                  length, [&](std::int64_t t, tensor const& now) { return tanh(matmul(now, m.w) + x[t]); }, h);
            },
            r, 30, padded) == 3);
  CHECK(compare(
            [](recurrent& m, tensor const& x, sym<int> const& length) {
              tensor const h = tensor::zeros({1, 4});
              tensor const last = loop(
                  length, x.size(0), [&](std::int64_t t, tensor const& now) { return tanh(matmul(now, m.w) + x[t]); },
                  h);
              assign(m.w, m.w - grad(sum(last), {m.w})[0] * 0.1);
              return last;
            },
            r, 30, padded) == 1);
}

TEST_CASE("what cond, effects and reads cannot be is refused with its line") {
  small_model m;
  auto writes = compile([](small_model& s, tensor const& x) {
    return cond(
        mean(x) > 0, [&] { return ++s.n, x; }, [&] { return -x; });
  });
  CHECK(message_of([&] { writes(m, sample(1)); }).find("host.cpp:") == 0);
  auto assigns = compile([](small_model& s, tensor const& x) {
    return cond(
        mean(x) > 0, [&] { return assign(s.w, s.w * 2), x; }, [&] { return -x; });
  });
  CHECK(message_of([&] { assigns(m, sample(1)); }).find("memory that was there before") != std::string::npos);
  auto unlike = compile([](small_model&, tensor const& x) {
    return cond(
        mean(x) > 0, [&] { return x; }, [&] { return sum(x); });
  });
  CHECK(message_of([&] { unlike(m, sample(1)); }).find("host.cpp:") == 0);
  auto address = compile([](small_model&, tensor const& x) {
    tensor const y = x * 2;
    return *y.data<float>() > 0 ? x : y;
  });
  CHECK(message_of([&] { address(m, sample(1)); }).find("host.cpp:") == 0);
  auto many = compile([](small_model&, tensor const& x) { return x.values<float>().size() > 3 ? x : -x; });
  CHECK(message_of([&] { many(m, sample(1, 100)); }).find("neap::effect") != std::string::npos);
  CHECK(writes.graphs() + assigns.graphs() + unlike.graphs() + address.graphs() + many.graphs() == 0);
  CHECK(m.n.plain() == 0);
}

TEST_CASE("errors in what the host is handed name the line of its effect") {
  struct model {
    state<int> n{0};
  } m;
  auto const line = std::source_location::current().line() + 2;
  auto step = compile([](model&, tensor const& x) {
    effect([](tensor const&, int) {}, tensor(), 3);
    return x;
  });
  CHECK(message_of([&] { (void)step(m, sample(1)); }).find("host.cpp:" + std::to_string(line)) == 0);
  auto external_line = std::source_location::current().line() + 1;
  auto shapes = compile([](model&, tensor const& x) { return external([] { return 2; }) > 1 ? x : -x; });
  CHECK(message_of([&] { shapes.prepare(m, sample(1)); }).find("host.cpp:" + std::to_string(external_line)) == 0);
}
