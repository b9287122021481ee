// Random programs with state, tracked containers, branches on them and on tensors' elements, in-place writes, gradients,
// effects, functions of the host, draws, views, other compiled functions, refusals and exceptions at any operator, some of
// which are caught: compiled beside plain, bit for bit.
#include <neap/capture/cond.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/core/philox.hpp>
#include <neap/execute/compile.hpp>

#include "../support/sanitized.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

using namespace neap;
using neap::testing::content_of;

namespace {

#if defined(NEAP_COMPILES_FOR_DEVICE)
constexpr bool for_device = true;
constexpr unsigned programs = 300;
#else
constexpr bool for_device = false;
constexpr unsigned programs = 2000;
#endif

/// The place in a program whose operator throws; -1: none does.
int fails_at = -1;

/// A copy whose kernel throws where it is that place's.
struct fuse {
  static constexpr std::string_view name = "fuse";
  std::int64_t place = 0;
  static constexpr auto attributes() { return std::array{field<&fuse::place>("place")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    for (int k = 0; k < c.in(0).rank(); ++k) c.same(0, k, 0, k);
  }
  void gradient(gradient_context& c) const { c.give(0, c.grad()); }
};
template <class Backend>
void run(Backend&, fuse const& f, kernel_arguments const& a) {
  if (f.place == fails_at) throw std::domain_error("fuse " + std::to_string(f.place));
  std::memcpy(a.out[0].as<float>(), a.in[0].as<float const>(),
              static_cast<std::size_t>(a.in[0].count()) * sizeof(float));
}

/// What the host has seen, and how often it was called.
std::string seen;
int calls = 0;

struct machine {
  std::uint64_t program = 0;  // decides what it does
  std::array<state<int>, 3> whole;
  std::array<state<float>, 2> real;
  state<std::uint8_t> small{250};
  std::vector<buffer> buffers;
  parameter w{{3, 3}, initialiser::normal(0, 0.5).with_seed(2, 0)};
  buffer ticks{{}, initialiser::constant(0), dtype::i64};
  tensor slot;
  std::optional<tensor> kept;
  int plain = 0;
  tracked_generator random{3};
  tracked_vector<tensor> list;
  tracked_vector<float> numbers;
  tracked_map<int, tensor> map;
  explicit machine(std::uint64_t seed = 0) : program(seed) {
    for (int i = 0; i < 2; ++i) buffers.emplace_back(shape{3, 3});
    slot = tensor::ones({3, 3});
  }
  friend auto neap_fields(machine& m) {
    return std::tie(m.program, m.whole, m.real, m.small, m.buffers, m.w, m.slot, m.kept, m.plain, m.random, m.ticks,
                    m.list, m.numbers, m.map);
  }
};

/// A compiled function that programs call; a tensor that no argument contains.
tensor inner(tensor const& x, sym<float> by) {
  static auto step = compile([](tensor const& t, sym<float> s) {
    if (s > 0.5F) return tanh(t) * s;
    return t * 0.5;
  });
  return step(x, by);
}
tensor const elsewhere = tensor::full({3, 3}, 0.75);

struct outcome {
  tensor y, again;
  sym<int> number;
};

/// What program number m.program does.
outcome follow(machine& m, tensor const& x, sym<float> const& s) {
  random_stream draw(m.program, 31);
  bool const meets_refusals = m.program % 4 == 1;
  std::int64_t place = 0;
  // What an earlier call has computed has no history in a compiled function.
  std::vector<tensor> have{x, m.slot.detach(), m.buffers[0], m.w};
  // On a device, no other argument has an element's memory.
  auto const taken = [](tensor const& element) { return for_device ? tanh(element.detach()) : element.detach(); };
  auto const any = [&]() -> tensor { return have[draw.below(static_cast<std::uint32_t>(have.size()))]; };
  auto const body = [&](auto const& self, int depth) -> void {
    auto const n = 2 + draw.below(4);
    for (std::uint32_t k = 0; k < n; ++k) {
      auto& whole = m.whole[draw.below(3)];
      auto& real = m.real[draw.below(2)];
      auto const what = draw.below(54);
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
          if (m.kept) have.push_back(m.kept->detach()), m.kept = tanh(a);
          else if (!for_device && !meets_refusals) m.kept = tanh(b);  // changes the structure, for good
          break;
        case 16:
          if (whole > 4 && m.program % 3 == 0) {
            whole = 0;
            throw std::length_error("planned");
          }
          break;
        case 17: have.push_back(for_device ? contiguous(a) : apply(fuse{place++}, {contiguous(a)})); break;
        case 18:
          if (item<float>(sum(a)) > real) have.push_back(tanh(b));
          else whole += 1, have.push_back(a * 0.5);
          break;
        case 19: real = real * 0.5F + item<float>(mean(a)) * 0.25F; break;
        case 20: have.push_back(tanh(a) * item<float>(mean(b * b))); break;
        case 21: {
          bool const yes = greater(sum(a), 0).item<bool>();
          m.plain = yes ? 2 : 3;
          if (yes) assign(m.buffers[1], tanh(b));
          break;
        }
        case 22:
          effect([](int number, float value) { seen += std::to_string(number) + " " + std::to_string(value) + ";"; },
                 whole, item<float>(mean(a)));
          break;
        case 23:
          effect([](tensor const& t,
                    std::int64_t at) { seen += std::to_string(t.values<float>()[2]) + std::to_string(at); },
                 a, place++);
          break;
        case 24: {
          auto const tick = external([](int number) { return ++calls % 4 + number; }, whole);
          if (tick % 2 == 0) have.push_back(a + tick);
          else real = real + 0.125F;
          break;
        }
        case 25:
          have.push_back(external(
              [](tensor const& t, std::int64_t at) {
                ++calls;
                if (at == fails_at) throw std::domain_error("external");
                return t * 0.5;
              },
              tanh(a), place++));
          assign(have.back(), have.back() + b);
          break;
        case 26: {
          tensor const t = tanh(a);
          have.push_back(t);
          assign(t[1], b[0] * 0.5);
          if (item<float>(t[1][0]) > 0) assign(t, t * 0.5);
          break;
        }
        case 27:
          if (m.random.uniform() < 0.5) have.push_back(a * m.random.uniform());
          else real = real * 0.5F;
          break;
        case 28:
          have.push_back(cond(
              sum(a) > 0, [&] { return tanh(b); }, [&] { return a * 0.5; }));
          break;
        case 29: {
          tensor const loss = mean(tanh(matmul(a, m.w)));
          auto const half = item<float>(loss) > 0.01F;
          auto const g = grad(loss, {m.w})[0];
          if (item<float>(sum(g * g)) > 0.001F) assign(m.w, m.w - g * (half ? 0.5 : 0.25));
          break;
        }
        case 30:
          effect(
              [](int number, std::int64_t at) {
                seen += "!";
                if (at == fails_at) throw std::domain_error("effect " + std::to_string(number));
              },
              whole, place++);
          break;
        case 31: m.slot = a; break;
        case 32: assign(a, tanh(b) * 0.5); break;
        case 33:
          m.list.push_back(tanh(a));
          if (m.list.size() > 3) m.list.erase(std::size_t{0});
          break;
        case 34:
          if (!m.list.empty()) have.push_back(taken(m.list.back()));
          break;
        case 35: {
          auto const at = static_cast<std::size_t>(draw.below(3));
          if (m.list.size() > at) have.push_back(taken(m.list[at]) - b);
          break;
        }
        case 36:
          if (m.list.size() > 1) m.list.set(1, tanh(a + b));
          break;
        case 37:
          if (!m.list.empty()) m.list.pop_back();
          break;
        case 38: m.numbers.push_back(item<float>(mean(a))); break;
        case 39:
          if (!m.numbers.empty()) have.push_back(tanh(a) * m.numbers.back());
          if (m.numbers.size() > 2) m.numbers.erase(std::size_t{0});
          break;
        case 40: m.map[static_cast<int>(draw.below(3))] = tanh(b) * 0.5; break;
        case 41: {
          auto const key = static_cast<int>(draw.below(3));
          if (m.map.contains(key)) have.push_back(taken(m.map.at(key)) + a);
          break;
        }
        case 42: m.map.erase(static_cast<int>(draw.below(3))); break;
        case 43:
          if (!m.list.empty()) assign(m.list.front(), m.list.front().detach() * 0.5 + tanh(b));
          break;
        case 44:
          for (auto const& t : m.list) have.push_back(taken(t) * 0.25);
          for (auto const& [key, t] : m.map) have.push_back(taken(t) * static_cast<double>(key + 1));
          break;
        case 45:
          if (m.numbers.empty()) m.numbers.push_back(real);
          else if (m.numbers.front() > item<float>(mean(b))) m.numbers.set(0, m.numbers.front() * 0.5F);
          break;
        case 46:
          if (m.list.size() > 2 && m.program % 2 == 0) m.list.clear();
          break;
        case 47:
          if (for_device) break;
          try {
            have.push_back(apply(fuse{place++}, {contiguous(a)}));
          } catch (std::domain_error const&) { whole += 1, have.push_back(b * 0.5); }
          break;
        case 48:
          if (for_device) break;
          try {
            effect(
                [](float value, std::int64_t at) {
                  seen += "?";
                  if (at == fails_at) throw std::domain_error(std::to_string(value));
                },
                real, place++);
          } catch (std::domain_error const&) { real = real * 0.25F; }
          break;
        case 49: {
          step_clock clock(m.ticks);
          random_scope const scope(m.program, clock);
          have.push_back(dropout(a, 0.5) + b[1]);
          break;
        }
        case 50: have.push_back(reshape(slice(concat({a, b}, 0), 0, 1, 4) * 0.5, {3, 3})); break;
        case 51: have.push_back(inner(a.detach(), real)); break;
        case 52:
          if (for_device || !meets_refusals) break;
          try {
            have.push_back(tanh(a * elsewhere));
          } catch (error const&) { whole = 0, have.push_back(b); }
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
  for (std::uint64_t seed = 0; seed < neap::testing::cases(programs); ++seed) {
    auto step = compile(&follow, {.verify = seed % 4 == 0 ? 2u : 0u, .threads = 1});
    std::array<machine, 2> mine{machine(seed), machine(seed)};
    std::array<machine, 2> plain{machine(seed), machine(seed)};  // a copy would share the slot
    for (int i = 0; i < 10; ++i) {
      auto &a = mine[static_cast<std::size_t>(i % 2)], &b = plain[static_cast<std::size_t>(i % 2)];
      auto const input = [&] {
        auto const key = seed * 100 + static_cast<std::uint64_t>(i);
        return seed % 3 == 1 ? slice(tensor::randn({33, 3}, key), 0, 3 * i, 3 * i + 3) : tensor::randn({3, 3}, key);
      };
      float const s = 0.1F * static_cast<float>(i);
      std::string got, expected;
      fails_at = seed % 3 == 0 && i > 3 ? static_cast<int>((seed + static_cast<std::uint64_t>(i)) % 7) : -1;
      auto const before = step.graphs();
      auto const call = [&](auto const& f, machine& m, std::string& to) {
        tensor x = input();
        try {
          auto r = f(m, x, s);
          to = content_of(r);
        } catch (std::logic_error const& e) { to = e.what(); } catch (error const& e) {
          to = e.what();
        }
        to = std::exchange(seen, {}) + std::to_string(std::exchange(calls, 0)) + " " + to + content_of(x);
      };
      CAPTURE(seed);
      CAPTURE(i);
      call([&](machine& m, tensor const& t, float v) { return step(m, t, v); }, a, got);
      CAPTURE(step.why_missed());
      call([&](machine& m, tensor const& t, float v) { return follow(m, t, v); }, b, expected);
      REQUIRE(got == expected);
      REQUIRE(content_of(a) == content_of(b));
      hits += step.graphs() == before;
    }
    graphs += step.graphs();
  }
  CHECK(graphs > neap::testing::cases(programs));
  CHECK(hits > neap::testing::cases(programs));
}
