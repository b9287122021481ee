// Tracked containers in compiled functions, beside plain eager execution on a copy: elements and lengths equal after each
// call, with the number of graphs that the questions allow.
#include <neap/execute/compile.hpp>

#include <neap/core/philox.hpp>

#include "../support/message.hpp"
#include "newest_first.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <stdexcept>
#include <string>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::one_sample;
using neap::testing::sample;

namespace {

struct memory {
  tracked_vector<tensor> history;
  tracked_map<std::string, tensor> features;
  tracked_map<std::int64_t, tensor> tables;
  tracked_vector<double> losses;
  tracked_map<std::string, int> counts;
  tracked_optional<tensor> last;
  parameter w{{4}, initialiser::constant(0.5)};
  state<int> n{0};
};

}  // namespace

TEST_CASE("a list that grows is one graph, with its length and its last element as operands") {
  memory a, b, c;
  CHECK(compare(
            [](memory& m, tensor const& x) {
              m.history.push_back(x * 2);
              return x + 1;
            },
            a, 30, one_sample) == 1);
  CHECK(a.history.size().plain() == 30);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              m.history.push_back(x * 2);
              return m.history.back() * m.history.size();
            },
            b, 20, one_sample) == 1);
  CHECK(compare(  // the first call has no element before
            [](memory& m, tensor const& x) {
              tensor y = x;
              if (!m.history.empty()) y = y + m.history.back() * m.history.front();
              m.history.push_back(y);
              return y;
            },
            c, 2, one_sample) == 2);
}

TEST_CASE("a bounded list, with the mean of its elements") {
  memory a, b;
  CHECK(compare(
            [](memory& m, tensor const& x) {
              m.history.push_back(x * m.w);
              if (m.history.size() > 4) m.history.erase(m.history.begin());
              tensor sum = m.history[0];
              for (std::size_t i = 1; i < m.history.size(); ++i) sum = sum + m.history[i];
              return sum / m.history.size();
            },
            a, 30, one_sample) == 5);
  CHECK(a.history.size().plain() == 4);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor sum = x;
              for (auto const& t : m.history) sum = sum + t;
              if (m.history.size() == std::size_t{3}) m.history.pop_back();
              m.history.insert(m.history.begin(), sum);
              return sum;
            },
            b, 20, one_sample) == 4);
}

TEST_CASE("features by name, tables by length, an optional, counts") {
  memory a, b, c, d, e;
  CHECK(compare(
            [](memory& m, tensor const& x) {
              m.features["up"] = x * 2;
              m.features["down"] = x - 1;
              return m.features.at("up") + m.features.at("down");
            },
            a, 20, one_sample) == 2);  // the first call inserts
  CHECK(compare(
            [](memory& m, tensor const& x) {
              auto const n = x.size(0);
              if (!m.tables.contains(n)) m.tables[n] = tensor::full({n, 1}, 0.25) + 1;
              return x * m.tables.at(n);
            },
            b, 15, [](int i) { return std::tuple{sample(i, i % 5 < 2 || i % 5 == 4 ? 4 : 8)}; }) == 4);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor const y = m.last ? x + *m.last : x;
              m.last = y;
              return y;
            },
            c, 10, one_sample) == 2);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              if (!m.counts.contains("calls")) m.counts["calls"] = 0;
              m.counts["calls"] = m.counts.at("calls") + 1;
              m.losses.push_back(0.5 * m.counts.at("calls"));
              return x * m.losses.back() + m.counts.size();
            },
            d, 10, one_sample) == 2);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor sum = x;
              for (auto const& [name, t] : m.features) sum = sum + t * static_cast<double>(name.size());
              m.features["k" + std::to_string((m.n % 3).value())] = sum;
              ++m.n;
              return sum;
            },
            e, 12, one_sample) <= 9);
}

TEST_CASE("which keys a map has decides, whatever numbers or texts they are") {
  memory a, b;
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor sum = x;
              for (auto const& [key, t] : m.tables) sum = sum + t * static_cast<double>(key + 1);
              m.tables[1] = x;
              return sum;
            },
            a, 4, one_sample) == 2);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor sum = x;
              for (auto const& [key, t] : m.features) sum = sum + t * static_cast<double>(key.size() + 1);
              std::string const next = m.n == 0 ? "" : m.n == 1 ? "\x01" : m.n == 2 ? "\x01\x01" : "\x02";
              m.features.clear();
              m.features[next] = x;
              ++m.n;
              return sum;
            },
            b, 6, one_sample) == 5);
}

TEST_CASE("elements written in place, of other types") {
  memory a, b;
  CHECK(compare(
            [](memory& m, tensor const& x) {
              if (m.history.empty()) m.history.push_back(tensor::full({4}, 1) * 1.0);
              assign(m.history.front(), m.history.front() * 0.5 + mean(x, {0}));
              return x + m.history.front();
            },
            a, 12, one_sample) == 2);
  CHECK(compare(
            [](memory& m, tensor const& x) {
              tensor const y = m.history.empty() ? x : x * sum(m.history.back());
              m.history.push_back(y);
              return y;
            },
            b, 12, [](int i) { return std::tuple{sample(i, 1 + i % 2)}; }) <= 5);
}

TEST_CASE("an exception leaves containers as eager execution does; foreign ones are refused") {
  memory m, plain;
  auto const f = [](memory& s, tensor const& x) {
    s.history.push_back(x);
    if (s.history.size() % std::size_t{3} == std::size_t{0}) throw std::length_error("three");
    s.features["last"] = x * 2;
    return x;
  };
  auto step = compile(f);
  for (int i = 0; i < 12; ++i) {
    std::string a, b;
    try {
      (void)step(m, sample(i));
    } catch (std::length_error const& e) { a = e.what(); }
    try {
      (void)f(plain, sample(i));
    } catch (std::length_error const& e) { b = e.what(); }
    CHECK(a == b);
    CHECK(content_of(m) == content_of(plain));
  }
  static tracked_vector<tensor> global;
  global.push_back(sample(1));
  auto foreign = compile([](memory&, tensor const& x) { return x + global.back(); });
  CHECK(message_of([&] { foreign(m, sample(1)); }).find("containers.cpp:") == 0);
  CHECK(message_of([&] { (void)m.losses.at(5); }).find("containers.cpp:") == 0);
}

TEST_CASE("containers with rules of their own") {
  struct holder {
    tracked_sequence<newest_first> stack;
    tracked_sequence<std::deque<float>> queue;
  } m;
  CHECK(compare(
            [](holder& h, tensor const& x) {
              h.stack.push_back(x);
              h.queue.push_back(0.5F);
              if (h.queue.size() > 3) h.queue.erase(h.queue.begin()), h.stack.erase(std::size_t{0});
              return h.stack.back() * h.queue.front();
            },
            m, 12, one_sample) <= 6);
}

TEST_CASE("random changes of sequences and maps") {
  struct holder {
    tracked_vector<tensor> list;
    tracked_vector<int> numbers;
    tracked_map<int, tensor> map;
    state<int> seed{0};
  };
  auto const f = [](holder& h, tensor const& x) {
    random_stream draw(static_cast<std::uint64_t>(h.seed.value()), 3);
    tensor y = x;
    for (int k = 0; k < 5; ++k) {
      auto const n = draw.below(12);
      auto const some = static_cast<std::size_t>(draw.below(3));
      switch (n) {
        case 0: h.list.push_back(y * 0.5); break;
        case 1:
          if (!h.list.empty()) h.list.pop_back();
          break;
        case 2:
          if (h.list.size() > some) h.list.erase(some);
          break;
        case 3:
          if (h.list.size() > some) y = y + h.list[some];
          break;
        case 4:
          if (h.list.size() > some) h.list.set(some, y + 1);
          break;
        case 5:
          if (!h.list.empty()) y = y - h.list.back() * h.list.size();
          break;
        case 6: h.numbers.push_back(h.numbers.size() * std::size_t{2} > std::size_t{9} ? 1 : 2); break;
        case 7:
          if (!h.numbers.empty()) y = y * h.numbers.back() + h.numbers.front();
          break;
        case 8: h.map[static_cast<int>(some)] = y * 0.25; break;
        case 9:
          if (h.map.contains(static_cast<int>(some))) y = y + h.map.at(static_cast<int>(some));
          break;
        case 10:
          h.map.erase(static_cast<int>(some));
          y = y + h.map.size();
          break;
        default:
          for (auto const& t : h.list) y = y + t * 0.1;
          for (auto const& [key, t] : h.map) y = y - t * static_cast<double>(key + 1);
      }
      y = tanh(y);
    }
    return y;
  };
  auto step = compile(f, {.graphs = 100000, .threads = 1});
  holder m, plain;
  std::size_t hits = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    m.seed = i % 20, plain.seed = i % 20;
    if (i % 50 == 0) m.list.clear(), plain.list.clear();
    auto const before = step.graphs();
    auto got = step(m, sample(i)), expected = f(plain, sample(i));
    hits += step.graphs() == before;
    CAPTURE(step.why_missed());
    REQUIRE(content_of(got) == content_of(expected));
    REQUIRE(content_of(m) == content_of(plain));
  }
  CHECK(step.graphs() > 20);
  CHECK(hits > 20);
}

TEST_CASE("a call that reads a value and changes a container is a graph like others") {
  memory a, b;
  auto const f = [](memory& m, tensor const& x) {
    tensor const y = x * m.w;
    bool const large = static_cast<bool>(item<float>(mean(y)) > 0.0f);
    ++m.n;
    if (m.n % 3 == 0) m.history.push_back(y);
    return large ? y * 2 : y;
  };
  CHECK(compare(f, a, 40, one_sample) == 4);
  CHECK(a.history.size().plain() == 13);

  auto compiled = compile(f);
  for (int i = 0; i < 40; ++i) (void)compiled(b, sample(i));
  CHECK(compiled.graphs() == 4);
}

TEST_CASE("containers before, between and after values that decide") {
  memory a, b, c, d;
  CHECK(compare(  // the best so far, and a window of losses
            [](memory& m, tensor const& x) {
              tensor const loss = mean(x * m.w * x);
              auto const now = item<double>(loss);
              m.losses.push_back(now);
              if (m.losses.size() > 3) m.losses.erase(m.losses.begin());
              if (m.history.empty() || item<float>(m.history.back()) > item<float>(loss)) m.history.push_back(loss);
              return loss * m.losses.front() + m.history.size();
            },
            a, 30, one_sample) > 3);
  CHECK(compare(  // an element that a later stage reads is in a later graph what an earlier one has made of it
            [](memory& m, tensor const& x) {
              if (m.history.empty()) m.history.push_back(tensor::full({4}, 1) * 1.0);
              tensor const h = m.history.front();
              assign(h, h * 0.5 + mean(x, {0}));
              if (item<float>(sum(h)) > 0) m.features["up"] = h + 1;
              else m.features.erase("up");
              assign(h, h + 0.25);
              if (m.features.contains("up")) m.last = m.features.at("up") * h;
              return x + h;
            },
            b, 30, one_sample) > 2);
  CHECK(compare(  // keys and counts by what a tensor contains
            [](memory& m, tensor const& x) {
              int const kind = (item<float>(sum(x)) > 0 ? 1 : 0) + (item<float>(max(x)) > 1.5F ? 2 : 0);
              auto const name = "kind " + std::to_string(kind);
              if (!m.counts.contains(name)) m.counts[name] = 0;
              m.counts[name] = m.counts.at(name) + 1;
              m.tables[kind] = x * m.counts.at(name);
              tensor all = x;
              for (auto const& [key, t] : m.tables) all = all + t * static_cast<double>(key);
              return all;
            },
            c, 40, one_sample) > 4);
  // An exception after values and containers: what eager execution leaves.
  auto const f = [](memory& m, tensor const& x, int how) {
    m.history.push_back(x * 2);
    float const s = item<float>(sum(x)).value();
    m.losses.push_back(s);
    m.features["seen"] = x + s;
    if (how == 1 && s > 0) throw std::length_error("positive");
    effect(
        [](int h) {
          if (h == 2) throw std::length_error("effect");
        },
        sym<int>(how));
    if (m.history.size() > 2) m.history.erase(m.history.begin());
    m.features.erase("seen");
    return x * s;
  };
  memory plain;
  auto step = compile(f);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    std::string mine, its;
    tensor u, v;
    try {
      u = step(d, sample(i), i % 4);
    } catch (std::length_error const& e) { mine = e.what(); }
    try {
      v = f(plain, sample(i), i % 4);
    } catch (std::length_error const& e) { its = e.what(); }
    CHECK(mine == its);
    CHECK(content_of(u) == content_of(v));
    CHECK(content_of(d) == content_of(plain));
  }
}

TEST_CASE("an element that shares memory with what a call updates") {
  auto const follow = [](auto const& f) {
    memory m, plain;
    auto step = compile(f);
    tensor kept = sample(1), kept_plain = sample(1);
    for (int i = 0; i < 16; ++i) {
      CAPTURE(i);
      bool const same = i % 3 != 0;
      tensor x = same ? kept : sample(i), y = same ? kept_plain : sample(i);
      if (!same) kept = x, kept_plain = y;
      auto got = step(m, x), expected = f(plain, y);
      CHECK(content_of(got) == content_of(expected));
      CHECK(content_of(m) == content_of(plain));
    }
  };
  follow([](memory& m, tensor const& x) {
    tensor y = x + 1;
    if (m.history.size() > std::size_t{0}) {
      assign(x, x * 2);
      y = y + m.history.back();  // may have the memory of x
    }
    m.history.push_back(x);
    return y;
  });
  follow([](memory& m, tensor const& x) {  // in several stages
    tensor y = x + 1;
    if (item<float>(sum(x)) > 1e30f) return y;
    if (m.history.size() > std::size_t{0}) {
      assign(x, x * 2);
      y = y + m.history.back();
      if (item<float>(sum(y)) > 0) assign(x, x * 0.5), y = y - m.history.back();
    }
    m.history.push_back(x);
    return y;
  });
}

TEST_CASE("elements that share memory with a part of the model or with one another have graphs of their own") {
  struct sharing {
    tensor last;
    tracked_vector<tensor> history;
    tracked_map<std::string, tensor> features;
  } a, b, c;
  auto const check = [](auto const& f, sharing& m) {
    auto const graphs = compare(f, m, 24, one_sample);
    CHECK(graphs > 1);
    CHECK(graphs < 8);
  };
  check(  // the last one is a member, too
      [](sharing& m, tensor const& x) {
        tensor y = x;
        if (!m.last.is_empty()) {
          assign(m.last, m.last * 0.5);
          y = y + m.history.back() * 2.0;
        }
        m.last = tanh(y);
        m.history.push_back(m.last);
        if (m.history.size() > std::size_t{2}) m.history.erase(m.history.begin());
        return y;
      },
      a);
  check(  // twice in one container, and in another one under a name
      [](sharing& m, tensor const& x) {
        if (m.history.empty()) {
          tensor const h = x * 1.0;
          m.history.push_back(h), m.history.push_back(h), m.features["first"] = h;
          return h;
        }
        tensor const first = m.history.front();
        assign(first, first * 0.5 + x);
        tensor const y = m.history.back() + m.features.at("first") * 0.25;
        assign(m.features.at("first"), tanh(y));
        return y + first;
      },
      b);
  check(  // what is read decides between the writes
      [](sharing& m, tensor const& x) {
        if (m.history.empty()) {
          m.last = x * 1.0;
          m.history.push_back(m.last), m.history.push_back(x * 2.0);
        }
        assign(m.last, m.last * 0.75 + x * 0.5);
        tensor y = m.history.front();
        if (item<float>(sum(y)) > 0) {
          tensor const back = m.history.back();
          assign(back, back - y * 0.125);
        }
        return y + m.history.back();
      },
      c);
  // A loop that keeps one tensor, and updates it.
  auto const counted = [](sharing& m, tensor const& x) {
    tensor const y = x * 2.0;
    if (m.history.size() > std::size_t{0}) {
      tensor const h = m.history.back();
      assign(h, h + y);
    }
    return y + x;
  };
  sharing d, plain;
  auto step = compile(counted);
  tensor kept = sample(1), other = sample(1);
  d.history.push_back(kept), plain.history.push_back(other);
  for (int i = 0; i < 9; ++i) {  // x is the element, and is not, in turn
    CAPTURE(i);
    bool const same = i % 3 != 0;
    auto got = step(d, same ? kept : sample(i)), expected = counted(plain, same ? other : sample(i));
    CHECK(content_of(got) == content_of(expected));
    CHECK(content_of(d) == content_of(plain));
  }
  CHECK(step.graphs() == 2);
}
