// What a call of a compiled function costs beside its operators: guards, look-ups, recording. Each case first checks that
// the compiled function gives what the plain one gives.
//
//   bench_capture_overhead [--rounds 7] [--only NAME]
//
// One CSV row a case: case, size, variant, ns of processor time. A row is the median of rounds of the mean of many calls:
//   reads       a call that asks `size` tracked values and runs no operator: steady (nothing written since the last call),
//               after_one_write, after_all_writes, and plain (the function itself)
//   graphs      a call of one small operator whose `size` graphs alternate, chosen by tracked flags (states), by a plain
//               argument (plain) or by the extent of a tensor (shapes)
//   operator    one state and one operator on 4 floats: compiled, plain, and the operator alone (eager)
//   recording   an operator on 4 floats in a program of `size`: eager, recorded, and recorded and made a graph
//   step        a training step of a perceptron, `size` operators: compiled; the same plan run by itself, all sources bound
//               beforehand; trainer, whose program has fewer operators (trainer_of_N), and its plan by itself. The last row
//               is a hit over the trainer's call of the same plan: compiled / (plan_alone + trainer - trainer_plan_alone)
#include <neap/execute/compile.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace neap;

namespace {

int rounds = 7;
std::string only;

/// Processor time of one call: all cases run on one thread, and the machine may have other work.
template <class F>
double mean_ns(F const& f, double at_least = 0.02) {
  for (long n = 1;; n *= 4) {
    auto const begin = std::clock();
    for (long i = 0; i < n; ++i) f();
    auto const took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (took > at_least || n > (1L << 28)) return took / static_cast<double>(n) * 1e9;
  }
}
double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}
void row(std::string_view what, std::size_t size, std::string_view variant, double ns) {
  std::printf("%.*s,%zu,%.*s,%.1f\n", static_cast<int>(what.size()), what.data(), size,
              static_cast<int>(variant.size()), variant.data(), ns);
  std::fflush(stdout);
}
/// Rows of functions that are timed in turn.
struct timed {
  std::string variant;
  std::function<void()> run;
  std::function<void()> prepare = [] {};  // before each round
};
std::vector<double> rows(std::string_view what, std::size_t size, std::vector<timed> const& all) {
  std::vector<std::vector<double>> ns(all.size());
  for (int r = 0; r < rounds; ++r)
    for (std::size_t k = 0; k < all.size(); ++k) all[k].prepare(), ns[k].push_back(mean_ns(all[k].run));
  std::vector<double> medians;
  for (std::size_t k = 0; k < all.size(); ++k)
    medians.push_back(median(ns[k])), row(what, size, all[k].variant, medians[k]);
  return medians;
}
void require(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "capture_overhead: wrong answer: %s\n", what);
  std::exit(EXIT_FAILURE);
}
bool same(tensor const& a, tensor const& b) { return a.values<float>() == b.values<float>(); }

// ---- reads of tracked values -------------------------------------------------------------------------------------------

struct many {
  std::vector<state<int>> cells;
};
int count_positive(many& m, tensor const&) {
  int n = 0;
  for (auto& c : m.cells) n += c > 0 ? 1 : 0;
  return n;
}
void reads(std::size_t size) {
  many m{std::vector<state<int>>(size)};
  for (std::size_t i = 0; i < size; ++i) m.cells[i] = static_cast<int>(i % 3) + 1;
  tensor const x = tensor::ones({4});
  auto step = compile(&count_positive);
  require(step(m, x) == static_cast<int>(size) && step(m, x) == static_cast<int>(size), "reads");
  m.cells[size / 2] = -1;
  require(step(m, x) == static_cast<int>(size) - 1, "reads after a write");
  m.cells[size / 2] = 7;
  require(step(m, x) == static_cast<int>(size) && step.graphs() == 2, "reads after another write");
  int n = 0;
  std::size_t at = 0;
  rows("reads", size,
       {{"steady", [&] { n += step(m, x); }},
        {"after_one_write",
         [&] {
           m.cells[at = (at + 1) % size] = 1 + static_cast<int>(n & 1);
           n += step(m, x);
         }},
        {"after_all_writes",
         [&] {
           for (auto& c : m.cells) c = 1 + (n & 7);
           n += step(m, x);
         }},
        {"plain", [&] { n += count_positive(m, x); }}});
}

// ---- look-ups among graphs ---------------------------------------------------------------------------------------------

struct flags {
  std::array<state<bool>, 7> all;
};
tensor by_flags(flags& f, tensor const& x) {
  int k = 0;
  for (auto& each : f.all) k = 2 * k + (each ? 1 : 0);
  return x * static_cast<double>(k);
}
tensor by_plain(int k, tensor const& x) { return x * static_cast<double>(k); }
tensor by_shape(tensor const& x) { return x * 2.0; }

void graphs(std::size_t size) {
  flags f;
  tensor const x = tensor::ones({4});
  auto states = compile(&by_flags, {.graphs = 200, .threads = 1});
  auto plain = compile(&by_plain, {.graphs = 200, .threads = 1});
  auto shapes = compile(&by_shape, {.graphs = 200, .threads = 1});
  std::vector<tensor> inputs;
  for (std::size_t k = 0; k < size; ++k) inputs.push_back(tensor::ones({static_cast<std::int64_t>(k + 1)}));
  std::size_t now = 0;
  auto const next = [&] { return now = (now + 1) % size; };
  auto const set = [&](std::size_t k) {
    for (std::size_t b = 0; b < 7; ++b) f.all[b] = (k >> b & 1) != 0;
  };
  for (std::size_t k = 0; k < 3 * size; ++k) {
    set(next());
    require(same(states(f, x), by_flags(f, x)), "graphs by states");
    require(same(plain(static_cast<int>(now), x), by_plain(static_cast<int>(now), x)), "graphs by a plain value");
    require(same(shapes(inputs[now]), by_shape(inputs[now])), "graphs by shapes");
  }
  require(states.graphs() == size && plain.graphs() == size && shapes.graphs() == size, "number of graphs");
  rows("graphs", size,
       {{"states", [&] { set(next()), (void)states(f, x); }},
        {"plain", [&] { (void)plain(static_cast<int>(next()), x); }},
        {"shapes", [&] { (void)shapes(inputs[next()]); }}});
}

// ---- one operator ------------------------------------------------------------------------------------------------------

struct counter {
  state<int> n{0};
};
tensor count(counter& c, tensor const& x) {
  ++c.n;
  return x * c.n;
}
void one_operator() {
  counter a, b;
  tensor const x = tensor::ones({4});
  auto step = compile(&count, {.threads = 1});
  for (int i = 0; i < 4; ++i) require(same(step(a, x), count(b, x)), "one operator");
  rows("operator", 1,
       {{"compiled", [&] { (void)step(a, x); }}, {"plain", [&] { (void)count(b, x); }}, {"eager", [&] {
                                                                                           (void)(x * 2.0);
                                                                                         }}});
}

// ---- recording ---------------------------------------------------------------------------------------------------------

void recording(std::size_t size) {
  tensor x = tensor::ones({4});
  auto const program = [&] {
    tensor y = x;
    for (std::size_t i = 0; i < size; ++i) y = i % 2 ? tanh(y) : relu(y);
    return y;
  };
  tensor const expected = program();
  auto const record = [&](bool builds) {
    detail::argument_state begin;
    begin.visit(x);
    begin.ask_places(true);
    detail::expression_tape tape;
    detail::host_log log;
    detail::recorder rec(begin, tape, log);
    tensor y = program();
    if (builds) {
      detail::captured_path p;
      p.end.result.push_back(rec.leave(y));
      rec.finish(p, {});
      require(p.stages.front().program.op_count() == size, "recorded graph");
    }
    rec.stop();
    return y;
  };
  require(same(record(false), expected) && same(record(true), expected), "recording");
  std::vector<double> eager, recorded, built;
  for (int r = 0; r < rounds; ++r) {
    eager.push_back(mean_ns(program) / static_cast<double>(size));
    recorded.push_back(mean_ns([&] { (void)record(false); }) / static_cast<double>(size));
    built.push_back(mean_ns([&] { (void)record(true); }) / static_cast<double>(size));
  }
  row("recording", size, "eager", median(eager));
  row("recording", size, "recorded", median(recorded));
  row("recording", size, "recorded_and_built", median(built));
}

// ---- a training step ---------------------------------------------------------------------------------------------------

struct perceptron {
  nn::linear up, down;
  tensor operator()(tensor const& x) const { return down(relu(up(x))); }
};
tensor descend(perceptron& m, tensor const& x, tensor const& y) {
  auto const weights = parameters(m);
  tensor const loss = cross_entropy{}(m(x), y);
  auto const g = grad(loss, weights);
  for (std::size_t i = 0; i < g.size(); ++i) assign(weights[i], weights[i] - g[i] * 0.1);
  return loss;
}
void training(std::int64_t width) {
  perceptron a{{width, width}, {width, 4}}, b{{width, width}, {width, 4}}, c{{width, width}, {width, 4}};
  initialise(a, 1), initialise(b, 1), initialise(c, 1);
  std::int64_t const n = 8;
  tensor const x = tensor::randn({n, width}, 3);
  tensor const y = tensor::from(std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3}, {n});
  std::optional<plan> planned;
  auto step = compile(&descend,
                      [&](graph const& g) {
                        planned = plan_in_order(g);
                        return *planned;
                      },
                      {.threads = 1});
  for (int i = 0; i < 4; ++i) require(same(step(a, x, y), descend(b, x, y)), "training step");

  // Plans by themselves: their sources once and for all at the weights and the batch of c.
  host_backend backend(1);
  std::vector<std::pair<tensor, std::vector<std::byte>>> memory;  // of a source, and its first contents
  auto const bound = [&](graph const& g) {
    std::vector<source_binding> sources;
    for (auto v : g.sources()) {
      tensor const to = tensor::ones(g.type(v).dims, g.type(v).element);
      tensor from = to;
      for (auto const& w : parameters(c))
        if (w.type() == to.type()) from = w;
      if (x.type() == to.type()) from = x;
      if (y.type() == to.type()) from = y;
      auto const* const first = from.storage()->data();
      memory.emplace_back(to, std::vector<std::byte>(first, first + from.storage()->bytes()));
      sources.push_back({v, to.storage()->data()});
    }
    return sources;
  };
  auto const restart = [&] {
    for (auto const& [to, first] : memory) std::memcpy(to.storage()->data(), first.data(), first.size());
  };
  auto const& g = planned->graph;
  executable<host_backend> alone(*planned, bound(g), backend);
  auto const program = training_step(c, std::pair{x, y}, cross_entropy{}, sgd{.rate = 0.1});
  auto const of_trainer = plan_in_order(program.program);
  executable<host_backend> trainers(of_trainer, bound(of_trainer.graph), backend);
  trainer run(program, of_trainer, backend);
  std::pair const batch{x, y};
  (void)run(batch);
  auto const name = "trainer_of_" + std::to_string(program.program.op_count());
  auto const ns = rows("step", g.op_count(),
                       {{"compiled", [&] { (void)step(a, x, y); }},
                        {"plan_alone", [&] { alone(); }, restart},
                        {name, [&] { (void)run(batch); }},
                        {name + "_plan_alone", [&] { trainers(); }, restart},
                        {"plain", [&] { (void)descend(b, x, y); }}});
  std::printf("step,%zu,compiled_over_trainer,%.3f\n", g.op_count(), ns[0] / (ns[1] + ns[2] - ns[3]));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (std::string_view(argv[i]) == "--only") only = argv[i + 1];
  }
  eager_context const eager{{.threads = 1}};
  std::printf("case,size,variant,ns\n");
  auto const wanted = [](char const* what) { return only.empty() || only == what; };
  if (wanted("reads"))
    for (std::size_t n : {1u, 10u, 100u, 1000u}) reads(n);
  if (wanted("graphs"))
    for (std::size_t n : {1u, 8u, 32u, 128u}) graphs(n);
  if (wanted("operator")) one_operator();
  if (wanted("recording")) recording(100), recording(1000);
  if (wanted("step")) training(8), training(64);
}
