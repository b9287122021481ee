// Random programs with state, branches, in-place writes, gradients and exceptions: compiled beside plain, bit for bit.
#include <neap/core/philox.hpp>
#include <neap/execute/compile.hpp>

#include "../support/sanitized.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>

using namespace neap;
using neap::testing::content_of;

namespace {

struct machine {
  std::uint64_t program = 0;  // decides what it does
  std::array<state<int>, 3> whole;
  std::array<state<float>, 2> real;
  state<std::uint8_t> small{250};
  std::vector<buffer> buffers;
  parameter w{{3, 3}, initialiser::normal(0, 0.5).with_seed(2, 0)};
  tensor slot;
  std::optional<tensor> kept;
  int plain = 0;
  explicit machine(std::uint64_t seed = 0) : program(seed) {
    for (int i = 0; i < 2; ++i) buffers.emplace_back(shape{3, 3});
    slot = tensor::ones({3, 3});
  }
  friend auto neap_fields(machine& m) {
    return std::tie(m.program, m.whole, m.real, m.small, m.buffers, m.w, m.slot, m.kept, m.plain);
  }
};

struct outcome {
  tensor y, again;
  sym<int> number;
};

/// What program number m.program does.
outcome run(machine& m, tensor const& x, sym<float> const& s) {
  random_stream draw(m.program, 31);
  std::vector<tensor> have{x, m.slot, m.buffers[0], m.w};
  auto const any = [&]() -> tensor { return have[draw.below(static_cast<std::uint32_t>(have.size()))]; };
  auto const body = [&](auto const& self, int depth) -> void {
    auto const n = 2 + draw.below(4);
    for (std::uint32_t k = 0; k < n; ++k) {
      auto& whole = m.whole[draw.below(3)];
      auto& real = m.real[draw.below(2)];
      auto const what = draw.below(18);
      tensor const a = any(), b = any();
      switch (what) {
        case 0: have.push_back(tanh(a + b)); break;
        case 1: have.push_back(relu(matmul(a, b)) * 0.5); break;
        case 2: have.push_back(tanh(a) * real); break;
        case 3: have.push_back(a / (whole * whole + 1)); break;
        case 4: ++whole; break;
        case 5: whole = (whole * 3 + 1) % 7; break;
        case 6: real = real * 0.5F + s; break;
        case 7: m.small += 3; break;
        case 8: assign(m.buffers[draw.below(2)], tanh(a)); break;
        case 9: m.slot = tanh(a - b); break;
        case 10: assign(m.slot, b * 0.5); break;
        case 11: have.push_back(tanh(permute(a, {1, 0}))); break;
        case 12: assign(m.buffers[0][1], tanh(a[0] + b[2])); break;
        case 13: {
          tensor const loss = mean(tanh(matmul(a, m.w)) * b);
          assign(m.w, m.w - grad(loss, {m.w})[0] * 0.1);
          have.push_back(have.front() + loss.detach());
          break;
        }
        case 14:
          if (m.small > 252 && whole % 2 == 0) {
            have.push_back(tensor::full({3, 3}, 0.25) + a);
          } else {
            m.plain = 1 - m.plain;
          }
          break;
        case 15:
          if (m.kept) have.push_back(*m.kept), m.kept = tanh(a);
          else m.kept = tanh(b);
          break;
        case 16:
          if (whole > 4 && m.program % 3 == 0) {
            whole = 0;
            throw std::length_error("planned");
          }
          break;
        default:
          if (depth < 2) {
            bool const yes{whole % 2 == 1};
            auto const before = draw;
            if (yes) self(self, depth + 1);
            else if (real > 0.3F) have.push_back(relu(a)), whole += 2;
            draw = before;
          }
      }
    }
  };
  body(body, 0);
  tensor const last = have.back();
  return {tanh(last) + m.slot, last, m.whole[0] * 2 + m.small};
}

}  // namespace

TEST_CASE("random programs give the bits that eager execution gives") {
  std::size_t graphs = 0, hits = 0;
  for (std::uint64_t seed = 0; seed < neap::testing::cases(400u); ++seed) {
    auto step = compile(&run, {.verify = seed % 4 == 0 ? 2u : 0u, .threads = 1});
    std::array<machine, 2> mine{machine(seed), machine(seed)};
    std::array<machine, 2> plain{machine(seed), machine(seed)};  // a copy would share the slot
    for (int i = 0; i < 10; ++i) {
      auto &a = mine[static_cast<std::size_t>(i % 2)], &b = plain[static_cast<std::size_t>(i % 2)];
      tensor const x = tensor::randn({3, 3}, seed * 100 + static_cast<std::uint64_t>(i));
      float const s = 0.1F * static_cast<float>(i);
      std::string got, expected;
      auto const before = step.graphs();
      auto const call = [&](auto const& f, machine& m, std::string& to) {
        try {
          auto r = f(m, x, s);
          to = content_of(r);
        } catch (std::length_error const& e) { to = e.what(); }
      };
      CAPTURE(seed);
      CAPTURE(i);
      call([&](machine& m, tensor const& t, float v) { return step(m, t, v); }, a, got);
      CAPTURE(step.why_missed());
      call([&](machine& m, tensor const& t, float v) { return run(m, t, v); }, b, expected);
      REQUIRE(got == expected);
      REQUIRE(content_of(a) == content_of(b));
      hits += step.graphs() == before;
    }
    graphs += step.graphs();
  }
  CHECK(graphs > neap::testing::cases(400u));
  CHECK(hits > neap::testing::cases(400u));
}
