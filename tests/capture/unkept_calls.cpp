// Calls for which no graph can stand, in whole or in part: what the function or a thread of it does unseen, refusals and
// exceptions that it catches. Each gives what eager execution gives, and so do the calls after it.
#include <neap/execute/compile.hpp>

#include "../support/message.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>
#include <neap/capture/cond.hpp>
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::message_of;

namespace {

struct model {
  state<int> n{0};
  state<bool> flag{false};
  state<float> scale{1};
  buffer sum{{4}};
  parameter table{{4, 4}, initialiser::normal(0, 1).with_seed(1, 0)};
  tensor slot = tensor::ones({4});
  int plain = 0;
  tracked_vector<tensor> past;
  tracked_map<int, float> by_key;
};
using function = tensor (*)(model&, tensor const&);

tensor const foreign = tensor::full({4}, 3);
state<int> foreign_state{5};
tracked_vector<tensor> foreign_list;
std::string seen;
void note(int n) { seen += std::to_string(n) + ";"; }
int ticks = 0;
int tick() { return ++ticks; }

/// Call i has the batch of call i % 3, and one that is bad where `bad` says so.
struct outcome {
  std::string content, why;
  std::size_t graphs = 0;
};
outcome outcome_of(function f, bool compiled, int calls, int bad = -1) {
  outcome all;
  model m;
  auto step = compile(f);
  for (int i = 0; i < calls; ++i) {
    seen.clear(), ticks = 10 * i;
    if (i == 4) m.flag = false, m.scale = 2.0F;
    auto x = tensor::randn({3, 4}, static_cast<std::uint64_t>(i % 3) + 1);
    if (i % 4 == bad) assign(x, x * 100);
    try {
      auto y = compiled ? step(m, x) : f(m, x);
      all.content += content_of(y);
    } catch (std::exception const& e) { all.content += e.what(); }
    all.content += content_of(m) + content_of(x) + seen + std::to_string(ticks) + "\n";
  }
  all.why = step.why_missed(), all.graphs = step.graphs();
  return all;
}
void check_equal(function f, int bad = -1, std::size_t graphs = static_cast<std::size_t>(-1)) {
  auto const mine = outcome_of(f, true, 9, bad), plain = outcome_of(f, false, 9, bad);
  CAPTURE(mine.why);
  CHECK(mine.content == plain.content);
  if (graphs != static_cast<std::size_t>(-1)) CHECK(mine.graphs == graphs);
}

}  // namespace

TEST_CASE("a refusal that the function catches: the call runs eagerly from its beginning") {
  function const programs[] = {
      [](model& m, tensor const& x) {
        ++m.n;
        tensor y;
        try {
          y = x * foreign;
        } catch (std::exception const&) { y = x - 100; }
        return y + m.n;
      },
      [](model& m, tensor const& x) {  // after all kinds of writes, with host functions before and after
        ++m.n, m.plain += 2;
        assign(m.sum, m.sum + x[0]);
        assign(m.table, m.table * 0.5);
        assign(x[1], x[0]);
        m.past.push_back(x * 2);
        m.by_key[3] = 1.5F * m.n;
        m.slot = m.slot + 1;
        effect(note, m.n);
        auto const t = external(tick);
        tensor y = x;
        try {
          y = x * foreign_state;
        } catch (...) {
          effect(note, -m.n);
          assign(m.sum, m.sum * 3);
          m.scale = 0.0F, m.flag = true, m.plain = -1;
          return y * external(tick);
        }
        effect(note, 7);
        return y * t + external(tick);
      },
      [](model& m, tensor const& x) {  // what is written after it alone
        try {
          return x * foreign + m.n;
        } catch (std::exception const&) {
          m.past.push_back(x), m.by_key[1] = 2.0F;
          assign(m.sum, x[0]);
          return x;
        }
      },
      [](model& m, tensor const& x) {  // tried again and again
        for (int i = 0;; ++i) try {
            ++m.n;
            return x + foreign + i + foreign_list.size();
          } catch (error const&) {}
      },
      [](model& m, tensor const& x) {
        try {
          float const first = x.data<float>()[0];
          return x * static_cast<double>(first) * m.n;
        } catch (std::runtime_error const&) { return x; }
      },
      [](model& m, tensor const& x) {  // thrown on as something else
        try {
          return x * foreign * m.scale;
        } catch (std::exception const&) { throw std::logic_error("other"); }
      },
      [](model& m, tensor const& x) {
        ++m.n;
        try {
          return cond(
              sum(x) > 0, [&] { return ++m.n, x; }, [&] { return x * 2; });
        } catch (...) { return x * 5; }
      },
  };
  for (auto const& f : programs) check_equal(f, -1, 0);
}

TEST_CASE("a refusal that the function does not catch leaves the arguments as they were") {
  model m, plain;
  auto step = compile(function([](model& now, tensor const& x) {
    ++now.n, now.plain = 4;
    assign(now.sum, x[0]);
    now.past.push_back(x);
    return x * foreign;
  }));
  CHECK(message_of([&] { step(m, tensor::ones({3, 4})); }).find("unkept_calls.cpp:") == 0);
  CHECK(content_of(m) == content_of(plain));
}

TEST_CASE("an exception of an operator or a host function that the function catches is no path") {
  check_equal(
      [](model& m, tensor const& x) {
        ++m.n;
        try {
          tensor const row = cast(x[0] * 1, dtype::i64);  // a number beyond the table where x is bad
          return embedding(m.table, minimum(maximum(row, 0), 100)) * m.n;
        } catch (std::exception const&) { return tensor::zeros({4, 4}); }
      },
      0);
  check_equal(
      [](model& m, tensor const& x) {
        ++m.n;
        try {
          effect(
              [](float v) {
                if (v > 30) throw std::domain_error("large");
              },
              item<float>(max(x)));
        } catch (std::domain_error const&) { return x * 0.5; }
        return x * m.n;
      },
      0);
  check_equal(
      [](model& m, tensor const& x) {
        ++m.n;
        float by = 1;
        try {
          by = external([](tensor const& t) { return t.values<float>()[0] > 20 ? throw 1 : 2.0F; }, x * x).value();
        } catch (int) { ++m.n; }
        return x * static_cast<double>(by) + m.n;
      },
      0);
}

TEST_CASE("what other threads of a call use or write of it makes the call eager") {
  function const programs[] = {
      [](model& m, tensor const& x) {
        std::thread([&] { ++m.n; }).join();
        return x * m.n;
      },
      [](model& m, tensor const& x) {
        std::thread([&] { m.flag = true; }).join();
        return x * 2;
      },
      [](model& m, tensor const& x) {
        ++m.n;
        int now = 0;
        std::thread([&] { now = m.n.value(); }).join();
        return x * static_cast<double>(now);
      },
      [](model& m, tensor const& x) {
        std::thread([&] { assign(m.sum, m.sum + 1); }).join();
        return x + m.sum;
      },
      [](model& m, tensor const& x) {
        ++m.n;
        float first = 0;
        std::thread([&] { first = x.values<float>()[0]; }).join();
        return x * static_cast<double>(first);
      },
      [](model& m, tensor const& x) {
        std::thread([&] { m.past.push_back(tensor::ones({2})); }).join();
        return x * m.past.size();
      },
      [](model& m, tensor const& x) {
        ++m.n;
        std::thread([&] { effect(note, 3); }).join();
        return x * m.n;
      },
      [](model& m, tensor const& x) {  // the function's own state
        state<int> turns{0};
        std::thread([&] { turns = 3; }).join();
        return x * turns * ++m.n;
      },
      [](model& m, tensor const& x) {
        tensor const y = x * 2;
        double of = 0;
        std::thread([&] { of = y.data<float>()[1]; }).join();
        return x * of * ++m.n;
      },
      [](model& m, tensor const& x) {
        sym<int> const now = ++m.n * 2;
        int of = 0;
        std::thread([&] { of = now.value() > 4 ? 1 : 2; }).join();
        return x * static_cast<double>(of);
      },
      [](model& m, tensor const& x) {
        sym<int> const now = ++m.n;
        sym<int> of = 0;
        std::thread([&] { of = now + 1; }).join();
        return x * of;
      },
      [](model& m, tensor const& x) {
        std::thread([&] { m.slot = tensor::full({4}, 2); }).join();
        return x * ++m.n;
      },
  };
  for (auto const& f : programs) check_equal(f, -1, 0);
  // Threads with work of their own are of no concern.
  check_equal(
      [](model& m, tensor const& x) {
        std::thread([] { (void)(tensor::ones({3}) * 2).values<float>(); }).join();
        return x * ++m.n;
      },
      -1, 1);
}

namespace {
std::vector<tensor> kept;
tensor kept_last;
}  // namespace

TEST_CASE("tensors that a call keeps elsewhere") {
  function const programs[] = {
      [](model&, tensor const& x) {
        kept.push_back(x * 2);
        return kept.back() + 1;
      },
      [](model& m, tensor const& x) {
        ++m.n;
        tensor y = x * m.n;
        kept.push_back(y);
        return y;
      },
      [](model& m, tensor const& x) {
        m.slot = x[0] * 2;
        kept.push_back(m.slot);
        return x;
      },
      [](model& m, tensor const& x) {
        m.past.push_back(x * 3);
        kept.push_back(m.past.back());
        return x;
      },
      [](model&, tensor const& x) {
        kept.push_back(tensor::full({2}, 4));
        return x;
      },
      [](model&, tensor const& x) {
        tensor const y = x * 2;
        kept.push_back(y.detach());
        return y;
      },
      [](model&, tensor const& x) {
        kept.push_back(x);
        return x + 1;
      },
      [](model&, tensor const& x) {
        kept.push_back(x.detach());
        return x + 1;
      },
      [](model& m, tensor const& x) {
        tensor const y = matmul(x, m.table);
        kept.push_back(y[1]);  // with a history
        return sum(y);
      },
  };
  for (auto const& f : programs) {
    kept.clear();
    check_equal(f, -1, 0);
    REQUIRE(kept.size() == 18);
    for (std::size_t i = 0; i < 9; ++i) CHECK(content_of(kept[i]) == content_of(kept[i + 9]));
  }
  // What stays in arguments and results is seen, also twice.
  check_equal(
      [](model& m, tensor const& x) {
        m.slot = x[0] * 2;
        m.past.push_back(m.slot);
        if (m.past.size() > 2) m.past.clear();
        return m.slot;
      },
      -1, 2);
}

TEST_CASE("tracked values and tensors that the function keeps in statics") {
  model m;
  auto const x = tensor::ones({1});
  // Each call is right, or refused in a line.
  auto const is_honest = [&](auto f) {
    auto step = compile(f);
    for (int i = 1; i <= 4; ++i) {
      try {
        if (step(m, x).template values<float>()[0] != static_cast<float>(i)) return false;
      } catch (error const& e) {
        return i > 1 && std::string_view(e.what()).find("argument") != std::string_view::npos;
      }
    }
    return true;
  };
  CHECK(is_honest([](model&, tensor const& in) {
    static state<int> n{0};
    ++n;
    return in * n;
  }));
  CHECK(is_honest([](model&, tensor const& in) {
    static std::optional<state<int>> n;
    if (!n) n.emplace(0);
    ++*n;
    return in * *n;
  }));
  CHECK(is_honest([](model&, tensor const& in) {
    static tracked_vector<tensor> past;
    past.push_back(in);
    return in * static_cast<double>(past.size().value());
  }));
  CHECK(is_honest([](model&, tensor const& in) {
    static tensor total = tensor::zeros({1});
    total = (total + in).detach();
    return total * 1;
  }));
  // What ends with the call is no matter.
  auto local = compile([](model&, tensor const& in) {
    state<int> const n{1};
    std::vector<state<int>> more(3);
    more[1] = n;
    return in * (more[1] + 1);
  });
  for (int i = 0; i < 3; ++i) CHECK(local(m, x).values<float>()[0] == 2);
  CHECK(local.graphs() == 1);
}

TEST_CASE("other compiled functions in threads and host functions of a call") {
  static auto total = compile([](tensor const& x) { return sum(x); });
  static auto count_up = compile([](model& m) {
    ++m.n;
    return tensor::ones({1}) * 1;
  });
  model other;
  for (int i = 0; i < 3; ++i) (void)total(tensor::ones({4})), (void)count_up(other);
  auto step = compile([](model&, tensor const& x) {
    float sum_of = 0;
    std::thread([&] { sum_of = total(x).item<float>(); }).join();
    return x * static_cast<double>(sum_of);
  });
  auto count = compile([](model& m, tensor const& x) {
    std::thread([&] { (void)count_up(m); }).join();
    return x * m.n;
  });
  model m, c;
  for (int i = 0; i < 4; ++i) {
    auto const n = static_cast<float>(i + 1);
    CHECK(step(m, tensor::full({4}, n)).values<float>()[0] == 4 * n * n);
    CHECK(count(c, tensor::ones({1})).values<float>()[0] == n);
  }
  // A function of the host writes a state of the argument.
  static model* now = nullptr;
  auto host_writes = compile([](model& of, tensor const& x) {
    ++of.n;
    neap::effect([] { now->n = now->n.plain() + 1; });
    return x * of.n;
  });
  model h;
  now = &h;
  for (int i = 0; i < 4; ++i) {
    auto const y = host_writes(h, tensor::ones({1})).values<float>()[0];
    CHECK(h.n.plain() == 2 * (i + 1));
    CHECK(y == 2 * (i + 1));
  }
  // So does a graph of two stages that it runs.
  static auto in_stages = compile([](model& of, tensor const& x) {
    double const most = max(x).item<float>();
    ++of.n;
    return x * most;
  });
  for (int i = 0; i < 3; ++i) (void)in_stages(other, tensor::ones({2}));
  CHECK(in_stages.graphs() == 1);
  auto host_runs = compile([](model& of, tensor const& x) {
    ++of.n;
    neap::effect([] { (void)in_stages(*now, tensor::ones({2})); });
    return x * of.n;
  });
  model r;
  now = &r;
  for (int i = 0; i < 4; ++i) {
    auto const y = host_runs(r, tensor::ones({1})).values<float>()[0];
    CHECK(r.n.plain() == 2 * (i + 1));
    CHECK(y == 2 * (i + 1));
  }
}

TEST_CASE("a value that graphs depend on, of which only the newest stay") {
  compile_options o;
  o.graphs = 4, o.full = when_full::drop_oldest;
  static int runs = 0;
  auto step = compile(
      [](model&, tensor const& x) {
        ++runs;
        return x * static_cast<double>(max(x).item<float>());
      },
      o);
  model m;
  for (int i = 0; i < 8; ++i) (void)step(m, tensor::full({4}, i));
  runs = 0;
  for (int i = 0; i < 20; ++i) CHECK(step(m, tensor::full({4}, 9)).values<float>()[0] == 81);
  CHECK(runs <= 3);
}
