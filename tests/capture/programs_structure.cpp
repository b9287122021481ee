// Programs whose path hangs on structure, names, scopes and numbers of their models, each beside plain eager execution, with
// its number of graphs.
#include <neap/capture/sym_functions.hpp>
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct layer {
  parameter w{{4, 4}, initialiser::normal(0, 0.5).with_seed(5, 0)};
  state<int> calls{0};
  std::string activation = "tanh";
  tensor operator()(tensor const& x) {
    ++calls;
    tensor const y = matmul(x, w);
    if (activation == "tanh") return tanh(y);
    return activation == "relu" ? relu(y) : y;
  }
};
struct counter {
  state<int> n{0};
};
enum class phase : std::uint8_t { warm_up, training, finished };

}  // namespace

TEST_CASE("layers in a map, visited by iterators; each has its activation by name") {
  struct named {
    std::map<std::string, layer> layers;
    state<int> n{0};
  } m;
  m.layers["a"], m.layers["b"].activation = "relu", m.layers["c"].activation = "none";
  auto const f = [](named& s, tensor x) {
    ++s.n;
    for (auto it = s.layers.begin(); it != s.layers.end(); ++it)
      if (it->first != "b" || s.n % 2 == 0) x = x + it->second(x);
    return x;
  };
  CHECK(compare(f, m, 20, one_sample) == 2);
  auto step = compile(f);
  named plain = m;
  for (int i = 0; i < 10; ++i) {
    m.layers["a"].activation = plain.layers["a"].activation = i % 4 < 2 ? "tanh" : "relu";
    CHECK(step(m, sample(i)).values<float>() == f(plain, sample(i)).values<float>());
  }
  CHECK(step.graphs() == 4);
}

TEST_CASE("an enum as state runs through its phases") {
  struct phased {
    layer l;
    state<phase> now{phase::warm_up};
    state<int> n{0};
  } m;
  CHECK(compare(
            [](phased& s, tensor const& x) {
              ++s.n;
              if (s.now == phase::warm_up) {
                if (s.n >= 5) s.now = phase::training;
                return x * (s.n / 5.0);
              }
              if (s.now == phase::training) {
                if (s.n == 12) s.now = phase::finished;
                return s.l(x);
              }
              return x;
            },
            m, 20, one_sample) == 5);
}

TEST_CASE("scopes: no gradients, evaluation, a guard object that sets a flag and takes it back") {
  struct flagged {
    layer l;
    state<bool> training{true};
    state<int> n{0};
  } m;
  struct evaluating {
    state<bool>& flag;
    sym<bool> before;
    explicit evaluating(state<bool>& f) : flag(f), before(f) { flag = false; }
    evaluating(evaluating const&) = delete;
    evaluating& operator=(evaluating const&) = delete;
    ~evaluating() { flag = before; }
  };
  CHECK(compare(
            [](flagged& s, tensor const& x) {
              ++s.n;
              tensor y = x;
              if (s.n % 3 == 0) {
                evaluating const scope(s.training);
                no_gradient const none;
                y = s.training ? y * 2 : s.l(y);
              }
              {
                evaluation const scope;
                y = y + dropout(y, 0.5);
              }
              tensor const loss = mean(s.l(y));
              assign(s.l.w, s.l.w - grad(loss, {s.l.w})[0]);
              return s.training ? loss : loss * 0;
            },
            m, 12, one_sample) == 2);
  // The mode around the call is part of the path.
  auto step = compile([](layer& l, tensor const& x) { return l(dropout(x, 0)); });
  layer l;
  for (int i = 0; i < 6; ++i) {
    if (i % 2) {
      evaluation const scope;
      (void)step(l, sample(i));
    } else {
      (void)step(l, sample(i));
    }
  }
  CHECK(step.graphs() == 2);
}

TEST_CASE("variants of layers, optional biases, tables of function pointers") {
  struct scaling {
    state<float> by{0.5F};
  };
  struct mixed {
    std::vector<std::variant<layer, scaling>> parts;
    std::optional<parameter> bias{parameter({4}, initialiser::constant(1))};
    state<int> n{0};
  } m;
  m.parts.emplace_back(layer{}), m.parts.emplace_back(scaling{}), m.parts.emplace_back(layer{});
  auto const f = [](mixed& s, tensor x) {
    ++s.n;
    for (auto& p : s.parts)
      x = std::visit(
          [&](auto& now) {
            if constexpr (std::is_same_v<std::decay_t<decltype(now)>, layer>) return now(x);
            else return now.by *= 0.99F, x * now.by;
          },
          p);
    static constexpr std::array<tensor (*)(tensor const&), 2> table{[](tensor const& t) { return relu(t); },
                                                                    [](tensor const& t) { return t * t; }};
    x = table[static_cast<std::size_t>((s.n % 2).value())](x);
    return s.bias ? x + *s.bias : x;
  };
  CHECK(compare(f, m, 20, one_sample) == 2);
  auto step = compile(f);
  for (int i = 0; i < 8; ++i) {
    if (i == 4) m.bias.reset();
    mixed plain = m;
    CHECK(step(m, sample(i)).values<float>() == f(plain, sample(i)).values<float>());
  }
  CHECK(step.graphs() == 4);
}

TEST_CASE("algorithms of the standard library over lists of tensors, ragged lists, results of many parts") {
  counter m;
  CHECK(compare(
            [](counter& c, std::vector<std::vector<tensor>> const& rows) {
              ++c.n;
              std::vector<tensor> sums;
              for (auto const& r : rows) sums.push_back(std::accumulate(r.begin(), r.end(), tensor::zeros({3, 4})));
              std::reverse(sums.begin(), sums.end());
              std::array<tensor, 2> ends{sums.front(), sums.back() * c.n};
              return std::tuple{ends, sums.size(), std::pair{std::string("rows"), sym<int>(c.n)}};
            },
            m, 12,
            [](int i) {
              std::vector<std::vector<tensor>> rows;
              for (int k = 0; k < 2 + i % 2; ++k) rows.emplace_back(static_cast<std::size_t>(k), sample(i + k));
              return std::tuple{rows};
            }) == 2);
}

TEST_CASE("a ring of buffers at a changing place, swapped buffers, the same module twice") {
  struct ring {
    std::vector<buffer> last;
    state<int> at{0};
    tensor a = tensor::ones({3, 4}), b = tensor::zeros({3, 4});
    layer shared;
  } m;
  for (int i = 0; i < 3; ++i) m.last.emplace_back(shape{3, 4});
  CHECK(compare(
            [](ring& r, tensor const& x) {
              assign(r.last[static_cast<std::size_t>(r.at.value())], x);
              r.at = (r.at + 1) % 3;
              std::swap(r.a, r.b);
              r.a = r.shared(r.shared(x)) + r.b;
              tensor total = r.last[0];
              for (std::size_t i = 1; i < 3; ++i) total = total + r.last[i];
              return total * r.a;
            },
            m, 15, one_sample) == 5);
  // Three places; and before them two calls that find tensors in a and b which no call has computed.
  CHECK(m.shared.calls.plain() == 30);
}

TEST_CASE("arguments by value may be changed, those by reference are; a copy of a model is its own") {
  struct pair {
    layer l;
    state<int> n{0};
  } m;
  CHECK(compare(
            [](pair& p, tensor x, sym<double> rate, std::vector<tensor> list) {
              x += 1;
              list[0] = x;
              rate = rate * 2;
              list.push_back(p.l(x) * rate);
              ++p.n;
              return list;
            },
            m, 10,
            [](int i) {
              return std::tuple{sample(i), sym<double>(0.1 * i), std::vector<tensor>{sample(i + 1)}};
            }) == 1);
}

TEST_CASE("wrapping and converting arithmetic of states is the program's") {
  struct numbers {
    state<std::uint8_t> small{250};
    state<std::int16_t> wide{32760};
    state<std::uint32_t> hash{1};
    state<float> real{0.1F};
    state<char> letter{'a'};
  } m;
  CHECK(compare(
            [](numbers& s, tensor const& x) {
              s.small += 3;
              s.wide = s.wide + 5;
              s.hash = s.hash * 2654435761U;
              s.real = s.real * 1.1;
              ++s.letter;
              return x * s.small + s.wide * s.real + sym_cast<float>(s.hash % 1000U) + s.letter;
            },
            m, 40, one_sample) == 1);
  CHECK(compare(
            [](numbers& s, tensor const& x) {
              s.small += 1;
              return s.small < 4 ? x * 2 : s.hash / 7 % 2 == 1 ? x : -x;
            },
            m, 20, one_sample) <= 3);
}

namespace {
struct swish_like : op::unary<swish_like> {
  static constexpr std::string_view name = "swish_like";
  double beta = 1;
  explicit swish_like(double b = 1) : beta(b) {}
  static constexpr auto attributes() { return std::array{field<&swish_like::beta>("beta")}; }
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x * math::sigmoid(T(beta) * x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const s = math::sigmoid(T(beta) * x);
    return s + T(beta) * x * s * (T(1) - s);
  }
};
struct doubled {
  static constexpr std::string_view name = "doubled";
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < c.in(0).rank(); ++k) c.same(0, k, 0, k);
  }
};
template <class Backend>
void run(Backend&, doubled const&, kernel_arguments const& a) {
  for (std::int64_t i = 0; i < a.in[0].count(); ++i) a.out[0].as<float>()[i] = 2 * a.in[0].as<float const>()[i];
}
}  // namespace

#if !defined(NEAP_COMPILES_FOR_DEVICE)  // their kernels are the host's
TEST_CASE("operators of the program are captured, with gradients, attributes and plans") {
  struct own {
    layer l;
    state<int> n{0};
  } m;
  auto const f = [](own& s, tensor const& x) {
    ++s.n;
    tensor const y = apply(swish_like{s.n % 2 == 0 ? 1.0 : 2.0}, {matmul(x, s.l.w)});
    assign(s.l.w, s.l.w - grad(mean(y), {s.l.w})[0]);
    return apply(doubled{}, {y});
  };
  CHECK(compare(f, m, 10, one_sample) == 2);
}
#endif

TEST_CASE("the library's step with its optimizers, schedules and options in a compiled function") {
  struct trained {
    nn::linear up{4, 8}, down{8, 3};
    tensor operator()(tensor const& x) const { return down(dropout(neap::tanh(up(x)), 0.2)); }
  };
  struct training {
    trained model;
    training_state of;
    state<int> n{0};
    state<double> last{0.0};
  };
  auto const fresh = [] {
    training t;
    initialise(t.model, 3);
    return t;
  };
  auto const batch = [](int i) {
    std::vector<std::int64_t> labels;
    for (int k = 0; k < 5; ++k) labels.push_back((i + k) % 3);
    return std::pair{tensor::randn({5, 4}, static_cast<std::uint64_t>(i) + 1), tensor::from(labels, {5})};
  };
  auto const check = [&](auto const& f) {
    auto step = compile(f);
    training a = fresh(), b = fresh();
    for (int i = 0; i < 12; ++i) {
      auto const [x, y] = batch(i);
      CAPTURE(i);
      CAPTURE(step.why_missed());
      CHECK(step(a, x, y).template values<float>() == f(b, x, y).template values<float>());
      CHECK(content_of(a) == content_of(b));
    }
    CHECK(a.of.counter().template item<std::int64_t>() == 12);
    return step.graphs();
  };
  CHECK(check([](training& t, tensor const& x, tensor const& y) {
          ++t.n;
          return tensor(eager_step(t.model, std::pair{x, y}, cross_entropy{},
                                   adamw{.rate = scheduled::cosine(0.1, 0.01, 10).warm_up(3)}, t.of));
        }) == 1);
  CHECK(check([](training& t, tensor const& x, tensor const& y) {
          tensor const loss = eager_step(t.model, std::pair{x, y}, cross_entropy{},
                                         momentum{.rate = [](std::int64_t n) { return 0.1 / static_cast<double>(n); }},
                                         t.of, {.clip_norm = 0.5, .loss_scale = 8}, {.seed = 5});
          t.last = item<double>(loss);
          if (t.last > 1.0) ++t.n;
          return loss;
        }) <= 2);
}
