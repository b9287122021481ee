// The time and the peak memory of a training step on the host: forward, backward, update. The models are the same as in
// bench/step_time_torch.py, which measures PyTorch; bench/step_time.sh runs both in turn. Three small ones (mlp, cnn, gpt)
// are written here, the others (resnet18, vit, bert, resnet50, vgg11, densenet121, unet, llama) are the zoo's.
//
//   bench_step_time [--model mlp,cnn,gpt,...] [--optimizer adamw|sgd] [--threads 2] [--steps 30] [--operators]
//
// One CSV row a model and way of running: model, way (plain: the program's own order, each result in memory of its own;
// planned: memory_greedy's order, results taking over the memory of what dies), optimizer, threads, step_ms (median),
// min_ms, cpu_ms (processor time of all threads, median), peak_bytes (weights, states, batch and arena). Before timing,
// planned and plain execution are checked to give the same losses and weights, bit for bit; the planner recomputes nothing
// in either. --operators prints instead what the operators cost: the sum over a step of each launch's least time.
#include <neap/backend/host.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/model/nn/transformer.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/resnet.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/training_step.hpp>

#include "../examples/models/bert.hpp"
#include "../examples/models/densenet.hpp"
#include "../examples/models/mlp.hpp"
#include "../examples/models/unet.hpp"
#include "../examples/models/vgg.hpp"
#include "../examples/models/vit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace neap;

namespace {

struct options {
  std::string models = "mlp,cnn,gpt", optimizer = "adamw";
  int threads = 2, steps = 30;
  bool operators = false;
};

// ---- the models ------------------------------------------------------------------------------------------------------

struct cnn {
  struct block {
    nn::conv2d c1, c2;
    nn::batch_norm2d b1, b2;
    nn::conv2d shortcut;  // empty where the shapes agree

    block() = default;
    block(std::int64_t in, std::int64_t out, std::int64_t stride)
        : c1(in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
          c2(out, out, 3, {.padding = 1, .bias = false}),
          b1(out),
          b2(out) {
      if (stride != 1 || in != out) shortcut = nn::conv2d(in, out, 1, {.stride = stride, .bias = false});
    }
    tensor operator()(tensor const& x) const {
      tensor const s = shortcut.weight.is_empty() ? x : shortcut(x);
      return relu(b2(c2(relu(b1(c1(x))))) + s);
    }
    friend auto neap_fields(block& self) { return std::tie(self.c1, self.b1, self.c2, self.b2, self.shortcut); }
    static constexpr std::array neap_names{"c1", "b1", "c2", "b2", "shortcut"};
  };
  nn::conv2d stem{3, 16, 3, {.padding = 1, .bias = false}};
  std::vector<block> blocks{{16, 16, 1}, {16, 32, 2}, {32, 64, 2}};
  nn::linear head{64, 10};

  tensor operator()(tensor x) const {
    x = relu(stem(x));
    for (auto const& b : blocks) x = b(x);
    return head(mean(x, {2, 3}, false));
  }
  friend auto neap_fields(cnn& self) { return std::tie(self.stem, self.blocks, self.head); }
  static constexpr std::array neap_names{"stem", "blocks", "head"};
};

struct gpt {
  static constexpr std::int64_t vocabulary = 8192, width = 256, heads = 8, layers = 4, context = 128;
  nn::embedding tokens{vocabulary, width, 0.02};
  parameter positions{{context, width}, initialiser::normal(0, 0.02)};
  std::vector<nn::transformer_block> blocks;
  nn::layer_norm norm{width};
  nn::linear head{width, vocabulary, {.bias = false}};

  gpt() {
    for (std::int64_t i = 0; i < layers; ++i)
      blocks.emplace_back(width, heads, 4 * width, nn::transformer_options{.attention = {.causal = true}});
  }
  tensor operator()(tensor const& ids) const {
    tensor x = tokens(ids) + positions;
    for (auto const& b : blocks) x = b(x);
    return head(norm(x));
  }
  friend auto neap_fields(gpt& self) {
    return std::tie(self.tokens, self.positions, self.blocks, self.norm, self.head);
  }
  static constexpr std::array neap_names{"tokens", "positions", "blocks", "norm", "head"};
};

/// The U-Net's answer with classes last, as the loss takes them.
struct segmenter {
  zoo::unet net;
  segmenter() {
    zoo::unet_config c;
    c.width = 32;
    net = zoo::unet(c);
  }
  tensor operator()(tensor const& x) const { return permute(net(x), {0, 2, 3, 1}); }
  friend auto neap_fields(segmenter& self) { return std::tie(self.net); }
  static constexpr std::array neap_names{"net"};
};

zoo::vit_config narrow_vit() {
  zoo::vit_config c;
  c.width = 384;
  return c;
}
zoo::bert_config narrow_bert() {
  zoo::bert_config c;
  c.width = 512, c.heads = 8, c.layers = 8, c.hidden = 3072;
  return c;
}
zoo::llama_config narrow_llama() {
  zoo::llama_config c;
  c.vocabulary = 8192, c.context = 128, c.width = 512, c.heads = c.key_heads = 8, c.layers = 6, c.hidden = 1376;
  return c;
}

tensor random_floats(shape const& dims) {
  tensor t = tensor::zeros(dims, dtype::f32);
  random_stream draw(11);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<float>()[i] = static_cast<float>(draw.uniform()) * 2 - 1;
  return t;
}
tensor random_ids(shape const& dims, std::uint32_t below) {
  tensor t = tensor::zeros(dims, dtype::i64);
  random_stream draw(12);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<std::int64_t>()[i] = draw.below(below);
  return t;
}

// ---- measuring -------------------------------------------------------------------------------------------------------

double wall_ms() { return 1e-6 * static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count()); }
double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

plan plan_of(graph const& program, bool planned) {
  memory_options const memory{.alignment = 64, .takeover = planned};
  schedule const order = planned ? memory_greedy{}(program, memory) : given_order{}(program);
  return make_plan(candidate{program, order, simulate(program, order, no_cost{}, memory)}, program, memory);
}

/// Least time of each launch of a step, added up by operator and shape.
template <class Sample>
void print_operators(char const* name, training_program const& step, plan const& p, host_backend& backend,
                     options const& o, Sample const& sample) {
  auto const& g = p.graph;
  arena memory(p.arena_bytes - p.resident_bytes);
  table<storage_id, std::byte*> address(g.storage_count(), nullptr);
  for (auto const& b : p.buffers)
    if (!b.resident) address[b.storage] = memory.data() + (b.offset - p.resident_bytes);
  for (std::size_t i = 0; i < g.sources().size(); ++i)
    for (auto const& r : step.residents)
      if (step.program.sources()[i] == r.value)
        address[g.storage(g.sources()[i])] = static_cast<std::byte*>(r.memory());
  std::size_t k = 0;
  Sample handles = sample;
  std::vector<tensor> batch;
  for_each_tensor(handles, [&](tensor const& x, auto const&) { batch.push_back(x); });
  for (std::size_t i = 0; i < g.sources().size(); ++i)
    if (k < step.inputs.size() && step.program.sources()[i] == step.inputs[k])
      address[g.storage(g.sources()[i])] = static_cast<std::byte*>(batch[k++].ref().data);
  std::vector<double> least(p.steps.size(), 1e9);
  for (int repeat = 0; repeat < o.steps; ++repeat)
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      auto const x = p.steps[i].op;
      if (flow::is_view(g, x)) {
        least[i] = 0;
        continue;
      }
      std::vector<tensor_ref> refs;
      for (auto v : g.inputs(x)) refs.push_back(tensor_ref::place(address[g.storage(v)], g.layout(v)));
      for (auto v : g.outputs(x)) refs.push_back(tensor_ref::place(address[g.storage(v)], g.layout(v)));
      void* const workspace =
          p.steps[i].workspace_bytes ? memory.data() + (p.steps[i].workspace_offset - p.resident_bytes) : nullptr;
      std::span<tensor_ref const> const r(refs);
      auto const arity = g.inputs(x).size();
      double const begin = wall_ms();
      host_kernel(g.facets(x))(backend, g.attributes(x), {r.first(arity), r.subspan(arity), workspace});
      least[i] = std::min(least[i], wall_ms() - begin);
    }
  std::map<std::string, std::pair<double, int>> sums;
  double all = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    auto const x = p.steps[i].op;
    if (flow::is_view(g, x)) continue;
    std::string key(g.facets(x).name);
    for (auto v : g.inputs(x)) key += " " + to_string(g.type(v).dims);
    auto& s = sums[key + " -> " + to_string(g.type(g.output(x)).dims)];
    s.first += least[i], ++s.second, all += least[i];
  }
  std::vector<std::pair<double, std::string>> rows;
  for (auto const& [key, s] : sums) rows.push_back({s.first, std::to_string(s.second) + " x " + key});
  std::sort(rows.rbegin(), rows.rend());
  // What is held when: the step that holds the most, with what it holds, and the next highest steps.
  auto const live_at = [&](std::uint32_t i) {
    bytes_t live = p.resident_bytes + p.steps[i].workspace_bytes;
    for (auto const& b : p.buffers)
      if (!b.resident && b.first <= i && i <= b.last && !(b.first == i && b.takes_over != nothing<storage_id>))
        live += b.bytes;
    return live;
  };
  std::vector<std::pair<bytes_t, std::uint32_t>> highest;
  for (std::uint32_t i = 0; i < p.steps.size(); ++i) highest.push_back({live_at(i), i});
  std::sort(highest.rbegin(), highest.rend());
  auto const [peak, at] = highest[0];
  std::printf("%s: %.3f ms; peak %lld bytes, %lld of them resident, %lld workspace, at %s #%u of %zu:", name, all,
              static_cast<long long>(peak), static_cast<long long>(p.resident_bytes),
              static_cast<long long>(p.steps[at].workspace_bytes), std::string(g.facets(p.steps[at].op).name).c_str(),
              at, p.steps.size());
  for (auto const& b : p.buffers)
    if (!b.resident && b.first <= at && at <= b.last && b.bytes * 50 > peak - p.resident_bytes)
      std::printf(" %s%s %lld",
                  g.producer(g.record(b.storage).first) == nothing<op_id>
                      ? ""
                      : std::string(g.facets(g.producer(g.record(b.storage).first)).name).c_str(),
                  to_string(g.type(g.record(b.storage).first).dims).c_str(), static_cast<long long>(b.bytes));
  std::printf("\n");
  highest.resize(std::min<std::size_t>(highest.size(), 8));
  for (auto const& [bytes, i] : highest)
    std::printf("  %lld bytes at %s #%u, %lld workspace\n", static_cast<long long>(bytes),
                std::string(g.facets(p.steps[i].op).name).c_str(), i,
                static_cast<long long>(p.steps[i].workspace_bytes));
  for (auto const& [ms, key] : rows) std::printf("  %8.3f ms  %s\n", ms, key.c_str());
}

template <class Optimizer, class Make, class Sample>
void measure_with(Optimizer const& optimizer, char const* name, Make const& make, Sample const& sample,
                  options const& o) {
  eager_context const context({.seed = 42, .threads = o.threads});
  host_backend backend(o.threads);
  auto plain_model = make(), planned_model = make();
  // The same first weights.
  auto const from = parameters(plain_model), to = parameters(planned_model);
  for (std::size_t i = 0; i < from.size(); ++i)
    std::memcpy(to[i].ref().data, from[i].ref().data, static_cast<std::size_t>(from[i].type().bytes()));
  auto const plain_step = training_step(plain_model, sample, cross_entropy{}, optimizer);
  auto const planned_step = training_step(planned_model, sample, cross_entropy{}, optimizer);
  auto const plain = plan_of(plain_step.program, false), planned = plan_of(planned_step.program, true);
  if (o.operators) return print_operators(name, planned_step, planned, backend, o, sample);

  trainer run_plain(plain_step, plain, backend), run_planned(planned_step, planned, backend);
  bool equal = true;
  for (int i = 0; i < 3; ++i) {
    double const a = run_plain(sample), b = run_planned(sample);
    equal &= a == b && std::isfinite(a);
  }
  for (std::size_t i = 0; i < from.size(); ++i)
    equal &= !std::memcmp(to[i].ref().data, from[i].ref().data, static_cast<std::size_t>(from[i].type().bytes()));
  if (!equal) {
    std::fprintf(stderr, "%s: planned and plain execution differ, or the loss is not finite\n", name);
    std::exit(1);
  }
  std::vector<double> wall[2], processor[2];
  for (int i = 0; i < o.steps; ++i)
    for (int way = 0; way < 2; ++way) {
      double const w = wall_ms(), c = processor_ms();
      way ? run_planned(sample) : run_plain(sample);
      wall[way].push_back(wall_ms() - w), processor[way].push_back(processor_ms() - c);
    }
  for (int way = 0; way < 2; ++way)
    std::printf("%s,%s,%s,%d,%.3f,%.3f,%.3f,%lld\n", name, way ? "planned" : "plain", o.optimizer.c_str(), o.threads,
                median(wall[way]), *std::min_element(wall[way].begin(), wall[way].end()), median(processor[way]),
                static_cast<long long>((way ? run_planned : run_plain).program().high_water_bytes()));
  std::fflush(stdout);
}

template <class Make, class Sample>
void measure(char const* name, Make const& make, Sample const& sample, options const& o) {
  if (o.optimizer == "sgd") measure_with(sgd{}, name, make, sample, o);
  else measure_with(adamw{}, name, make, sample, o);
}

options read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    std::string const a = argv[i];
    if (a == "--operators") o.operators = true;
    else if (i + 1 < argc && a == "--model") o.models = argv[++i];
    else if (i + 1 < argc && a == "--optimizer") o.optimizer = argv[++i];
    else if (i + 1 < argc && a == "--threads") o.threads = std::atoi(argv[++i]);
    else if (i + 1 < argc && a == "--steps") o.steps = std::max(1, std::atoi(argv[++i]));
    else o.optimizer.clear(), i = argc;
  }
  if (o.optimizer != "adamw" && o.optimizer != "sgd") {
    std::fprintf(stderr,
                 "usage: bench_step_time [--model mlp,cnn,gpt] [--optimizer adamw|sgd] [--threads 2] [--steps 30] "
                 "[--operators]\n");
    std::exit(2);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  auto const o = read_options(argc, argv);
  auto const wants = [&](char const* m) {
    return ("," + o.models + ",").find(std::string(",") + m + ",") != std::string::npos;
  };
  if (!o.operators) std::printf("model,way,optimizer,threads,step_ms,min_ms,cpu_ms,peak_bytes\n");
  if (wants("mlp"))
    measure(
        "mlp",
        [] {
          return zoo::mlp({{1024, 1024, 1024, 1024, 1024}});
        },
        std::pair{random_floats({256, 1024}), random_ids({256}, 1024)}, o);
  if (wants("cnn"))
    measure(
        "cnn", [] { return cnn(); }, std::pair{random_floats({64, 3, 32, 32}), random_ids({64}, 10)}, o);
  if (wants("gpt"))
    measure(
        "gpt", [] { return gpt(); }, std::pair{random_ids({8, 128}, 8192), random_ids({8, 128}, 8192)}, o);

  auto const images = [](std::int64_t n, std::int64_t size) {
    return std::pair{random_floats({n, 3, size, size}), random_ids({n}, 1000)};
  };
  using zoo::resnet_config;
  if (wants("resnet18"))
    measure(
        "resnet18", [] { return zoo::resnet(resnet_config::resnet18()); }, images(16, 224), o);
  if (wants("vit"))
    measure(
        "vit", [] { return zoo::vit(narrow_vit()); }, images(8, 224), o);
  if (wants("bert"))
    measure(
        "bert", [] { return zoo::bert(narrow_bert()); },
        std::pair{random_ids({8, 128}, 30522), random_ids({8, 128}, 30522)}, o);
  if (wants("resnet50"))
    measure(
        "resnet50", [] { return zoo::resnet(resnet_config::resnet50()); }, images(8, 224), o);
  if (wants("vgg11"))
    measure(
        "vgg11", [] { return zoo::vgg(zoo::vgg_config::vgg11()); }, images(8, 224), o);
  if (wants("densenet121"))
    measure(
        "densenet121", [] { return zoo::densenet(); }, images(8, 224), o);
  if (wants("unet"))
    measure(
        "unet", [] { return segmenter(); }, std::pair{random_floats({4, 3, 128, 128}), random_ids({4, 128, 128}, 2)},
        o);
  if (wants("llama"))
    measure(
        "llama", [] { return zoo::llama(narrow_llama()); },
        std::pair{random_ids({8, 128}, 8192), random_ids({8, 128}, 8192)}, o);
}
