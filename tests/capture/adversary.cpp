// Programs that would make a careless capture silently wrong: each beside plain eager execution, or refused with its line.
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct counters {
  state<int> n{0};
  std::vector<state<int>> many{state<int>(3), state<int>(4)};
  std::optional<state<int>> maybe{state<int>(9)};
};

}  // namespace

TEST_CASE("states constructed in a call: locals, copies, emplaced and reallocated ones") {
  counters a, b, c, d, e;
  CHECK(compare(
            [](counters& m, tensor const& x) {
              state<int> copy = m.n;  // the function's own
              copy += 2;
              state<int> const again = copy;
              std::swap(m.many[0], m.many[1]);
              m.n += 1;
              return x * again + x * m.many[0];
            },
            a, 6, one_sample) == 1);
  compare(
      [](counters& m, tensor const& x) {
        m.n += 1;
        m.maybe.emplace(5);  // equal to what it was in some calls
        tensor const y = x * *m.maybe;
        *m.maybe += m.n % 2;
        return y;
      },
      b, 8, one_sample);
  compare(
      [](counters& m, tensor const& x) {
        m.many = std::vector<state<int>>{m.n, state<int>(7)};
        m.n += 1;
        return x * m.many[0] + m.many[1];
      },
      c, 6, one_sample);
  compare(
      [](counters& m, tensor const& x) {
        m.many.erase(m.many.begin());
        m.many.push_back(m.n);
        m.n += 1;
        return x * m.many[0] + m.many[1];
      },
      d, 6, one_sample);
  auto by_value = compile([](counters m, tensor const& x) { return x * (m.n + m.many[1]); });
  for (int i = 0; i < 4; ++i) {
    e.n = i;
    CHECK(by_value(e, sample(i)).values<float>() == (sample(i) * sym<int>(i + 4)).values<float>());
  }
}

TEST_CASE("lists of syms by value, reassigned, grown, and after an exception") {
  auto by_value = compile([](tensor const& x, std::vector<sym<double>> all) { return x * all[0] + all[1]; });
  for (int i = 0; i < 4; ++i)
    CHECK(by_value(sample(i), std::vector<sym<double>>{0.5 * i, 2.0}).values<float>() ==
          (sample(i) * sym<double>(0.5 * i) + sym<double>(2.0)).values<float>());
  struct holder {
    std::vector<sym<double>> all{1.0, 2.0};
    state<int> n{0};
  };
  holder a, b;
  CHECK(compare(
            [](holder& m, tensor const& x) {
              ++m.n;
              m.all = std::vector<sym<double>>{m.all[1], m.all[0] + m.n};
              return x * m.all[0];
            },
            a, 6, one_sample) == 1);
  compare(
      [](holder& m, tensor const& x) {
        m.all.push_back(m.all.back() * 2);
        return x * m.all.back();
      },
      b, 4, one_sample);
  auto step = compile([](holder& m, tensor const& x) {
    m.all = std::vector<sym<double>>{m.all[1] + 1, m.all[0]};
    if (m.n > 1) throw std::runtime_error("enough");
    ++m.n;
    return x * m.all[0];
  });
  holder c;
  (void)step(c, sample(0)), (void)step(c, sample(1));
  CHECK_THROWS_AS(step(c, sample(2)), std::runtime_error);
  CHECK(c.all[0].plain() == 4);  // {1, 2}, {3, 1}, {2, 3}, {4, 2}
  CHECK(c.all[1].plain() == 2);
  c.n = 0;
  CHECK(step(c, sample(2)).values<float>() == (sample(2) * sym<double>(3)).values<float>());
}

TEST_CASE("elements of a tensor from numbers, read or written after operators") {
  counters m;
  CHECK(compare(
            [](counters&, tensor const& x) {
              tensor const t = tensor::zeros({});
              assign(t, sum(x));
              return t.item<float>() > 0 ? x : -x;
            },
            m, 4, one_sample) == 4);  // one for each number
  compare(
      [](counters&, tensor const& x) {
        tensor const t = tensor::zeros({4});
        tensor const y = x + t;
        t.data<float>()[0] = 5;
        return y * (x + t);
      },
      m, 4, one_sample);
  CHECK(compare(
            [](counters&, tensor const& x) {
              tensor const t = tensor::full({4}, 3);
              tensor const y = x + t;
              return t.values<float>()[1] > 2 ? y : x;
            },
            m, 4, one_sample) == 1);
}

TEST_CASE("weights frozen in a call, and given other memory") {
  struct layer {
    parameter w{{4, 4}, initialiser::normal(0, 1).with_seed(3, 0)},
        v{{4, 4}, initialiser::normal(0, 1).with_seed(4, 0)};
  };
  auto freeze = compile([](layer& m, tensor const& x) {
    m.w.requires_gradient(false);
    return matmul(x, m.w);
  });
  for (int i = 0; i < 3; ++i) {
    layer fresh;
    (void)freeze(fresh, sample(i));
    CHECK(fresh.w.is_frozen());
  }
  auto replace = compile([](layer& m, tensor const& x) {
    m.w = std::move(m.v);
    return matmul(x, m.w);
  });
  for (int i = 0; i < 3; ++i) {
    layer now, plain;
    auto const before = now.w.storage();
    CHECK(replace(now, sample(i)).values<float>() == matmul(sample(i), plain.v).values<float>());
    CHECK(now.v.is_empty());
    CHECK(before->replacements() == 1);
  }
}

TEST_CASE("a gradient through the history of an argument is refused, with the place") {
  parameter const w({4, 4}, initialiser::normal(0, 1).with_seed(3, 0));
  auto step = compile([](parameter const& of, tensor const& h) { return grad(sum(h), {of})[0]; });
  for (tensor const& h : {w * w, w + w}) CHECK(message_of([&] { step(w, h); }).find("adversary.cpp:") == 0);
  auto forward = compile([](tensor const& h) { return h * 2; });
  for (tensor const& h : {w * w, w + w}) CHECK(forward(h).values<float>() == (h * 2).values<float>());
  CHECK(forward.graphs() == 1);
}

TEST_CASE("one variable as two arguments, and two that share memory") {
  auto const f = [](tensor& a, tensor& b) {
    a = a * 2;
    return b + 1;
  };
  auto step = compile(f);
  for (int i = 0; i < 6; ++i) {
    tensor a = sample(i), b = a, c = sample(i), d = c;
    auto const got = i % 2 ? step(a, a) : step(a, b);
    auto const expected = i % 2 ? f(c, c) : f(c, d);
    CHECK(got.values<float>() == expected.values<float>());
    CHECK(content_of(a) == content_of(c));
    CHECK(content_of(b) == content_of(d));
  }
}

TEST_CASE("one empty container as two arguments") {
  auto const f = [](std::vector<tensor>& a, std::vector<tensor>& b, tensor const& x) {
    a.push_back(x);
    bool const one = !b.empty();
    a.pop_back();
    return one ? x : -x;
  };
  auto step = compile(f);
  std::vector<tensor> a, b;
  for (int i = 0; i < 6; ++i) {
    auto& second = i % 2 ? a : b;
    CHECK(step(a, second, sample(i)).values<float>() == f(a, second, sample(i)).values<float>());
  }
  CHECK(step.graphs() == 2);
  auto const g = [](std::optional<tensor>& s, std::optional<tensor>& t, tensor const& x) {
    s = x;
    tensor const y = t ? x * 2 : x;
    s.reset();
    return y;
  };
  auto optional = compile(g);
  std::optional<tensor> s, t;
  for (int i = 0; i < 6; ++i) {
    auto& second = i % 2 ? s : t;
    CHECK(optional(s, second, sample(i)).values<float>() == g(s, second, sample(i)).values<float>());
  }
}

TEST_CASE("the address of elements taken before an operator writes them") {
  auto const f = [](tensor const& x) {
    tensor const t = tensor::from<float>({1, 2, 3, 4}, {4});
    float const* const p = t.data<float>();
    assign(t, mean(x, {0}));
    return x * static_cast<double>(p[1]);
  };
  auto step = compile(f);
  for (int i = 0; i < 4; ++i) CHECK(step(sample(i)).values<float>() == f(sample(i)).values<float>());
}
