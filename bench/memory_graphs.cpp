// Training graphs in the order in which they were exported: do their offsets reach the bound? One CSV row a graph and
// way to count memory. Every plan is verified first; a bound that is not reached is told with what is known.
//
//   bench_memory_graphs [--seconds S] GRAPH...      S: the exact planner's budget of time, 10 by default
//
// memory: "plain" counts bytes as they are and gives no buffer another's bytes in place; "aligned" rounds to 64 bytes and
// takes over. planner: the first that proved the answer; cpu_s is of the planner alone, from records to offsets.
#include <neap/import/graph_file.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/check/fragmentation.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/lifetimes.hpp>
#include <neap/memory/planner.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool report(std::string const& name, neap::io::imported_graph const& g, char const* memory,
            neap::memory_options options, double seconds) {
  neap::flow_facts const facts(g.program, neap::no_cost{}, options);
  auto const simulated = neap::simulator{}(facts, g.order);
  auto const l = neap::lifetimes(facts, g.order, simulated);
  neap::memory_problem const problem(l.records);
  double const begin = cpu_seconds();
  char const* planner = "default";
  auto plan = neap::default_planner{}(problem);
  if (plan.status == neap::plan_status::feasible) {
    planner = "exact";
    plan = neap::exact{.budget = {.nodes = std::int64_t{1} << 60, .seconds = seconds}}(problem);
  }
  double const spent = cpu_seconds() - begin;
  if (auto const right = neap::verify(problem, plan); !right) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), right.message().c_str());
    return false;
  }
  auto const fragmented = neap::fragmentation(problem, plan);
  bool const optimal = plan.status == neap::plan_status::optimal;
  char const* why = "";
  if (!optimal) why = "search ended by its budget";
  else if (fragmented.lost_bytes() > 0) why = "no layout meets the largest load (proved)";
  std::printf("%s,%s,%zu,%lld,%lld,%lld,%lld,%lld,%s,%s,%lld,%.6f,%s\n", name.c_str(), memory, problem.count(),
              static_cast<long long>(facts.resident_bytes()), static_cast<long long>(plan.lower_bound_bytes),
              static_cast<long long>(plan.arena_bytes), static_cast<long long>(fragmented.lost_bytes()),
              static_cast<long long>(fragmented.load_moment), planner, optimal ? "optimal" : "feasible",
              static_cast<long long>(plan.work), spent, why);
  std::fflush(stdout);
  return simulated.peak_bytes == facts.resident_bytes() + fragmented.largest_load;
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = 10;
  bool right = true;
  std::puts(
      "graph,memory,records,resident_bytes,bound_bytes,arena_bytes,fragmentation_bytes,certifying_position,planner,"
      "status,nodes,cpu_s,why");
  for (int a = 1; a < count; ++a) {
    std::string const path = arguments[a];
    if (path == "--seconds" && a + 1 < count) {
      seconds = std::atof(arguments[++a]);
      continue;
    }
    auto const g = neap::io::read_graph(path);
    if (!g) {
      std::fprintf(stderr, "%s\n", g.message().c_str());
      return 2;
    }
    std::string name = path.substr(path.find_last_of('/') + 1);
    name = name.substr(0, name.find(".json"));
    right &= report(name, *g, "plain", {.alignment = 1, .takeover = false}, seconds);
    right &= report(name, *g, "aligned", {.alignment = 64, .takeover = true}, seconds);
  }
  return right ? 0 : 1;
}
