// Eight training programs of the kinds that break other captures, run in three ways: eagerly, compiled without a plan, and
// compiled with plans under half of the memory of the largest graph in the program's order. bench/capture_torch.py has the
// same programs for PyTorch; bench/capture.sh runs both in turn.
//
//   bench_capture [--only NAME] [--rounds 7] [--threads 1] [--limit 0.5] [--plan-seconds 10]
//
// The first 120 calls of a program in the three ways are compared: results, logs and all state, bit for bit. One CSV row a
// program and way: program, way (eager, captured, planned), graphs, ms (a call: median of rounds of the mean over one
// period of the program's inputs, the ways in turn), peak_bytes (tensors and arenas at once in the 24 calls after those,
// with weights, states and inputs).
//
//   branch_on_state  warm-up of the rate; every fourth step also moves averaged weights
//   early_exit       descends until the loss has fallen by a third, at most 8 times
//   history          the loss includes the distance to the mean of the last 4 predictions
//   features         layers leave named features in a dictionary, heads read them; a tracked one keeps their means
//   random_depth     three groups of layers, each left out by chance
//   recurrent        a gated cell over sequences of 6, 10 and 14
//   loss_scaling     a step with a gradient that is not finite is left out and halves the scale
//   logging          writes the loss and the norm of the gradient to a log, every tenth step
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/execute/compile.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/train/grad.hpp>

#include "../tests/support/content.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <malloc.h>

using namespace neap;

// Tensors and arenas are the aligned blocks of the process.
namespace {
std::atomic<long> live_bytes = 0, max_bytes = 0;
}  // namespace
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* p = nullptr;
  if (posix_memalign(&p, std::max(static_cast<std::size_t>(alignment), sizeof(void*)), bytes) != 0)
    throw std::bad_alloc();
  auto const now = live_bytes += static_cast<long>(malloc_usable_size(p));
  if (now > max_bytes) max_bytes = now;
  return p;
}
void operator delete(void* p, std::align_val_t) noexcept {
  live_bytes -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t a) noexcept { operator delete(p, a); }

namespace {

struct settings {
  std::string only;
  int rounds = 7, threads = 1;
  double limit = 0.5, plan_seconds = 10;
};

constexpr std::int64_t batch = 256, width = 32, hidden = 64;
constexpr int inputs = 12, compared_calls = 120;

// ---- what the programs share -------------------------------------------------------------------------------------------

struct block {
  nn::linear up{width, hidden}, down{hidden, width};
  tensor operator()(tensor const& x) const { return x + down(gelu(up(x))); }
};
struct network {
  std::vector<block> blocks = std::vector<block>(6);
  nn::linear head{width, width};
  tensor operator()(tensor x) const {
    for (auto const& b : blocks) x = b(x);
    return head(x);
  }
};
tensor distance(tensor const& a, tensor const& b) {
  tensor const d = a - b;
  return mean(d * d);
}

/// Gradient descent with momentum.
struct momentum {
  std::vector<buffer> velocity;
  void start(std::vector<tensor> const& weights) {
    for (auto const& w : weights) velocity.emplace_back(w.shape());
  }
  template <class Rate>
  void operator()(std::vector<tensor> const& weights, std::vector<tensor> const& gradients, Rate const& rate) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      assign(velocity[i], velocity[i] * 0.9 + gradients[i]);
      assign(weights[i], weights[i] - velocity[i] * rate);
    }
  }
};

template <class Net = network>
struct training {
  Net net;
  momentum optimizer;
  state<int> steps{0};
};
template <class Model>
Model started() {
  Model m;
  initialise(m.net, 1);
  m.optimizer.start(parameters(m.net));
  return m;
}

// ---- the programs ------------------------------------------------------------------------------------------------------

struct branch_on_state : training<> {
  std::vector<buffer> averaged;
  friend auto neap_fields(branch_on_state& s) { return std::tie(s.net, s.optimizer, s.steps, s.averaged); }
  static branch_on_state start() {
    auto m = started<branch_on_state>();
    for (auto const& w : parameters(m.net)) m.averaged.emplace_back(w.shape());
    return m;
  }
  static tensor step(branch_on_state& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor const loss = distance(s.net(x), y);
    auto const rate = neap::min(s.steps / 200.0 + 0.005, sym<double>(0.05));
    s.optimizer(weights, grad(loss, weights), rate);
    if (++s.steps % 4 == 0)
      for (std::size_t i = 0; i < weights.size(); ++i) assign(s.averaged[i], s.averaged[i] * 0.99 + weights[i] * 0.01);
    return loss;
  }
};

struct early_exit : training<> {
  friend auto neap_fields(early_exit& s) { return std::tie(s.net, s.optimizer, s.steps); }
  static early_exit start() { return started<early_exit>(); }
  static tensor step(early_exit& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor loss;
    sym<float> first = 0;
    for (int i = 0; i < 8; ++i) {
      loss = distance(s.net(x), y);
      s.optimizer(weights, grad(loss, weights), 0.02);
      ++s.steps;
      if (i == 0) first = item<float>(loss);
      else if (item<float>(loss) < first * 0.7F) break;
    }
    return loss;
  }
};

struct history : training<> {
  tracked_vector<tensor> past;
  friend auto neap_fields(history& s) { return std::tie(s.net, s.optimizer, s.steps, s.past); }
  static history start() { return started<history>(); }
  static tensor step(history& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor const predicted = s.net(x);
    tensor loss = distance(predicted, y);
    if (!s.past.empty()) {
      tensor sum = s.past.front();
      for (std::size_t i = 1; i < s.past.size(); ++i) sum = sum + s.past[i];
      loss = loss + distance(predicted, sum / s.past.size()) * 0.1;
    }
    s.past.push_back(predicted.detach());
    if (s.past.size() > 4) s.past.erase(s.past.begin());
    s.optimizer(weights, grad(loss, weights), 0.02);
    return loss;
  }
};

struct features : training<> {
  tracked_map<std::string, tensor> means;
  friend auto neap_fields(features& s) { return std::tie(s.net, s.optimizer, s.steps, s.means); }
  static features start() { return started<features>(); }
  static tensor step(features& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    std::map<std::string, tensor> found{{"input", x}};
    tensor h = x;
    for (std::size_t i = 0; i < s.net.blocks.size(); ++i) {
      h = s.net.blocks[i](h);
      found["block " + std::to_string(i)] = h;
    }
    tensor loss = distance(s.net.head(h), y);
    for (auto const& [name, f] : found) {
      if (name == "input") continue;
      tensor const now = mean(f, {0});
      if (s.means.contains(name)) {
        tensor const before = s.means.at(name);
        loss = loss + distance(now, before) * 0.1;
        s.means[name] = before * 0.9 + now.detach() * 0.1;
      } else {
        s.means[name] = now.detach();
      }
    }
    s.optimizer(weights, grad(loss, weights), 0.02);
    return loss;
  }
};

struct random_depth : training<> {
  tracked_generator random{7};
  friend auto neap_fields(random_depth& s) { return std::tie(s.net, s.optimizer, s.steps, s.random); }
  static random_depth start() { return started<random_depth>(); }
  static tensor step(random_depth& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor h = x;
    for (std::size_t group = 0; group < 3; ++group) {
      if (s.random.uniform() < 0.3) continue;
      for (std::size_t i = 0; i < 2; ++i) h = s.net.blocks[2 * group + i](h);
    }
    tensor const loss = distance(s.net.head(h), y);
    s.optimizer(weights, grad(loss, weights), 0.02);
    return loss;
  }
};

struct sequence_network {
  nn::gru_cell cell{width, hidden};
  nn::linear head{hidden, width};
};
struct recurrent : training<sequence_network> {
  friend auto neap_fields(recurrent& s) { return std::tie(s.net, s.optimizer, s.steps); }
  static recurrent start() { return started<recurrent>(); }
  static tensor step(recurrent& s, tensor const& x, tensor const& y) {  // x (length, b, width)
    auto const weights = parameters(s.net);
    tensor h = s.net.cell.start(batch);
    for (std::int64_t t = 0; t < x.size(0); ++t) h = s.net.cell(x[t], h);
    tensor const loss = distance(s.net.head(h), y);
    s.optimizer(weights, grad(loss, weights), 0.02);
    return loss;
  }
};

struct loss_scaling : training<> {
  state<float> scale{1024.0F};
  state<int> good{0}, skipped{0};
  friend auto neap_fields(loss_scaling& s) { return std::tie(s.net, s.optimizer, s.steps, s.scale, s.good, s.skipped); }
  static loss_scaling start() { return started<loss_scaling>(); }
  static tensor step(loss_scaling& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor const loss = distance(s.net(x), y);
    auto g = grad(loss * s.scale, weights);
    tensor size = sum(g[0] * g[0]);
    for (std::size_t i = 1; i < g.size(); ++i) size = size + sum(g[i] * g[i]);
    if (!isfinite(item<float>(size))) {
      s.scale = s.scale * 0.5F, s.good = 0;
      ++s.skipped;
      return loss;
    }
    for (auto& each : g) each = each / s.scale;
    s.optimizer(weights, g, 0.02);
    if (++s.good >= 20) s.scale = s.scale * 2.0F, s.good = 0;
    return loss;
  }
};

std::string the_log;
void write_line(int step, float loss, float size) noexcept {
  char line[80];
  the_log.append(line, static_cast<std::size_t>(std::snprintf(line, sizeof line, "%d: %.9g %.9g\n", step, loss, size)));
}
struct logging : training<> {
  friend auto neap_fields(logging& s) { return std::tie(s.net, s.optimizer, s.steps); }
  static logging start() { return started<logging>(); }
  static tensor step(logging& s, tensor const& x, tensor const& y) {
    auto const weights = parameters(s.net);
    tensor const loss = distance(s.net(x), y);
    auto const g = grad(loss, weights);
    if (++s.steps % 10 == 0) effect(&write_line, s.steps, item<float>(loss), item<float>(sum(g[0] * g[0])));
    s.optimizer(weights, g, 0.02);
    return loss;
  }
};

// ---- measuring ---------------------------------------------------------------------------------------------------------

struct sample {
  tensor x, y;
};
std::vector<sample> samples_of(std::string_view program) {
  std::vector<sample> all;
  for (int i = 0; i < inputs; ++i) {
    auto const seed = static_cast<std::uint64_t>(2 * i + 1);
    bool const is_sequence = program == "recurrent";
    tensor x = is_sequence ? tensor::randn({6 + 4 * (i % 3), batch, width}, seed) : tensor::randn({batch, width}, seed);
    tensor const y = tanh(is_sequence ? x[x.size(0) - 1] : x);
    if (program == "loss_scaling" && i == 5) x = x * 1e18;  // the squares are not finite
    all.push_back({x, y});
  }
  return all;
}

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
[[noreturn]] void fail(char const* program, char const* way, int call, char const* what) {
  std::fprintf(stderr, "capture: %s, %s, call %d: %s\n", program, way, call, what);
  std::exit(EXIT_FAILURE);
}

/// One program run in one way.
template <class Program>
struct run_of {
  char const* way;
  std::function<tensor(Program&, tensor const&, tensor const&)> call;
  Program model = Program::start();
  std::string log{};
  std::size_t graphs = 0;
  std::vector<double> ms{};
  long peak = 0;

  tensor operator()(sample const& s) {
    the_log.swap(log);
    tensor result = call(model, s.x, s.y);
    the_log.swap(log);
    return result;
  }
};
/// What a call leaves behind.
struct outcome {
  std::vector<float> result;
  std::string state, log;
};

template <class Program>
void measure(char const* name, settings const& s) {
  if (!s.only.empty() && s.only != name) return;
  auto const begun = live_bytes.load();
  auto const samples = samples_of(name);
  auto const at = [&](int i) -> sample const& { return samples[static_cast<std::size_t>(i % inputs)]; };
  auto const samples_bytes = live_bytes - begun;
  compile_options const options{.graphs = 128, .threads = s.threads};
  bytes_t most = 0;  // of all paths
  auto const in_order = [&](graph const& g) {
    auto p = plan_in_order(g);
    most = std::max(most, p.arena_bytes);
    return p;
  };
  auto const in_half = [&](graph const& g) {
    memory_limit const limit{static_cast<bytes_t>(s.limit * static_cast<double>(most))};
    return plan_with(rematerialize{} | truncate(24), limit,
                     time_budget{std::chrono::duration<double>(s.plan_seconds)})(g);
  };
  auto captured = compile(&Program::step, in_order, options);
  auto planned = compile(&Program::step, in_half, options);
  std::vector<outcome> expected;
  std::vector<run_of<Program>> ways;
  ways.reserve(3);
  auto const add = [&](char const* way, auto call, auto const& graphs, auto const& why_missed) {
    auto const before = live_bytes.load();
    auto& run = ways.emplace_back(run_of<Program>{way, std::move(call)});
    for (int i = 0; i < compared_calls; ++i) {
      tensor const result = run(at(i));
      outcome now{result.template values<float>(), testing::content_of(run.model), run.log};
      if (auto const why = why_missed(); why.find("no plan") != why.npos) fail(name, way, i, why.c_str());
      if (way == std::string_view("eager")) {
        expected.push_back(std::move(now));
        continue;
      }
      auto const& e = expected[static_cast<std::size_t>(i)];
      if (now.result != e.result) fail(name, way, i, "another result than eagerly");
      if (now.state != e.state) fail(name, way, i, "another state than eagerly");
      if (now.log != e.log) fail(name, way, i, "another log than eagerly");
    }
    max_bytes.store(live_bytes);
    for (int i = 0; i < 2 * inputs; ++i) (void)run(at(i));
    run.peak = max_bytes - before + samples_bytes;
    run.graphs = graphs();
  };
  add(
      "eager", &Program::step, [] { return std::size_t{0}; }, [] { return std::string(); });
  add(
      "captured", std::ref(captured), [&] { return captured.graphs(); }, [&] { return captured.why_missed(); });
  add(
      "planned", std::ref(planned), [&] { return planned.graphs(); }, [&] { return planned.why_missed(); });

  for (int r = 0; r < s.rounds; ++r)
    for (auto& w : ways) {
      auto const begin = std::chrono::steady_clock::now();
      for (int i = 0; i < inputs; ++i) (void)w(at(i));
      w.ms.push_back(ms_since(begin) / inputs);
    }
  for (auto const& w : ways) std::printf("%s,%s,%zu,%.4f,%ld\n", name, w.way, w.graphs, median(w.ms), w.peak);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view const option = argv[i];
    if (option == "--only") s.only = argv[i + 1];
    if (option == "--rounds") s.rounds = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--threads") s.threads = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--limit") s.limit = std::atof(argv[i + 1]);
    if (option == "--plan-seconds") s.plan_seconds = std::atof(argv[i + 1]);
  }
  eager_context const eager{{.threads = s.threads}};
  std::printf("program,way,graphs,ms,peak_bytes\n");
  measure<branch_on_state>("branch_on_state", s);
  measure<early_exit>("early_exit", s);
  measure<history>("history", s);
  measure<features>("features", s);
  measure<random_depth>("random_depth", s);
  measure<recurrent>("recurrent", s);
  measure<loss_scaling>("loss_scaling", s);
  measure<logging>("logging", s);
}
