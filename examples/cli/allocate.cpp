// neap allocate: offsets for usage records in MiniMalloc's CSV form.
#include "common.hpp"

#include <neap/import/file.hpp>
#include <neap/memory/check.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/exact.hpp>
#include <neap/memory/greedy_by_size.hpp>
#include <neap/memory/planner.hpp>
#include <neap/report/text_file.hpp>

#include <chrono>

namespace cli {
namespace {

struct options {
  std::string problem, capacity, algorithm = "best", budget = "10s", out;
  unsigned threads = 1;
  bool json = false;
};

neap::memory_plan solve(options const& o, neap::memory_problem const& p, neap::bytes_t capacity) {
  neap::exact exact;
  exact.capacity = capacity;
  exact.budget = {INT64_MAX, parse_seconds("--time-budget", o.budget)};
  exact.threads = o.threads;
  if (o.algorithm == "best" || o.algorithm == "exact") return exact(p);
  if (o.algorithm == "greedy-by-size") return neap::greedy_by_size{}(p);
  return neap::naive{}(p);
}

int run(options const& o) {
  auto const text = value_or_refuse(neap::io::read_file(o.problem));
  auto file = neap::read_minimalloc_csv(text);
  if (!file) throw refused{o.problem + ": " + file.message()};
  neap::bytes_t capacity = -1;
  if (!o.capacity.empty()) { capacity = parse_bytes("--capacity", o.capacity); }
  if (!o.out.empty()) or_refuse(neap::can_write_file(o.out));
  auto const begin = std::chrono::steady_clock::now();
  neap::memory_problem const problem(file->records);
  auto const plan = solve(o, problem, capacity);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bool const placed = neap::has_offsets(plan);
  bool const fits = placed && (capacity < 0 || plan.arena_bytes <= capacity);
  if (placed) or_refuse(neap::verify(problem, plan));
  if (placed && !o.out.empty()) or_refuse(neap::write_file(o.out, neap::write_minimalloc_csv(*file, &plan)));
  bool const optimal = plan.status == neap::plan_status::optimal;
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = o.problem;
    j["records"] = file->records.size();
    if (placed) j["arena_bytes"] = plan.arena_bytes;
    else j["arena_bytes"] = nullptr;
    j["lower_bound_bytes"] = plan.lower_bound_bytes;
    j["optimal"] = optimal;
    j["fits"] = fits;
    j["status"] = optimal                                        ? "optimal"
                  : placed                                       ? "feasible"
                  : plan.status == neap::plan_status::infeasible ? "infeasible"
                                                                 : "budget spent";
    j["work"] = plan.work;
    j["seconds"] = seconds;
    print_json(j);
  } else if (placed) {
    std::printf("%s: %zu records, arena %lld bytes, %s (lower bound %lld), %.3f s\n", o.problem.c_str(),
                file->records.size(), static_cast<long long>(plan.arena_bytes),
                optimal ? "proved optimal" : "not proved optimal", static_cast<long long>(plan.lower_bound_bytes),
                seconds);
  }
  if (!fits)
    complain(o.problem +
             ": no plan fits: " + (placed ? "the arena found is larger than the capacity" : plan.why.message()));
  return fits ? fine : no_plan_fits;
}

}  // namespace

void add_allocate(CLI::App& app, int& exit) {
  auto* command = app.add_subcommand("allocate", "offsets for usage records (MiniMalloc's CSV)");
  auto o = std::make_shared<options>();
  command->add_option("PROBLEM", o->problem, "CSV: id,lower,upper,size[,alignment][,gaps][,offset]")->required();
  command->add_option("--capacity", o->capacity,
                      "bytes that the arena may have; without it, the smallest arena is sought");
  command->add_option("--algorithm", o->algorithm)
      ->check(CLI::IsMember({"best", "exact", "greedy-by-size", "naive"}))
      ->capture_default_str();
  command->add_option("--time-budget", o->budget, "for the search")->capture_default_str();
  command->add_option("--threads", o->threads)->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--out", o->out, "the problem with offsets, in the same form");
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
