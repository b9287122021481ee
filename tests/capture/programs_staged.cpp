// Programs of several stages, beside plain eager execution: what is read ends a loop, large values go from stage to stage
// and into containers, are updated in between, and exceptions are thrown between reads.
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/execute/compile.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::compare;
using neap::testing::content_of;

namespace {

constexpr std::int64_t rows = 24;  // values between stages are larger than what is copied with small ones
auto large_sample(int i) { return std::tuple{neap::testing::sample(i, rows)}; }

struct staged {
  parameter w{{4, 4}, initialiser::normal(0, 0.6).with_seed(7, 0)};
  parameter v{{4, 4}, initialiser::normal(0, 0.4).with_seed(8, 0)};
  tracked_vector<tensor> trail;
  tracked_vector<double> norms;
  tracked_map<std::string, tensor> named;
  tensor last;
  state<int> n{0};
  state<double> step{0.2};
};

}  // namespace

TEST_CASE("a line search: the step is halved until the loss falls, on weights that are updated by it") {
  staged s;
  CHECK(compare(
            [](staged& m, tensor const& x) {
              auto const loss_at = [&](tensor const& w) { return mean(tanh(matmul(x, w)) * matmul(x, m.v)); };
              tensor const before = loss_at(m.w);
              tensor const g = grad(before, {m.w})[0].detach();
              auto const first = item<double>(before);
              sym<double> rate = m.step;
              for (int k = 0; k < 4; ++k) {
                tensor const tried = m.w - g * rate;
                if (item<double>(loss_at(tried)) < first) {
                  assign(m.w, tried);
                  m.step = rate * 1.5;
                  return before;
                }
                rate = rate * 0.25;
              }
              m.step = 0.2;
              assign(m.v, m.v * 0.9 + g * 0.1);
              return before * 2.0;
            },
            s, 24, large_sample) > 1);
}

TEST_CASE("several reads of one value, which is updated between them") {
  staged s;
  CHECK(compare(
            [](staged& m, tensor const& x) {
              tensor h = tanh(matmul(x, m.w));
              tensor const view = reshape(h, {4, rows});
              auto const a = item<float>(h[0][0]), b = item<float>(h[rows - 1][3]);
              if (a > b) assign(h, h * 0.5 + x);
              auto const c = item<float>(view[3][rows - 1]);
              if (c > 0.0F) assign(h, h - c);
              if (item<float>(max(view)) > 1.5F) m.n += 1;
              m.last = view;
              return std::pair{h * a, view + b};
            },
            s, 24, large_sample) > 2);
}

TEST_CASE("values of stages in containers, read back in later stages and calls") {
  staged s;
  CHECK(compare(
            [](staged& m, tensor const& x) {
              m.trail.clear();
              tensor h = x;
              for (int k = 0; k < 4; ++k) {
                h = tanh(matmul(h, m.w)) + h * 0.5;
                m.trail.push_back(h);
                auto const norm = item<double>(mean(h * h));
                m.norms.push_back(norm);
                if (norm < 0.35) break;
              }
              tensor y = m.trail.front() - m.trail.back();
              for (auto const& t : m.trail) y = y + t * 0.1;
              if (m.named.contains("best")) {
                if (item<double>(mean(m.named.at("best") * y)) > 0.1) m.named["best"] = y;
                else assign(m.v, m.v + 0.01);
              } else {
                m.named["best"] = h;
              }
              if (m.norms.size() > std::size_t{6}) m.norms.clear();
              return matmul(y, m.v);
            },
            s, 20, large_sample) > 2);
}

TEST_CASE("exceptions between reads, of which one is caught in the function") {
  auto const f = [](staged& m, tensor const& x) {
    tensor h = matmul(x, m.w);
    m.trail.push_back(h);
    if (item<float>(sum(h)) > 6.0F) throw std::range_error("large");
    assign(m.w, m.w * 0.95 + 0.01);
    try {
      tensor const g = tanh(h) + m.trail.front();
      if (item<float>(min(g)) < -2.0F) throw std::domain_error("small");
      h = g;
    } catch (std::domain_error const&) {
      ++m.n;
      h = h * 0.25;
    }
    if (m.trail.size() > std::size_t{3}) m.trail.erase(m.trail.begin());
    if (item<float>(max(h)) > 3.0F) {
      m.named["thrown"] = h;
      throw std::overflow_error("after " + std::to_string((m.n % 2).value()));
    }
    return h;
  };
  staged mine, plain;
  auto step = compile(f);
  int thrown = 0;
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    auto const call = [&](auto& g, staged& m) -> std::string {
      try {
        tensor x = neap::testing::sample(i, rows);
        auto y = g(m, x);
        return content_of(y);
      } catch (std::runtime_error const& e) { return ++thrown, e.what(); }
    };
    auto const a = call(step, mine), b = call(f, plain);
    CHECK(a == b);
    CHECK(content_of(mine) == content_of(plain));
  }
  CHECK(thrown > 4);
}

TEST_CASE("a fixed point by reads, with the host's part in each turn") {
  staged s;
  CHECK(compare(
            [](staged& m, tensor const& x) {
              tensor z = x * 0.0;
              int turns = 0;
              for (; turns < 5; ++turns) {
                tensor const next = tanh(matmul(z, m.w) * 0.5 + x);
                auto const change = external([](float d, int k) { return d * static_cast<float>(k + 1); },
                                             item<float>(max(abs(next - z))), turns);
                tensor const scaled = external([](tensor const& t) { return t * 0.75F; }, next);
                z = (next + scaled) * 0.5;
                if (change < 0.6F) break;
              }
              m.n += turns;
              assign(m.w, m.w - grad(mean(z * matmul(x, m.v)), {m.v})[0] * 0.05);
              m.last = z;
              return z + m.w.size(0);
            },
            s, 16, large_sample) > 1);
}
