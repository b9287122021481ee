// What a call that runs on a simulated device leaves behind beside results and state, each as plain execution leaves it:
// tensors in exceptions, weights and buffers that it has made.
#include <neap/cuda/compile.hpp>

#include <neap/capture/host.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/content.hpp"
#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"
#include "compare_compiled.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using neap::testing::content_of;
using neap::testing::message_of;
using neap::testing::problems;
using neap::testing::sample;
namespace simulated_device = neap::testing::simulated_device;

namespace {

struct found : std::runtime_error {
  using std::runtime_error::runtime_error;
  tensor best, part;
  std::vector<tensor> more;
};
struct searched {
  parameter w{{16, 16}, initialiser::normal(0, 0.3).with_seed(1, 0)};
  state<int> n{0};
  tensor last;
};

/// Ends by an exception with tensors that the call has computed, was called with or has from a function of the host.
tensor search(searched& s, tensor const& x, int how) {
  tensor const y = tanh(matmul(x, s.w));
  assign(s.w, s.w * 0.9 + 0.01);
  ++s.n;
  found f("found by " + std::to_string(how));
  f.best = y * 2.0, f.part = reshape(y, {4, 12});
  if (how == 1) throw f;
  if (how == 2) {
    s.last = y;
    f.more = {x, s.w, s.last, tensor::full({3}, 2.5), f.best};
    assign(f.best, f.best + 1.0);
    throw f;
  }
  if (how == 3 && item<float>(sum(y)) < 1e30F) throw f;
  if (how == 4) {
    f.more.push_back(external([](tensor const& t) { return t * 3; }, y));
    throw f;
  }
  s.last = y + 1.0;
  if (how == 5 && item<float>(max(y)) < 1e30F) {
    f.more.push_back(s.last * item<float>(min(y)));
    throw f;
  }
  return y;
}

}  // namespace

TEST_CASE("a tensor that an exception carries has the data of plain execution, which later calls leave alone") {
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(21 + captured);
    searched there, plain;
    cuda_backend backend;
    compile_options options;
    options.run.graph = captured;
    auto run = compile(search, backend, options);
    std::vector<found> mine, its;
    for (int i = 0; i < 24; ++i) {
      CAPTURE(i);
      auto const call = [&](auto& f, searched& s, std::vector<found>& caught) {
        try {
          auto y = f(s, sample(i), i % 6);
          return content_of(y);
        } catch (found const& e) {
          caught.push_back(e);
          return std::string(e.what());
        }
      };
      CHECK(call(run, there, mine) == call(search, plain, its));
      CHECK(content_of(there) == content_of(plain));
    }
    REQUIRE(mine.size() == 20);
    REQUIRE(its.size() == mine.size());
    for (std::size_t k = 0; k < mine.size(); ++k) {
      CAPTURE(k);
      CHECK(content_of(mine[k].best) == content_of(its[k].best));
      CHECK(content_of(mine[k].part) == content_of(its[k].part));
      CHECK(mine[k].best.storage() != mine[(k + 5) % 20].best.storage());
      REQUIRE(mine[k].more.size() == its[k].more.size());
      for (std::size_t j = 0; j < mine[k].more.size(); ++j)
        CHECK(content_of(mine[k].more[j]) == content_of(its[k].more[j]));
      CHECK((mine[k].more.size() != 5 || mine[k].more[4].storage() == mine[k].best.storage()));
    }
    CHECK(problems() == "");
  }
}

TEST_CASE("a tensor that is kept outside of arguments and result is refused") {
  simulated_device::reset(23);
  static tensor outside;
  cuda_backend backend;
  searched s;
  auto const before = content_of(s);
  auto keeps = compile(
      [](searched& m, tensor const& x) {
        outside = tanh(matmul(x, m.w));
        ++m.n;
        return outside * 2.0;
      },
      backend);
  auto const line = message_of([&] { (void)keeps(s, sample(1)); });
  CAPTURE(line);
  CHECK(line.find("keeps a tensor that it has computed, f32[3,16], outside of its arguments and result") !=
        std::string::npos);
  CHECK(line.find("compile_left_behind.cpp:") == 0);
  CHECK(content_of(s) == before);
  outside = tensor();
  CHECK(problems() == "");
}

namespace {

struct small_net {
  parameter w{{16, 8}, initialiser::normal(0, 0.3).with_seed(2, 0)};
  buffer mean_of{{8}, initialiser::constant(1)};
  tensor operator()(tensor const& x) const { return tanh(matmul(x, w)) * mean_of; }
};
struct with_copies {
  small_net net, best{parameter(), buffer()};  // `best` is empty at first
  tensor slot;
  tracked_map<std::string, tensor> kept;
  state<int> n{0};
};
/// What content_of() does not show of a weight.
std::string kind_of(tensor const& t) {
  auto const& s = *t.storage();
  return std::string(name_of(s.role())) + (s.is_frozen() ? " frozen" : "") + (t.wants_gradient() ? " wants" : "") +
         (t.detach().wants_gradient() ? "!" : "") + " " + std::to_string(static_cast<int>(s.first_values().how)) + " " +
         std::to_string(s.first_values().seed);
}

}  // namespace

TEST_CASE("weights and buffers that a call makes and leaves behind are weights and buffers") {
  auto const f = [](with_copies& m, tensor const& x) {
    tensor const y = m.net(x);
    auto const g = grad(mean(y * y), {m.net.w});
    assign(m.net.w, m.net.w - g[0] * 0.1);
    small_net copy = m.net;
    assign(copy.mean_of, mean(y, {0}));
    copy.w.requires_gradient((m.n % 2 == 0).value());
    if (m.best.w.is_empty()) m.best = m.net;
    parameter fresh{{16, 8}, initialiser::constant(0.25)};
    if (m.n % 3 == 1) m.slot = fresh;
    if (m.n % 3 == 2) m.kept["w"] = copy.w;
    tensor z = y;
    if (m.kept.contains("w")) z = z + matmul(x, m.kept.at("w"));
    if (!m.slot.is_empty()) assign(m.slot, m.slot + 0.5), z = z - matmul(x, m.slot);
    ++m.n;
    if (item<float>(mean(z)) > 1e30F) return std::pair{copy, z};
    assign(copy.w, copy.w + fresh);
    return std::pair{copy, z};
  };
  for (bool const on_device : {true, false}) {
    CAPTURE(on_device);
    simulated_device::reset(24);
    with_copies there, plain;
    cuda_backend backend;
    auto device = compile(f, backend);
    auto host = compile(f);
    for (int i = 0; i < 12; ++i) {
      CAPTURE(i);
      auto mine = on_device ? device(there, sample(i)) : host(there, sample(i));
      auto its = f(plain, sample(i));
      CHECK(content_of(mine.first) == content_of(its.first));
      CHECK(content_of(mine.second) == content_of(its.second));
      CHECK(content_of(there) == content_of(plain));
      CHECK(kind_of(mine.first.w) == kind_of(its.first.w));
      CHECK(kind_of(mine.first.mean_of) == kind_of(its.first.mean_of));
      CHECK(kind_of(there.best.w) == kind_of(plain.best.w));
      if (i > 0) CHECK(kind_of(there.slot) == kind_of(plain.slot));
      if (i > 1) CHECK(kind_of(there.kept.at("w")) == kind_of(plain.kept.at("w")));
      // What is left trains on.
      tensor const loss = mean(mine.first(sample(i))), other = mean(its.first(sample(i)));
      if (i % 2 == 0) CHECK(content_of(grad(loss, {mine.first.w})[0]) == content_of(grad(other, {its.first.w})[0]));
    }
    CHECK((on_device ? device.graphs() : host.graphs()) < 10);
    CHECK(problems() == "");
  }
}
