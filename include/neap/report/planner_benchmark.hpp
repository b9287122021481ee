// Microbenchmarks of planners: what each part of planning takes on a graph, one's own schedulers, pipelines of mutators, cost
// models and allocators beside the library's.
//
//   planner_benchmark bench{"my model", step.program};
//   bench.scheduler("mine", my_scheduler{}).moves("mine", my_moves).allocator("mine", my_planner{});
//   bench.run();
//   std::fputs(bench.table().c_str(), stdout);        // or bench.csv()
//
// Plain clocks: the least and the median of rounds that are long enough to be read. With google-benchmark, include
// <benchmark/benchmark.h> before this header, call bench.add_to_google_benchmark() in place of run(), and let its main run
// the cases.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/memory/planner.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// One case: a part of planning, by one planner, on a graph.
struct benchmark_row {
  std::string graph, part, who;
  double least = 0, median = 0;  // seconds a call
  double result = 0;             // what came out, in `unit`: so that fast and bad is seen
  std::string unit;
};

struct benchmark_options {
  double seconds = 0.2;          // of each case
  int rounds = 11;               // measured, each of as many calls as make it long enough
  double ratio = 0.7;            // the memory limit of whole searches, of the original peak
  std::size_t candidates = 200;  // that a search judges
};

class planner_benchmark {
 public:
  /// `program` is copied. Times of ops come from `cost`, for simulation and search.
  explicit planner_benchmark(std::string name, op_graph program, benchmark_options const& o = {})
      : shared_(std::make_shared<shared>(shared{std::move(name), std::move(program), o, {}, {}, {}})) {
    auto& s = *shared_;
    s.facts = flow_facts(s.program, roofline::host(1), memory_options{});
    s.order = given_order{}(s.program);
    s.simulated = simulate(s.program, s.order, roofline::host(1));
    add("facts", "neap", "ops", [p = shared_] {
      return static_cast<double>(flow_facts(p->program, roofline::host(1), memory_options{}).op_count());
    });
    scheduler("given order", given_order{}).scheduler("memory greedy", memory_greedy{});
    cost_model("roofline", roofline::host(1));
    allocator("default", default_planner{}).allocator("greedy by size", greedy_by_size{});
    moves("rematerialize", rematerialize{});
  }

  /// Time to order the graph; the result is the peak in bytes.
  template <class S>
  planner_benchmark& scheduler(std::string who, S s) {
    static_assert(
        scheduler_for<S, op_graph>,
        "neap: this is no scheduler of this graph: it lacks  neap::schedule operator()(neap::graph const&) const");
    return add("schedule", std::move(who), "peak bytes", [p = shared_, s] {
      auto const order = s(p->program);
      return static_cast<double>(simulator{}.peak(p->facts, order));
    });
  }
  /// Time to ask a cost model for every op; the result is the step's seconds.
  template <class C>
  planner_benchmark& cost_model(std::string who, C c) {
    static_assert(detail::check_cost_model<C, op_graph>());
    add("cost", who, "seconds", [p = shared_, c] {
      double sum = 0;
      for (auto o : id_range<op_id>(flow::op_count(p->program))) sum += c(p->program, o);
      return sum;
    });
    return add("simulate", std::move(who), "latency",
               [p = shared_, c] { return simulate(p->program, p->order, c).latency; });
  }
  /// Time to place the lives of the given order; the result is the arena in bytes.
  template <class P>
  planner_benchmark& allocator(std::string who, P planner) {
    static_assert(detail::check_planner<P>());
    return add("allocate", std::move(who), "arena bytes", [p = shared_, planner] {
      candidate c{p->program, p->order, p->simulated};
      return static_cast<double>(make_plan(std::move(c), p->program, memory_options{}, planner).arena_bytes);
    });
  }
  /// Times to draw a mutation, to apply one, to judge what it gives, and of a whole search; the result of the search is its
  /// peak in bytes.
  template <class M>
  planner_benchmark& moves(std::string who, M m) {
    static_assert(detail::check_leaf<M>());
    auto const from = [](shared const& s) { return candidate{s.program, s.order, s.simulated}; };
    add("draw all", who, "mutations", [p = shared_, m, c = from(*shared_)] {
      auto stream = m(c);
      double n = 0;
      while (stream.next()) ++n;
      return n;
    });
    add("apply first", who, "ops", [p = shared_, m, c = from(*shared_)] {
      auto stream = m(c);
      auto const first = stream.next();
      if (!first) return 0.0;
      auto const e = apply_mutation(*first, c);
      return e ? static_cast<double>(e->graph.op_count()) : 0.0;
    });
    add("judge first", who, "peak bytes", [p = shared_, m, c = from(*shared_)] {
      auto stream = m(c);
      auto const first = stream.next();
      auto const e = first ? apply_mutation(*first, c) : std::nullopt;
      return e ? static_cast<double>(simulate(e->graph, e->order, roofline::host(1)).peak_bytes) : 0.0;
    });
    return add("search", std::move(who), "peak bytes", [p = shared_, m] {
      search_options few;
      few.iterations = p->options.candidates;
      auto const found = optimize(p->program, m, few, memory_limit::of_original(p->options.ratio));
      return static_cast<double>(found.best.result.peak_bytes);
    });
  }

  /// Measures all cases with plain clocks.
  std::vector<benchmark_row> const& run() {
    rows_.clear();
    for (auto const& c : cases_) rows_.push_back(measure(c));
    return rows_;
  }
  std::vector<benchmark_row> const& rows() const { return rows_; }

#if defined(BENCHMARK)
  /// Registers all cases; their results are counters.
  void add_to_google_benchmark() const {
    for (auto const& c : cases_)
      benchmark::RegisterBenchmark((shared_->name + "/" + c.part + "/" + c.who).c_str(),
                                   [f = c.call, unit = c.unit](benchmark::State& state) {
                                     double result = 0;
                                     for (auto _ : state) benchmark::DoNotOptimize(result = f->call());
                                     state.counters[unit] = result;
                                   });
  }
#endif

  /// The rows for people, and as CSV.
  std::string table() const {
    std::string text = shared_->name + "\n";
    char line[160];
    for (auto const& r : rows_) {
      std::snprintf(line, sizeof line, "  %-12s %-18s %12.3f us  (median %.3f)   %.6g %s\n", r.part.c_str(),
                    r.who.c_str(), 1e6 * r.least, 1e6 * r.median, r.result, r.unit.c_str());
      text += line;
    }
    return text;
  }
  std::string csv() const {
    std::string text = "graph,part,who,least_us,median_us,result,unit\n";
    char numbers[96];
    for (auto const& r : rows_) {
      std::snprintf(numbers, sizeof numbers, ",%.4f,%.4f,%.9g,", 1e6 * r.least, 1e6 * r.median, r.result);
      text += quoted(r.graph) + "," + r.part + "," + quoted(r.who) + numbers + r.unit + "\n";
    }
    return text;
  }

 private:
  struct shared {
    std::string name;
    op_graph program;
    benchmark_options options;
    flow_facts facts;
    schedule order;
    simulation simulated;
  };
  struct any_call {
    virtual ~any_call() = default;
    virtual double call() const = 0;
  };
  template <class F>
  struct call_of final : any_call {
    explicit call_of(F x) : f(std::move(x)) {}
    double call() const override { return f(); }
    F f;
  };
  struct one_case {
    std::string part, who, unit;
    std::shared_ptr<any_call const> call;
  };

  template <class F>
  planner_benchmark& add(char const* part, std::string who, char const* unit, F f) {
    cases_.push_back({part, std::move(who), unit, std::make_shared<call_of<F>>(std::move(f))});
    return *this;
  }
  static std::string quoted(std::string const& s) {
    if (s.find_first_of(",\"\n") == s.npos) return s;
    std::string q = "\"";
    for (char c : s) q += c == '"' ? std::string("\"\"") : std::string(1, c);
    return q + "\"";
  }

  benchmark_row measure(one_case const& c) const {
    using clock = std::chrono::steady_clock;
    auto const& o = shared_->options;
    benchmark_row row{shared_->name, c.part, c.who, 0, 0, c.call->call(), c.unit};
    auto const rounds = std::max(o.rounds, 1);
    auto const time = [&](int calls) {
      auto const t = clock::now();
      for (int i = 0; i < calls; ++i) keep_ = c.call->call();
      return std::chrono::duration<double>(clock::now() - t).count() / calls;
    };
    double const once = time(1);
    int const calls = static_cast<int>(std::clamp(o.seconds / rounds / std::max(once, 1e-9), 1.0, 1e6));
    std::vector<double> all;
    for (double spent = 0; static_cast<int>(all.size()) < rounds && (all.empty() || spent < o.seconds);) {
      all.push_back(time(calls));
      spent += all.back() * calls;
    }
    std::sort(all.begin(), all.end());
    row.least = all.front(), row.median = all[all.size() / 2];
    return row;
  }

  std::shared_ptr<shared> shared_;  // the cases look at it
  std::vector<one_case> cases_;
  std::vector<benchmark_row> rows_;
  double mutable volatile keep_ = 0;  // so that no call is left out
};

}}  // namespace neap::v0
