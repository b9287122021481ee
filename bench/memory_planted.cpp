// The exact planner on problems whose answer is known: packings that were there before their records, and variants of
// files of MiniMalloc's form. One CSV row a case; every plan is checked first, and one that is called impossible ends
// the program. Kinds and seeds named "held" were not looked at while the search was made.
//   memory_planted [--seconds S] [--nodes N] [--seeds N] [--only TEXT] [--write FOLDER] [FILE...]
//     FILE      a problem with its capacity in the name (A.1048576.csv): its variants are decided too
//     --write   puts each problem into a file of that form, for others (bench/memory_exact_peers.py)
#include <neap/memory/check/check.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/exact/exact.hpp>

#include "../tests/support/packings.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace {

using neap::testing::packing;
using neap::testing::pattern;

struct options {
  neap::node_budget budget{.nodes = std::int64_t{1} << 60, .seconds = 1};
  std::uint64_t seeds = 25;
  std::string only, folder;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Decides one case and prints its row.
void decide(options const& o, std::string const& kind, std::string const& name, bool held, packing const& given) {
  if (!o.only.empty() && kind.find(o.only) == kind.npos) return;
  if (!o.folder.empty()) {
    neap::allocation_file file;
    for (auto const& r : given.records) {
      file.ids.push_back(std::to_string(file.ids.size()));
      file.records.push_back(r);
    }
    std::ofstream out(o.folder + "/" + name + "." + std::to_string(given.capacity) + ".csv", std::ios::binary);
    out << neap::write_minimalloc_csv(file, nullptr);
  }
  neap::memory_problem const problem(given.records);
  double const begin = cpu_seconds();
  auto const plan = neap::exact{.capacity = given.capacity, .budget = o.budget}(problem);
  double const spent = cpu_seconds() - begin;
  if (auto const right = neap::verify(problem, plan); !right || plan.arena_bytes > given.capacity) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), right ? "the plan passes the capacity" : right.message().c_str());
    std::exit(1);
  }
  if (plan.status == neap::plan_status::infeasible) {
    std::fprintf(stderr, "%s: called impossible: %s\n", name.c_str(), plan.why.message().c_str());
    std::exit(1);
  }
  std::printf("%s,%s,%s,%zu,%lld,%s,%lld,%.4f\n", kind.c_str(), name.c_str(), held ? "held" : "tuned", problem.count(),
              static_cast<long long>(given.capacity), has_offsets(plan) ? "found" : "missed",
              static_cast<long long>(plan.work), spent);
  std::fflush(stdout);
}

/// From seed 1000 on they are held.
template <class Make>
void draw(options const& o, std::string const& kind, bool held, Make&& make) {
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1000}})
    for (std::uint64_t seed = first; seed < first + o.seeds; ++seed) {
      std::string name = kind + "-" + std::to_string(seed);
      for (char& c : name)
        if (c == ' ') c = '-';
      decide(o, kind, name, held || first > 0, make(seed));
    }
}

void planted_kinds(options const& o) {
  struct size {
    char const* name;
    int records;
    std::int64_t moments, bytes;
    double holes;
    bool held;
  };
  static constexpr size sizes[] = {{"30 in 20", 30, 20, 1000, 0, false},
                                   {"80 in 20", 80, 20, 1000, 0, false},
                                   {"80 in 20 fine", 80, 20, 1'000'000, 0, true},
                                   {"80 in 8", 80, 8, 1000, 0, true},
                                   {"80 in 100 holes", 80, 100, 1024, 0.05, true},
                                   {"150 in 100", 150, 100, 1'000'000, 0, true},
                                   {"150 in 1000", 150, 1000, 1000, 0, false},
                                   {"150 in 1000 holes", 150, 1000, 1000, 0.05, false},
                                   {"150 in 1000 fine holes", 150, 1000, 1'000'000, 0.05, true},
                                   {"150 in 20 holes", 150, 20, 4096, 0.05, true}};
  for (auto kind : {pattern::guillotine, pattern::corners, pattern::pinwheel, pattern::slabs})
    for (auto const& s : sizes)
      draw(o, std::string(neap::testing::pattern_names[static_cast<std::size_t>(kind)]) + " " + s.name,
           s.held || kind == pattern::pinwheel || kind == pattern::slabs, [&](std::uint64_t seed) {
             return neap::testing::planted({kind, s.records, s.moments, s.bytes, s.holes}, seed);
           });
}

void variants(options const& o, std::vector<std::pair<std::string, packing>> const& files) {
  using namespace neap::testing;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto const& [name, p] = files[i];
    auto const& [next_name, next] = files[(i + 1) % files.size()];
    decide(o, "as given", name, false, p);
    decide(o, "reversed", name + "-reversed", false, reversed(p));
    decide(o, "ranked", name + "-ranked", false, by_rank(p));
    decide(o, "stretched", name + "-stretched", true, stretched(p, i));
    decide(o, "scaled", name + "-scaled", true, scaled(p, 3));
    decide(o, "ranked reversed", name + "-ranked-reversed", true, reversed(by_rank(p)));
    decide(o, "side by side", name + "-" + next_name, false, side_by_side(p, next));
    decide(o, "joined", name + "-" + next_name + "-joined", true, side_by_side(reversed(p), p));
    for (int k = 0; k < 4; ++k)
      decide(o, "window", name + "-window-" + std::to_string(k), k % 2 == 1, window(p, 0.15 * k, 0.15 * k + 0.5));
    if (!p.offsets.empty())
      for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1000}})
        for (std::uint64_t seed = first; seed < first + o.seeds; ++seed)
          for (int tenths : {1, 3, 6})
            decide(o, "refilled " + std::to_string(tenths) + "0 %",
                   name + "-refilled-" + std::to_string(tenths) + "-" + std::to_string(seed), first > 0,
                   refilled(p, seed, 0.1 * tenths));
  }
}

packing read(std::string const& path, bool with_offsets) {
  std::ifstream in(path, std::ios::binary);
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  auto const file = neap::read_minimalloc_csv(text);
  auto const dot = path.find('.', path.find_last_of('/') + 1);
  if (!file || dot == path.npos || std::atoll(path.c_str() + dot + 1) <= 0) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), file ? "no capacity in its name" : file.message().c_str());
    std::exit(2);
  }
  packing p;
  p.records = file->records;
  p.capacity = std::atoll(path.c_str() + dot + 1);
  if (with_offsets) p.offsets = neap::exact{.capacity = p.capacity, .budget = {.nodes = 10'000'000}}(p.records).offsets;
  return p;
}

}  // namespace

int main(int count, char** arguments) {
  options o;
  std::vector<std::string> paths;
  for (int a = 1; a < count; ++a) {
    std::string const word = arguments[a];
    bool const more = a + 1 < count;
    if (word == "--seconds" && more) o.budget.seconds = std::atof(arguments[++a]);
    else if (word == "--nodes" && more) o.budget = {.nodes = std::atoll(arguments[++a])};  // the same answer everywhere
    else if (word == "--seeds" && more) o.seeds = static_cast<std::uint64_t>(std::atoll(arguments[++a]));
    else if (word == "--only" && more) o.only = arguments[++a];
    else if (word == "--write" && more) o.folder = arguments[++a];
    else paths.push_back(word);
  }
  std::vector<std::pair<std::string, packing>> files;
  for (auto const& path : paths)  // what is decided as given alone needs no packing of it to begin with
    files.emplace_back(path.substr(path.find_last_of('/') + 1, 1), read(path, o.only != "as given"));
  std::puts("kind,case,half,records,capacity_bytes,answer,nodes,cpu_s");
  planted_kinds(o);
  variants(o, files);
}
