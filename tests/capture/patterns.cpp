// Programs of the kinds that break other captures, each beside plain eager execution, with the number of graphs that its
// guards allow.
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <variant>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct counter {
  state<int> n{0};
};
struct flags {
  state<bool> training{true};
  state<float> p{0.5F};
};
struct average {
  buffer mean{{4}};
  tensor last = tensor::zeros({3, 4});  // whether there is one, and its type, are guards
  state<int> n{0};
};
struct plain_fields {
  parameter w{{4, 4}, initialiser::normal(0, 1).with_seed(3, 0)};
  int width = 2;
  bool bias = true;
  int seen = 0;
  std::string reduction = "mean";
};
enum class mode : std::uint8_t { mean, sum, none };
struct layer {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(5, 0)};
  state<int> calls{0};
  tensor operator()(tensor const& x) {
    ++calls;
    return matmul(x, w);
  }
};
struct tree {
  layer here;
  std::unique_ptr<tree> left, right;
  tensor operator()(tensor const& x) {
    tensor y = here(x);
    if (left) y = y + (*left)(x);
    if (right) y = y * (*right)(x);
    return y;
  }
};

}  // namespace

TEST_CASE("a counter as a factor is one graph, a period two") {
  counter m;
  CHECK(compare(
            [](counter& c, tensor const& x) {
              ++c.n;
              return x * c.n;
            },
            m, 50, one_sample) == 1);
  CHECK(m.n.plain() == 50);
  CHECK(compare(
            [](counter& c, tensor const& x) {
              ++c.n;
              return c.n % 10 == 0 ? relu(x) : x + c.n;
            },
            m, 50, one_sample) == 2);
}

TEST_CASE("a flag decides, a rate is a factor") {
  flags m, plain;
  auto step = compile([](flags& s, tensor const& x) { return s.training ? x * s.p : relu(x); });
  for (int i = 0; i < 30; ++i) {
    auto const set = [&](flags& s) { s.p = 0.1F * static_cast<float>(i), s.training = i / 5 % 2 == 0; };
    set(m), set(plain);
    tensor const x = sample(i);
    CHECK(step(m, x).values<float>() == (plain.training ? x * plain.p : relu(x)).values<float>());
  }
  CHECK(step.graphs() == 2);
}

TEST_CASE("buffers written, tensors bound anew, a cumulative average") {
  average m;
  CHECK(compare(
            [](average& s, tensor const& x) {
              ++s.n;
              assign(s.mean, s.mean * 0.9 + mean(x, {0}) * 0.1);
              s.last = x * (1.0 / s.n) + s.mean;
              return s.last;
            },
            m, 40, one_sample) == 1);
}

TEST_CASE("lists and optionals as arguments ask for their structure") {
  counter m;
  CHECK(compare(
            [](counter&, std::vector<tensor> const& all) {
              tensor sum = all.front();
              for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
              return sum;
            },
            m, 30,
            [](int i) { return std::tuple{std::vector<tensor>(static_cast<std::size_t>(1 + i % 3), sample(i))}; }) ==
        3);
  CHECK(compare([](counter&, tensor const& x, std::optional<tensor> const& mask) { return mask ? x * *mask : x + 1; },
                m, 20,
                [](int i) {
                  return std::tuple{sample(i), i % 2 ? std::optional<tensor>(sample(i + 1)) : std::nullopt};
                }) == 2);
  CHECK(compare(
            [](counter&, std::variant<tensor, std::vector<tensor>> const& x) {
              return x.index() == 0 ? relu(std::get<0>(x)) : std::get<1>(x)[0] + std::get<1>(x)[1];
            },
            m, 20,
            [](int i) {
              std::variant<tensor, std::vector<tensor>> x = sample(i);
              if (i % 2) x = std::vector{sample(i), sample(i + 1)};
              return std::tuple{x};
            }) == 2);
}

TEST_CASE("names, enums and plain fields decide by value") {
  plain_fields m;
  auto const f = [](plain_fields& s, tensor const& x) {
    tensor const y = s.bias ? matmul(x, s.w) + 1 : matmul(x, s.w);
    if (s.reduction == "mean") return mean(y) * s.width;
    return s.reduction == "sum" ? sum(y) : y;
  };
  auto step = compile(f);
  for (int i = 0; i < 30; ++i) {
    m.reduction = i % 3 == 0 ? "mean" : i % 3 == 1 ? "sum" : "none";
    tensor const x = sample(i);
    CHECK(step(m, x).values<float>() == f(m, x).values<float>());
  }
  CHECK(step.graphs() == 3);
  m.width = 7, m.reduction = "mean";
  tensor const x = sample(1);
  CHECK(step(m, x).values<float>() == f(m, x).values<float>());
  CHECK(step.graphs() == 4);
  CHECK(step.why_missed().find("width") != std::string::npos);

  CHECK(compare(
            [](counter&, tensor const& t, mode how) {
              return how == mode::mean ? mean(t) : how == mode::sum ? sum(t) : t;
            },
            *std::make_unique<counter>(), 30,
            [](int i) {
              return std::tuple{sample(i), static_cast<mode>(i % 3)};
            }) == 3);
}

TEST_CASE("a plain field that is written is right in each call, and the advice names it") {
  plain_fields m, plain;
  auto const f = [](plain_fields& s, tensor const& x) {
    s.seen += 1;
    return x * 2;
  };
  auto step = compile(f);
  for (int i = 0; i < 10; ++i) {
    tensor const x = sample(i);
    CHECK(step(m, x).values<float>() == f(plain, x).values<float>());
    CHECK(m.seen == plain.seen);
  }
  CHECK(step.why_missed().find("seen") != std::string::npos);
  m.seen = 3;  // a path that is known
  CHECK(step(m, sample(3)).values<float>() == (sample(3) * 2).values<float>());
  CHECK(m.seen == 4);
  CHECK(step.graphs() == 10);
}

TEST_CASE("plain numbers as arguments run into the limit, a sym does not") {
  counter m;
#if defined(NEAP_COMPILES_FOR_DEVICE)
  auto plain = compile([](counter&, tensor const& x, double rate) { return x * rate; });
#else
  auto plain = compile([](counter&, tensor const& x, double rate) { return x * rate; }, {.graphs = 4});
#endif
  auto symbolic = compile([](counter&, tensor const& x, sym<double> rate) { return x * rate; });
  for (int i = 0; i < 20; ++i) {
    double const rate = 1.0 / (i + 1);
    CHECK(plain(m, sample(i), rate).values<float>() == (sample(i) * rate).values<float>());
    CHECK(symbolic(m, sample(i), rate).values<float>() == (sample(i) * sym<double>(rate)).values<float>());
  }
#if !defined(NEAP_COMPILES_FOR_DEVICE)
  CHECK(plain.graphs() == 4);
  CHECK(plain.why_missed().find("neap::sym") != std::string::npos);
#endif
  CHECK(symbolic.graphs() == 1);
}

TEST_CASE("loops over extents, recursion on state and on structure") {
  counter m;
  CHECK(compare(
            [](counter&, tensor const& x) {
              tensor h = tensor::zeros({4});
              for (std::int64_t t = 0; t < x.size(0); ++t) h = tanh(h + x[t]);
              return h;
            },
            m, 30, [](int i) { return std::tuple{sample(i, 4 + 2 * (i % 3))}; }) == 3);

  struct recursive {
    static tensor run(tensor const& x, sym<int> const& depth) {
      return depth > 0 ? relu(run(x, depth - 1) + 1) : x * 2;
    }
  };
  CHECK(compare(
            [](counter& c, tensor const& x) {
              c.n = c.n % 3 + 1;
              return recursive::run(x, c.n);
            },
            m, 20, one_sample) == 3);

  tree small, large;
  small.left = std::make_unique<tree>();
  large.left = std::make_unique<tree>(), large.right = std::make_unique<tree>();
  auto step = compile([](tree& t, tensor const& x) { return t(x); });
  for (int i = 0; i < 20; ++i) {
    auto& now = i % 2 ? small : large;
    tensor const x = sample(i);
    auto const got = step(now, x).values<float>();
    CHECK(got == now(x).values<float>());
  }
  CHECK(step.graphs() == 2);
  CHECK(small.left->here.calls.plain() == 20);
}

TEST_CASE("arguments changed in place, the same tensor twice, tied weights") {
  counter m;
  auto const add = [](counter&, tensor const& a, tensor const& b) {
    assign(a, a + b);
    return a * b;
  };
  CHECK(compare(
            [](counter&, tensor const& x) {
              assign(x, x + 1);
              return 0;
            },
            m, 20, one_sample) == 1);
  CHECK(compare(add, m, 20, [](int i) {
          tensor const x = sample(i);
          return std::tuple{x, i % 2 ? x : sample(i + 7)};
        }) == 2);
  CHECK(compare(
            [](counter&, tensor& x) {
              x += 1;
              return x * 2;
            },
            m, 5, one_sample) == 1);

  struct tied {
    parameter a{{4}, initialiser::constant(1)}, b = a.share();
  };
  tied t;
  auto step = compile([](tied& s, tensor const& x) {
    assign(s.a, s.a * 0.5);
    return x * s.b;
  });
  float expected = 1;
  for (int i = 0; i < 20; ++i) {
    expected *= 0.5F;
    tensor const x = sample(i);
    CHECK(step(t, x).values<float>() == (x * tensor::full({4}, expected)).values<float>());
    CHECK(t.a.storage() == t.b.storage());
  }
  CHECK(step.graphs() == 1);
}

TEST_CASE("a result is rebuilt, and an input in it is the input") {
  struct answer {
    tensor y, input, none;
    int number = 0;
    sym<int> count;
  };
  counter m;
  auto step = compile([](counter& c, tensor const& x) {
    ++c.n;
    return answer{x * 2, x, {}, 7, c.n + 1};
  });
  for (int i = 0; i < 20; ++i) {
    tensor const x = sample(i);
    auto const a = step(m, x);
    CHECK(a.y.values<float>() == (x * 2).values<float>());
    CHECK(a.input.node() == x.node());
    CHECK(a.none.is_empty());
    CHECK(a.number == 7);
    CHECK(a.count.plain() == i + 2);
  }
  CHECK(step.graphs() == 1);
}

TEST_CASE("instances share graphs, moved ones too, and one compiled function may call another") {
  auto inner = compile([](layer& l, tensor const& x) { return l(x); });
  auto step = compile([](std::vector<layer>& all, tensor const& x) {
    tensor y = x;
    for (auto& l : all) y = relu(l(y));
    return y;
  });
  std::vector<layer> a(2), b(2);
  neap::initialise(b, 9);
  for (int i = 0; i < 10; ++i) {
    auto& now = i % 2 ? a : b;
    std::vector<layer> plain = now;
    tensor y = sample(i);
    for (auto& l : plain) y = relu(l(y));
    CHECK(step(now, sample(i)).values<float>() == y.values<float>());
    CHECK(content_of(now) == content_of(plain));
    if (i == 5) {
      std::vector<layer> moved = std::move(a);
      a = std::move(moved);
    }
  }
  CHECK(step.graphs() == 1);

  auto outer = compile(fixed([&inner](layer& l, tensor const& x) { return inner(l, x) + 1; }));
  layer l;
  for (int i = 0; i < 5; ++i)
    CHECK(outer(l, sample(i)).values<float>() == (matmul(sample(i), l.w) + 1).values<float>());
  CHECK(outer.graphs() == 1);
  CHECK(inner.graphs() == 0);
  CHECK(l.calls.plain() == 5);
}

TEST_CASE("an exception leaves the state as eager execution does, and is not captured") {
  counter m;
  auto step = compile([](counter& c, tensor const& x) {
    ++c.n;
    if (x.size(0) != 3) throw std::out_of_range("rows");
    return x * c.n;
  });
  (void)step(m, sample(0));
  CHECK_THROWS_AS(step(m, sample(1, 2)), std::out_of_range);
  CHECK(m.n.plain() == 2);
  CHECK(step(m, sample(2)).values<float>() == (sample(2) * sym<int>(3)).values<float>());
  CHECK(step.graphs() == 1 + neap::testing::keeps_exceptions);

#if !defined(NEAP_COMPILES_FOR_DEVICE)  // whose kernels throw nothing
  // A graph that fails in its middle: nothing is committed, and the eager call then throws as it would.
  struct table {
    parameter rows{{5, 4}, initialiser::normal(0, 1).with_seed(1, 0)};
    buffer sum{{4}};
    state<int> n{0};
  } t;
  auto look = compile([](table& s, tensor const& ids) {
    ++s.n;
    assign(s.sum, s.sum + 1);
    return embedding(s.rows, ids);
  });
  auto const ids = [](std::int64_t last) { return tensor::from<std::int64_t>({0, last}, {2}); };
  CHECK(look(t, ids(4)).shape() == shape{2, 4});
  CHECK(look(t, ids(3)).shape() == shape{2, 4});
  CHECK(message_of([&] { look(t, ids(5)); }).find("embedding") != std::string::npos);
  CHECK(t.n.plain() == 3);
  CHECK(t.sum.values<float>()[0] == 3);
  CHECK(look(t, ids(1)).shape() == shape{2, 4});
  CHECK(look.graphs() == 1);

  // The same where all updates follow: nothing is kept for that case.
  auto first = compile([](table& s, tensor const& numbers) {
    ++s.n;
    tensor const rows = embedding(s.rows, numbers);
    assign(s.sum, s.sum + 1);
    assign(s.rows, s.rows * 2);
    return rows;
  });
  table u;
  for (int i = 0; i < 3; ++i) CHECK(first(u, ids(i)).shape() == shape{2, 4});
  auto const before = content_of(u.rows);
  CHECK(message_of([&] { first(u, ids(7)); }).find("embedding") != std::string::npos);
  CHECK(u.n.plain() == 4);
  CHECK(u.sum.values<float>()[0] == 3);
  CHECK(content_of(u.rows) == before);
  CHECK(first(u, ids(2)).shape() == shape{2, 4});
  CHECK(u.sum.values<float>()[0] == 4);
  CHECK(first.graphs() == 1);
#endif
}

namespace {
bool global_flag = false;
tensor global_tensor;
state<int> global_state{0};
}  // namespace

TEST_CASE("what cannot be captured is refused, with the place") {
  counter m;
  global_tensor = sample(9);
  auto foreign = compile([](counter&, tensor const& x) { return x * global_tensor; });
  auto const text = message_of([&] { foreign(m, sample(1)); });
  CHECK(text.find("patterns.cpp:") == 0);
  CHECK(text.find("neither an argument") != std::string::npos);
  auto reads = compile([](counter&, tensor const& x) { return *sum(x).data<float>() > 0 ? x : -x; });
  CHECK(message_of([&] { reads(m, sample(1)); }).find("patterns.cpp:") == 0);
  auto foreign_state = compile([](counter&, tensor const& x) { return x * global_state; });
  CHECK(message_of([&] { foreign_state(m, sample(1)); }).find("no part of its arguments") != std::string::npos);
  auto whole = compile([](layer& l, tensor const& x) {
    layer const other;
    l.w = other.w;
    return matmul(x, l.w);
  });
  layer l;
  (void)l.w.values<float>();
  CHECK(message_of([&] { whole(l, sample(1)); }).find("neap::assign") != std::string::npos);
  auto draws = compile([](counter&, tensor const& x) { return dropout(x, 0.5); });
  CHECK(message_of([&] { draws(m, sample(1)); }).find("random") != std::string::npos);
  CHECK(foreign.graphs() + reads.graphs() + foreign_state.graphs() + whole.graphs() + draws.graphs() == 0);

  // After a refusal the thread computes as before.
  CHECK((sample(1) * global_tensor).shape() == shape{3, 4});
  CHECK(sum(sample(1)).item<float>() != 0);
}

TEST_CASE("a global that decides is found by verify, and by a later capture") {
  auto const f = [](counter& c, tensor const& x) {
    tensor const y = global_flag ? relu(x) : x + 1;
    return c.n > 2 ? y * 2 : y;
  };
  counter m;
  global_flag = false;
  auto checked = compile(f, {.verify = 1});
  (void)checked(m, sample(0));
  (void)checked(m, sample(1));
  global_flag = true;
  auto const text = message_of([&] { checked(m, sample(2)); });
  CHECK(text.find("patterns.cpp:") == 0);
  CHECK(text.find("different paths") != std::string::npos);

  auto const g = [](counter& c, tensor const& x) {
    if (global_flag) return c.n > 5 ? x : -x;
    return c.n > 2 ? x * 2 : x;
  };
  global_flag = false;
  auto second = compile(g);
  (void)second(m, sample(0));
  global_flag = true, m.n = 3;
  CHECK(message_of([&] { second(m, sample(0)); }).find("different paths") != std::string::npos);
  global_flag = false;
}

TEST_CASE("a gradient through a compiled function's result is refused, in the first call as in later ones") {
  layer l;
  auto step = compile([](layer& m, tensor const& x) { return m(x); });
  for (int i = 0; i < 3; ++i)
    CHECK(message_of([&] { (void)grad(sum(step(l, sample(i))), {l.w}); }).find("grad: ") != std::string::npos);
  auto sums = compile([](layer& m, tensor const& x) { return grad(sum(m(x)), {m.w})[0]; });
  for (int i = 0; i < 3; ++i) {
    tensor const x = sample(i);
    CHECK(sums(l, x).values<float>() == grad(sum(matmul(x, l.w)), {l.w})[0].values<float>());
  }
  CHECK(sums.graphs() == 1);
}

#if !defined(NEAP_COMPILES_FOR_DEVICE)  // where they are refused
TEST_CASE("containers that grow are right, though their calls are not kept") {
  struct grown {
    std::vector<tensor> all;
    std::map<std::string, tensor> by_name;
  } m;
  CHECK(compare(
            [](grown& h, tensor const& x) {
              h.all.push_back(x * 2);
              h.by_name["last"] = h.all.back() + 1;
              return h.all.front();
            },
            m, 6, one_sample) == 0);
}
#endif
