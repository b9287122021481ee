// Greedy planners and improvement at scale: one CSV row per file and planner. Arguments: CSV files in MiniMalloc's form.
// bench/memory_scale_peers.py runs it beside OmniMalloc. With --only PLANNER one planner alone, so that the last column
// (the most memory of the process so far, in kB, the file included) is its own.
#include "process.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/combine.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/planner.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace {

struct plain_record {  // nothing but a life and a size: absent properties cost nothing
  std::int64_t lower, upper, size;
};

std::string only;  // the planner asked for, or empty

template <class Planner>
bool report(std::string const& name, char const* planner_name, Planner const& planner,
            std::vector<plain_record> const& records) {
  if (!only.empty() && only != planner_name) return true;
  double const begin = cpu_seconds();
  auto const plan = planner(records);
  double const spent = cpu_seconds() - begin;
  long const peak = peak_kb();
  if (auto const right = neap::verify(records, plan); !right) {
    std::fprintf(stderr, "%s %s: %s\n", name.c_str(), planner_name, right.message().c_str());
    return false;
  }
  std::printf("%s,%zu,%s,%lld,%lld,%.6f,%s,%.4f,%ld\n", name.c_str(), records.size(), planner_name,
              static_cast<long long>(plan.lower_bound_bytes), static_cast<long long>(plan.arena_bytes),
              plan.lower_bound_bytes ? double(plan.arena_bytes) / double(plan.lower_bound_bytes) : 1.0,
              plan.status == neap::plan_status::optimal ? "optimal" : "feasible", spent, peak);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  std::puts("instance,records,planner,bound_bytes,arena_bytes,ratio,status,cpu_s,peak_kb");
  bool right = true;
  for (int a = 1; a < count; ++a) {
    if (std::string(arguments[a]) == "--only" && a + 1 < count) {
      only = arguments[++a];
      continue;
    }
    std::ifstream in(arguments[a], std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    auto file = neap::read_minimalloc_csv(text);
    if (!file) {
      std::fprintf(stderr, "%s: %s\n", arguments[a], file.message().c_str());
      return 2;
    }
    std::vector<plain_record> records;
    records.reserve(file->records.size());
    for (auto const& r : file->records) records.push_back({r.lower, r.upper, r.size});
    file->records.clear();
    file->records.shrink_to_fit();
    text = {};
    std::string const name = std::string(arguments[a]).substr(std::string(arguments[a]).find_last_of('/') + 1);
    for (auto [label, order] : {std::pair{"plateau TWA", neap::order_twa}, std::pair{"plateau TAW", neap::order_taw},
                                std::pair{"plateau WAT", neap::order_wat}, std::pair{"plateau AWT", neap::order_awt}})
      right &= report(name, label, neap::lowest_plateau{order}, records);
    right &= report(name, "default", neap::default_planner{}, records);
    if (records.size() > 20000) continue;
    for (auto [label, order] : {std::pair{"first fit size", neap::fit_order{0, 0}},
                                std::pair{"first fit size conflicts", neap::fit_order{4, 0}},
                                std::pair{"first fit size conflicts load", neap::fit_order{2, 15}}})
      right &= report(name, label, neap::first_fit{order}, records);
    right &= report(name, "improved first fit", improve(neap::first_fit{{4, 0}}, {.placements = 160'000}), records);
    right &= report(name, "greedy by size", neap::greedy_by_size{}, records);
  }
  return right ? 0 : 1;
}
