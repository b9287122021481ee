// What programs do around compiled functions: objects change places, a base stands for a derived object,
// functions of the host call the compiled function, graphs are limited and dropped, the compiled function is moved.
#include <neap/execute/compile.hpp>

#include "../support/files.hpp"
#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/model/weights_file.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::sample;

namespace {

struct layer {
  layer() = default;
  layer(layer const&) = delete;
  layer& operator=(layer const&) = delete;
  virtual ~layer() = default;
  virtual tensor operator()(tensor const& x) const { return x; }
  virtual void neap_parts(parts&) {}
};
struct scaling final : layer {
  std::vector<state<float>> by;
  tracked_vector<tensor> added;
  explicit scaling(float b) : by(2, state<float>(b)) { added.push_back(tensor::full({4}, b)); }
  tensor operator()(tensor const& x) const override { return x * by[0] + by[1] + added.front(); }
  void neap_parts(parts& list) override { list(by, added); }
};
struct sequential final : layer {
  std::vector<std::unique_ptr<layer>> children;
  std::unique_ptr<scaling> first = std::make_unique<scaling>(3.0F);
  tensor operator()(tensor const& x) const override {
    tensor y = (*first)(x);
    for (auto const& c : children) y = (*c)(y);
    return y;
  }
  void neap_parts(parts& list) override { list(children, *first); }
  scaling& child(std::size_t k) { return static_cast<scaling&>(*children[k]); }
};
using of_layer = tensor (*)(layer const&, tensor const&);
tensor apply_layer(layer const& l, tensor const& x) { return l(x); }

struct model {
  state<int> n{0};
  tracked_map<std::string, float> by_name;
  tensor part;
};
using of_model = tensor (*)(model&, tensor const&);

}  // namespace

TEST_CASE("layers, states and tracked vectors that change places without a write; a reference to a base") {
  sequential s;
  for (float const b : {2.0F, 5.0F, 7.0F}) s.children.push_back(std::make_unique<scaling>(b));
  auto step = compile(of_layer(&apply_layer));
  scaling const one(4.0F);
  std::function<void()> const changes[] = {
      [] {},
      [&] { std::swap(s.children[0], s.children[1]); },
      [&] { std::swap(s.child(0).by, s.child(2).by); },
      [&] {
        auto* const p = static_cast<scaling*>(s.children[2].release());
        s.children[2].reset(s.first.release());
        s.first.reset(p);
      },
      [] {},
      [&] { std::swap(s.child(1).by[0], s.child(2).by[1]); },
  };
  for (auto const& change : changes)
    for (int i = 0; i < 2; ++i) {
      change();
      auto const x = sample(i);
      CHECK(step(s, x).values<float>() == s(x).values<float>());
      CHECK(step(one, x).values<float>() == one(x).values<float>());
      CHECK(step(scaling(6), x).values<float>() == scaling(6)(x).values<float>());
      CHECK(step(layer(), x).values<float>() == x.values<float>());
    }
  CHECK(step.graphs() == 3);
}

TEST_CASE("members that neap_parts does not list decide where it lists the whole object") {
  struct partial final : layer {
    state<float> by{2};
    int factor = 1;
    tensor operator()(tensor const& x) const override { return x * by * static_cast<double>(factor); }
    void neap_parts(parts& list) override { list.whole(*this, by); }
  };
  partial p;
  auto step = compile(of_layer(&apply_layer));
  for (int i = 0; i < 6; ++i) {
    p.factor = i / 2, p.by = 0.5F * static_cast<float>(i);
    CHECK(step(p, sample(i)).values<float>() == p(sample(i)).values<float>());
  }
  CHECK(step.graphs() == 3);
}

namespace {

std::string seen;
void line(int n) { seen += "line " + std::to_string(n) + ";"; }
void report(int n) {
  effect(line, n);
  seen +=
      std::to_string(external([](int k) { return k * 3; }, n).value() + item<int>(tensor::full({}, n)).value()) + ";";
}
compiled_function<of_model>* own = nullptr;
model* other = nullptr;

}  // namespace

TEST_CASE("host functions within host functions, and by their names") {
  of_model const f = [](model& m, tensor const& x) {
    ++m.n;
    effect(report, m.n);
    return x * m.n *
           external(
               +[](int n) {
                 effect(line, -n);
                 return n + 1;
               },
               m.n);
  };
  auto step = compile(f);
  model mine, plain;
  for (int i = 0; i < 5; ++i) {
    seen.clear();
    auto const got = step(mine, sample(i)).values<float>();
    auto const text = std::exchange(seen, {});
    CHECK(got == f(plain, sample(i)).values<float>());
    CHECK(text == seen);
  }
  CHECK(step.graphs() == 1);
}

TEST_CASE("host functions that call their compiled function, here or on another thread, and ask for its graphs") {
  of_model const f = [](model& m, tensor const& x) {
    ++m.n;
    effect(
        [](int n) {
          if (!own || n >= 100) return;
          seen += std::to_string(own->graphs() > 100) + own->why_missed().substr(0, 0);
          auto const call = [] { seen += std::to_string((*own)(*other, tensor::ones({2})).values<float>()[1]); };
          if (n % 2) call();
          else std::thread(call).join();
        },
        m.n);
    tensor const y = x * m.n;
    if (item<float>(sum(y)) > 1e6F) return -y;
    return y * external(
                   [](int n) {
                     if (own && n < 100) seen += std::to_string((*own)(*other, tensor::ones({3})).values<float>()[1]);
                     return n;
                   },
                   m.n);
  };
  for (bool const nested : {false, true}) {
    auto step = compile(f);
    model mine, plain, others;
    others.n = 1000;
    seen.clear();
    other = &others, own = nested ? &step : nullptr;
    int calls = 0;
    for (int i = 0; i < 6; ++i) {
      auto const got = step(mine, sample(i)).values<float>();
      own = nullptr;
      CHECK(got == f(plain, sample(i)).values<float>());
      own = nested ? &step : nullptr;
      calls += 2;
    }
    CHECK(step.graphs() == 1);
    CHECK(others.n.plain() == 1000 + (nested ? calls : 0));
    own = nullptr;
  }
}

TEST_CASE("the function itself waits for a thread that calls it") {
  of_model const f = [](model& m, tensor const& x) {
    ++m.n;
    if (own && m.n < 100) std::thread([] { (void)(*own)(*other, tensor::ones({2})); }).join();
    return x * m.n;
  };
  auto step = compile(f);
  model mine, others;
  others.n = 1000;
  other = &others, own = &step;
  for (int i = 0; i < 4; ++i)
    CHECK(step(mine, sample(i)).values<float>() == (sample(i) * sym<int>(i + 1)).values<float>());
  own = nullptr;
}

TEST_CASE("limits hold with verify, and graphs that are dropped leave the others right") {
  of_model const by_value = [](model&, tensor const& x) { return x * static_cast<double>(sum(x).item<float>()); };
  auto verified = compile(by_value, {.graphs = 4, .verify = 1});
  for (int i = 0; i < 20; ++i) {
    model m;
    CHECK(verified(m, sample(i)).values<float>() == by_value(m, sample(i)).values<float>());
  }
  CHECK(verified.graphs() == 4);
  CHECK(verified.why_missed().find("limit of 4 graphs") != std::string::npos);

  of_model const decides = [](model& m, tensor const& x) {
    tensor y = x;
    if (m.n == 1) y = x * 2;
    if (m.n == 2) y = x * 3;
    if (m.n == 3) effect(line, m.n);
    if (item<float>(sum(y)) > 1e6F) y = -y;
    return y;
  };
  auto dropping = compile(decides, {.graphs = 2, .full = when_full::drop_oldest});
  int const ns[] = {0, 1, 0, 2, 0, 1, 2, 3, 0, 3, 1, 3}, rows[] = {3, 3, 5, 3, 3, 3, 3, 4, 4, 3, 3, 3};
  for (std::size_t i = 0; i < 12; ++i) {
    model m;
    m.n = ns[i];
    auto const x = sample(static_cast<int>(i), rows[i]);
    CHECK(dropping(m, x).values<float>() == decides(m, x).values<float>());
    CHECK(dropping.graphs() <= 2);
  }
  // Keys that are new in each call.
  of_model const keyed = [](model& m, tensor const& x) {
    auto const key = std::to_string(static_cast<int>(x.size(0)));
    m.by_name[key] = 2.0F * static_cast<float>(x.size(0));
    if (m.by_name.size() > 2) m.by_name.clear();
    for (auto const& [name, v] : m.by_name) effect(line, v);
    return x * m.n;
  };
  auto rolling = compile(keyed, {.graphs = 3, .full = when_full::drop_oldest});
  model mine, plain;
  for (int i = 1; i < 40; ++i) {
    CHECK(rolling(mine, sample(i, i)).values<float>() == keyed(plain, sample(i, i)).values<float>());
    CHECK(content_of(mine) == content_of(plain));
  }
}

TEST_CASE("a compiled function is moved, with its graphs, and the one that it was moved from says so") {
  struct trainer_like {
    compiled_function<of_model> step;
    model m;
  };
  auto step = compile(of_model([](model& m, tensor const& x) { return x * ++m.n; }));
  model m;
  (void)step(m, sample(0));
  trainer_like t{std::move(step), {}};
  auto last = std::move(t);
  (void)last.step(last.m, sample(0));
  CHECK(last.step.graphs() == 1);
  CHECK(message_of([&] { step(m, sample(0)); }).find("was moved") != std::string::npos);
}

TEST_CASE("messages name the state that decides, and the call that gave a tensor") {
  auto step = compile(of_model([](model& m, tensor const& x) { return m.n > 2 ? x : -x; }));
  model m;
  for (int i = 0; i < 4; ++i) m.n = i, (void)step(m, sample(i));
  CHECK(step.why_missed() == "the question about argument 1.n got another answer");
  parameter const w({4}, initialiser::constant(2));
  auto inner = compile([](parameter const& by, tensor const& x) { return sum(x * by); });
  for (int i = 0; i < 2; ++i)
    CHECK(message_of([&] { (void)grad(inner(w, sample(i)) * 2, {w}); }).find("a compiled function gave") !=
          std::string::npos);
}

TEST_CASE("powers and other functions of tracked numbers have the bits of the graph's") {
  struct scalars {
    state<float> a{0};
    state<double> b{0};
  };
  auto const f = [](scalars& s, tensor const&) {
    return std::tuple{neap::pow(s.a, 2.0F), neap::exp(sym<float>(0.3F)) * s.a + 0.1F * s.a, s.b * 0.1 + s.b * s.b};
  };
  auto step = compile(f);
  scalars s;
  for (int i = 0; i < 500; ++i) {
    s.a = 0.37F * static_cast<float>(i) + 0.001F, s.b = 0.7 * i;
    auto const [p, q, r] = step(s, sample(0));
    auto const [u, v, w] = f(s, sample(0));
    REQUIRE(p.plain() == u.plain());
    REQUIRE(q.plain() == v.plain());
    REQUIRE(r.plain() == w.plain());
  }
}

namespace {

struct listed {
  std::uint8_t first = 1;
  double second = 2;
  friend auto neap_fields(listed& self) { return std::tie(self.first, self.second); }
};
struct constructed {
  constructed() : first(1), second(2) {}
  std::uint8_t first;
  double second;
  friend auto neap_fields(constructed& self) { return std::tie(self.first, self.second); }
};
struct shown_base {
  int factor = 2;
  virtual ~shown_base() = default;
  friend auto neap_fields(shown_base& self) { return std::tie(self.factor); }
};
struct hiding final : shown_base {
  int hidden = 3;
};
/// The same members with other bytes between them in each call.
template <class T, class F>
void call_with_bytes(F& step, int calls) {
  alignas(T) unsigned char room[sizeof(T)];
  for (int i = 0; i < calls; ++i) {
    std::memset(room, i, sizeof room);
    auto* const now = new (room) T;
    CHECK(step(*now, sample(i)).template values<float>() == (sample(i) * 2).template values<float>());
    now->~T();
  }
}

}  // namespace

TEST_CASE("padding of a class that lists all of its members is none, else the message says what differs") {
  auto all = compile([](listed const& l, tensor const& x) { return x * l.second; });
  call_with_bytes<listed>(all, 5);
  CHECK(all.graphs() == 1);
  auto some = compile([](constructed const& l, tensor const& x) { return x * l.second; });
  call_with_bytes<constructed>(some, 3);
  if (some.graphs() > 1) CHECK(some.why_missed().find("neap_fields does not list") != std::string::npos);
  auto base = compile([](shown_base const& b, tensor const& x) { return x * static_cast<double>(b.factor); });
  CHECK(base(shown_base(), sample(0)).values<float>() == (sample(0) * 2).values<float>());
  CHECK(message_of([&] { (void)base(hiding(), sample(0)); }).find("is given as its base") != std::string::npos);
}

TEST_CASE("a saved model keeps its states, and a file without them leaves them as they are") {
  struct saved {
    parameter w{{2}, initialiser::constant(1)};
    state<int> n{3};
    state<double> rate{0.5};
    state<std::uint8_t> small{7};
    state<bool> yes{true};
    std::vector<state<std::size_t>> sizes{state<std::size_t>(9)};
  };
  struct weights_alone {
    parameter w{{2}, initialiser::constant(4)};
  };
  neap::testing::scratch const files;
  auto const whole = files / "states.safetensors", bare = files / "bare.safetensors";
  saved from, to;
  from.n = -8, from.rate = 0.125, from.small = std::uint8_t{200}, from.yes = false,
  from.sizes[0] = std::size_t{1} << 40;
  auto step = compile([](saved& m, tensor const& x) { return x * (m.n + m.rate); });
  (void)step(to, sample(0));
  save(from, whole).value();
  load(to, whole).value();
  CHECK(content_of(to) == content_of(from));
  CHECK(step(to, sample(0)).values<float>() == (sample(0) * sym<double>(-7.875)).values<float>());
  weights_alone w;
  save(w, bare).value();
  load(to, bare).value();
  CHECK(to.n.plain() == -8);
  CHECK(to.w.values<float>()[0] == 4);
}
