// Arguments that a call has met before are compared, not walked: whatever has changed between calls is seen.
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::sample;

namespace {

struct options_of_part {
  int factor = 2;
  bool negate = false;
  std::string name = "first";
};
struct part {
  state<int> n{0};
  options_of_part plain;
};
struct whole {
  std::vector<state<int>> cells = std::vector<state<int>>(20);
  std::array<state<bool>, 3> flags;
  std::vector<part> parts = std::vector<part>(2);
  std::map<std::string, part> by_name;
  std::unique_ptr<part> owned = std::make_unique<part>();
  std::optional<state<int>> maybe;
  tensor kept = tensor::ones({4});
};
/// Everything decides, in one number.
tensor decide(whole& w, tensor const& x) {
  std::uint32_t sum = 0;  // it may wrap
  for (auto& c : w.cells) sum = 3 * sum + (c > 5 ? 1u : 0u);
  for (auto& f : w.flags) sum = 2 * sum + (f ? 1u : 0u);
  auto const of = [&](part& p) {
    sum += static_cast<std::uint32_t>((p.n % 3 == 0 ? 100 : 1) * p.plain.factor * (p.plain.negate ? -1 : 1) +
                                      static_cast<int>(p.plain.name.size()));
  };
  for (auto& p : w.parts) of(p);
  for (auto& [name, p] : w.by_name) sum += static_cast<int>(name.size()), of(p);
  of(*w.owned);
  if (w.maybe) sum += *w.maybe > 2 ? 7 : 8;
  ++w.parts[0].n;
  return x * static_cast<double>(sum % 1009) + w.kept;
}
struct checked {
  compiled_function<tensor (*)(whole&, tensor const&)> step;
  tensor x = sample(1);
  void operator()(whole& w) {
    auto const before = w.parts[0].n.plain();
    auto const got = step(w, x);
    REQUIRE(w.parts[0].n.plain() == before + 1);
    w.parts[0].n = before;
    auto const expected = decide(w, x);
    REQUIRE(got.values<float>() == expected.values<float>());
  }
};

}  // namespace

TEST_CASE("tracked and plain values that change between calls are seen") {
  checked check{compile(&decide, {.graphs = 10000})};
  whole w;
  w.by_name["a"], w.by_name["bc"];
  std::vector<std::function<void()>> const changes{
      [] {},
      [&] { w.cells[7] = 9; },
      [&] { w.cells[7] = 1; },
      [&] { w.flags[1] = true; },
      [&] { w.parts[1].n += 1; },
      [&] { w.parts[1].plain.factor = 5; },
      [&] { w.parts[0].plain.negate = !w.parts[0].plain.negate; },
      [&] { w.by_name.at("bc").plain.name += "x"; },
      [&] { w.by_name["a"].n = 4; },
      [&] { w.owned->n += 2; },
      [&] { w.owned->plain.factor -= 1; },
      [&] { w.maybe = 3; },
      [&] { *w.maybe = 1; },
      [&] { w.maybe.reset(); },
      [&] { w.kept = tensor::full({4}, 3); },
      [&] {
        w.kept = tensor::ones({3, 4});
      },
      [&] { w.cells.pop_back(); },
      [&] { w.cells.push_back(8); },
      [&] { w.parts.emplace_back().n = 2; },
      [&] { w.by_name["new"].plain.factor = 11; },
      [&] { w.by_name.erase("a"); },
      [&] { w.owned = std::make_unique<part>(); },
      [&] { w.owned->n = 1; },
      [&] { std::swap(w.parts[0], w.parts[1]); },
      [&] { w.cells.assign(20, state<int>(6)); },
      [&] { w.cells.reserve(w.cells.capacity() + 1); },
      [&] { std::vector<state<int>>(w.cells).swap(w.cells); },
  };
  for (std::size_t i = 0; i < 3 * changes.size(); ++i) {
    CAPTURE(i);
    changes[i % changes.size()]();
    check(w), check(w), check(w);
  }
  CHECK(check.step.graphs() < 120);
}

TEST_CASE("objects that are swapped, moved, copied and made again at one address") {
  checked check{compile(&decide, {.graphs = 10000})};
  whole a, b;
  a.by_name["k"].n = 1, b.by_name["k"].n = 3, b.by_name["k"].plain.factor = 4;
  check(a), check(b), check(a), check(b);
  std::swap(a.by_name, b.by_name);  // equal keys, other nodes: nothing tracked was written
  check(a), check(b);
  std::swap(a.owned, b.owned);
  a.owned->n = 8;
  check(a), check(b), check(a);
  std::swap(a.cells, b.cells);
  a.cells[3] = 99;
  check(a), check(b);
  whole moved = std::move(a);
  check(moved), check(b);
  a = std::move(moved);
  check(a);
  for (int i = 0; i < 6; ++i) {
    std::optional<whole> here;  // the same address in each round
    here.emplace();
    here->cells[static_cast<std::size_t>(i)] = 6 + i;
    here->parts[1].plain.factor = i;
    check(*here), check(*here);
    here.emplace();
    check(*here);
  }
}

TEST_CASE("what another compiled function writes is seen, and what a call writes itself") {
  whole w;
  auto count = compile([](whole& m, tensor const& x) {
    m.cells[0] += 1;
    return m.cells[0] % 2 == 0 ? x : -x;
  });
  auto read = compile([](whole& m, tensor const& x) { return m.cells[0] % 2 == 0 ? x * 2 : x * 3; });
  tensor const x = sample(2);
  for (int i = 1; i < 20; ++i) {
    CHECK(count(w, x).values<float>() == (i % 2 == 0 ? x : -x).values<float>());
    for (int twice = 0; twice < 2; ++twice)
      CHECK(read(w, x).values<float>() == (i % 2 == 0 ? x * 2 : x * 3).values<float>());
    CHECK(w.cells[0].plain() == i);
  }
  CHECK(count.graphs() == 2);
  CHECK(read.graphs() == 2);
}

TEST_CASE("tensors of arguments: others of the type, shared storages, shared variables, frozen weights") {
  struct weights {
    parameter w{{4}, initialiser::constant(2)};
    tensor slot = tensor::ones({4});
  };
  auto const f = [](weights& m, tensor& a, tensor& b) {
    assign(a, a + m.w);
    m.slot = b * 2;
    return a + b + m.slot;
  };
  auto step = compile(f);
  weights m, plain;
  tensor fixed = sample(1, 1), fixed_plain = sample(1, 1);
  for (int i = 0; i < 24; ++i) {
    CAPTURE(i);
    tensor a = sample(i, 1), b = sample(i + 50, 1), c = sample(i, 1), d = sample(i + 50, 1);
    switch (i % 6) {
      case 0: REQUIRE(content_of(a) == content_of(c)); break;
      case 1: b = a, d = c; break;                // one storage
      case 2: a = m.slot, c = plain.slot; break;  // a member's
      case 3: b = fixed, d = fixed_plain; break;
      case 4: m.w.requires_gradient(i % 4 == 0), plain.w.requires_gradient(i % 4 == 0); break;
      default: break;
    }
    bool const same = i % 6 == 5;
    auto got = same ? step(m, a, a) : step(m, a, b);
    auto expected = same ? f(plain, c, c) : f(plain, c, d);
    CHECK(content_of(got) == content_of(expected));
    CHECK(content_of(a) == content_of(c));
    CHECK(content_of(m) == content_of(plain));
    if (i % 6 == 0) {
      auto again = step(m, m.slot, b), expected_again = f(plain, plain.slot, d);
      CHECK(content_of(again) == content_of(expected_again));
      CHECK(content_of(m) == content_of(plain));
    }
  }
  CHECK(step.graphs() >= 4);
  CHECK(step.graphs() <= 16);
}

TEST_CASE("a call within a call, and many kinds of arguments in turn") {
  auto step = compile([](int k, std::vector<tensor> const& all) { return all.back() * static_cast<double>(k); },
                      {.graphs = 2000});
  for (int round = 0; round < 3; ++round)
    for (int k = 0; k < 300; ++k) {
      std::vector<tensor> const all(static_cast<std::size_t>(1 + k % 3), sample(k, 1));
      REQUIRE(step(k, all).values<float>() == (all.back() * static_cast<double>(k)).values<float>());
    }
  CHECK(step.graphs() == 300);
}

TEST_CASE("threads that share a compiled function, a model that is handed from one to another") {
  struct counted {
    state<int> n{0};
    state<bool> odd{false};
  };
  auto const f = [](counted& m, tensor const& x) {
    ++m.n;
    m.odd = m.n % 2 == 1;
    return m.odd ? x * m.n : x + m.n;
  };
  auto step = compile(f, {.threads = 1});
  counted handed, plain;
  std::vector<std::string> wrong;
  for (int round = 0; round < 6; ++round) {
    std::thread([&] {
      for (int i = 0; i < 5; ++i) {
        auto got = step(handed, sample(i)), expected = f(plain, sample(i));
        if (content_of(got) != content_of(expected)) wrong.push_back("result");
      }
      handed.n += round, plain.n += round;
    }).join();
    auto got = step(handed, sample(1)), expected = f(plain, sample(1));
    CHECK(content_of(got) == content_of(expected));
  }
  CHECK(wrong.empty());
  CHECK(content_of(handed) == content_of(plain));

  std::vector<std::thread> threads;
  std::vector<counted> models(4);
  for (auto& m : models)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) (void)step(m, sample(i, 1 + i % 3));
    });
  for (auto& t : threads) t.join();
  for (auto& m : models) CHECK(m.n.plain() == 100);
  CHECK(step.graphs() == 6);
}

TEST_CASE("a path without a plan runs eagerly, and says so") {
  int planned = 0;
  auto step = compile(
      [](tensor const& x) {
        assign(x, x + 1);
        return x * 2;
      },
      [&](graph const& g) -> plan {
        if (++planned == 1) throw_error({"compile: it does not fit"});
        return plan_in_order(g);
      });
  for (int i = 0; i < 4; ++i) {
    tensor const x = sample(i), before = contiguous(x) * 1.0;
    CHECK(step(x).values<float>() == ((before + 1) * 2).values<float>());
    CHECK(x.values<float>() == (before + 1).values<float>());
    CHECK(step.why_missed().find("does not fit") != std::string::npos);
  }
  CHECK(planned == 1);
  CHECK(step(sample(1, 5)).shape() == shape{5, 4});
  CHECK(planned == 2);
}

TEST_CASE("where no more graphs may be kept, the one that was used least recently goes, if asked for") {
  auto const f = [](int k, tensor const& x) { return x * static_cast<double>(k); };
  auto step = compile(f, {.graphs = 3, .full = when_full::drop_oldest, .threads = 1});
  auto const call = [&](int k) {
    CHECK(step(k, sample(k)).values<float>() == f(k, sample(k)).values<float>());
    return step.why_missed();
  };
  for (int k = 0; k < 3; ++k) call(k);
  CHECK(step.graphs() == 3);
  call(0), call(1);
  call(3);  // in place of 2
  CHECK(step.graphs() == 3);
  std::string const before = step.why_missed();
  call(0), call(1), call(3);
  CHECK(step.why_missed() == before);
  for (int k = 0; k < 40; ++k) call(k % 7);
  CHECK(step.graphs() == 3);

  auto eager = compile(f, {.graphs = 3, .threads = 1});
  for (int k = 0; k < 12; ++k) CHECK(eager(k % 6, sample(k)).values<float>() == f(k % 6, sample(k)).values<float>());
  CHECK(eager.graphs() == 3);
  CHECK(eager.why_missed().find("limit of 3 graphs") != std::string::npos);
}
