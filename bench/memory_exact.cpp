// The exact planner on files of MiniMalloc's form: one CSV row a file and question. Every plan is verified first.
//   memory_exact [--seconds S] [--nodes N] [--threads T] FILE...      a capacity in the file's name (A.1048576.csv) is decided too
#include <neap/memory/check/check.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/exact/exact.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double spent_in_all = 0;

bool report(std::string const& name, char const* question, neap::exact const& planner,
            neap::memory_problem const& problem) {
  static constexpr char const* names[] = {"optimal", "feasible", "infeasible", "budget spent"};
  double const begin = cpu_seconds(), wall_begin = wall_seconds();
  auto const plan = planner(problem);
  double const spent = cpu_seconds() - begin, wall = wall_seconds() - wall_begin;
  spent_in_all += spent;
  if (auto const right = neap::verify(problem, plan); !right) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), right.message().c_str());
    return false;
  }
  std::printf("%s,%zu,%s,%lld,%lld,%.6f,%s,%lld,%.4f,%.4f\n", name.c_str(), problem.count(), question,
              static_cast<long long>(plan.lower_bound_bytes), static_cast<long long>(plan.arena_bytes),
              plan.lower_bound_bytes > 0 ? double(plan.arena_bytes) / double(plan.lower_bound_bytes) : 1.0,
              names[static_cast<int>(plan.status)], static_cast<long long>(plan.work), spent, wall);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  neap::exact planner{.budget = {.nodes = std::int64_t{1} << 60, .seconds = 1}};
  bool right = true;
  std::puts("instance,records,question,bound_bytes,arena_bytes,ratio,status,nodes,cpu_s,wall_s");
  for (int a = 1; a < count; ++a) {
    std::string const path = arguments[a];
    if (path == "--seconds" && a + 1 < count) {
      planner.budget.seconds = std::atof(arguments[++a]);
      continue;
    }
    if (path == "--nodes" && a + 1 < count) {  // instead of seconds: the same answer everywhere
      planner.budget = {.nodes = std::atoll(arguments[++a])};
      continue;
    }
    if (path == "--threads" && a + 1 < count) {
      planner.threads = static_cast<unsigned>(std::atoi(arguments[++a]));
      continue;
    }
    std::ifstream in(path, std::ios::binary);
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    auto const file = neap::read_minimalloc_csv(text);
    if (!file) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), file.message().c_str());
      return 2;
    }
    neap::memory_problem const problem(file->records);
    std::string const name = path.substr(path.find_last_of('/') + 1);
    if (auto const dot = name.find('.'); dot != name.npos && std::atoll(name.c_str() + dot + 1) > 0) {
      neap::exact decide = planner;
      decide.capacity = std::atoll(name.c_str() + dot + 1);
      right &= report(name, "capacity", decide, problem);
    }
    right &= report(name, "smallest", planner, problem);
  }
  std::fprintf(stderr, "%.3f s of CPU in all\n", spent_in_all);
  return right ? 0 : 1;
}
