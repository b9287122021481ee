// neap allocate: offsets for usage records in MiniMalloc's CSV form.
#include "common.hpp"

#include <neap/import/file.hpp>
#include <neap/memory/check.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/exact.hpp>
#include <neap/memory/fragmentation.hpp>
#include <neap/memory/greedy_by_size.hpp>
#include <neap/memory/planner.hpp>
#include <neap/report/offsets_svg.hpp>
#include <neap/report/text_file.hpp>

#include <chrono>

namespace cli {
namespace {

struct options {
  std::string problem, capacity, algorithm = "best", budget = "10s", out, picture, fragmentation;
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

/// The file's name, for people.
std::string name_of(std::string const& path) { return printable(path.substr(path.find_last_of('/') + 1)); }

int run(options const& o) {
  auto const text = value_or_refuse(neap::io::read_file(o.problem));
  auto file = neap::read_minimalloc_csv(text);
  if (!file) throw refused{o.problem + ": " + file.message()};
  neap::bytes_t capacity = -1;
  if (!o.capacity.empty()) { capacity = parse_bytes("--capacity", o.capacity); }
  for (auto const& path : {o.out, o.picture, o.fragmentation})
    if (!path.empty()) or_refuse(neap::can_write_file(path));
  auto const begin = std::chrono::steady_clock::now();
  neap::memory_problem const problem(file->records);
  auto const plan = solve(o, problem, capacity);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bool const placed = neap::has_offsets(plan);
  bool const fits = placed && (capacity < 0 || plan.arena_bytes <= capacity);
  if (placed) or_refuse(neap::verify(problem, plan));
  if (placed && !o.out.empty()) or_refuse(neap::write_file(o.out, neap::write_minimalloc_csv(*file, &plan)));
  auto const report = neap::fragmentation(problem, plan);
  if (placed && !o.picture.empty())
    or_refuse(neap::write_file(
        o.picture,
        neap::offsets_svg({.title = "Offsets over time: " + name_of(o.problem), .names = file->ids}, problem, plan)));
  if (placed && !o.fragmentation.empty()) or_refuse(neap::write_file(o.fragmentation, neap::fragmentation_csv(report)));
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
    if (placed) {
      j["largest_load_bytes"] = report.largest_load;
      j["largest_load_moment"] = report.load_moment;
      j["most_free_bytes"] = report.worst_free;
      j["most_free_moment"] = report.worst_moment;
      j["used_share"] = report.used_share;
    }
    j["work"] = plan.work;
    j["seconds"] = seconds;
    print_json(j);
  } else if (placed) {
    std::printf("%s: %zu records, arena %lld bytes, %s (lower bound %lld), %.3f s\n", o.problem.c_str(),
                file->records.size(), static_cast<long long>(plan.arena_bytes),
                optimal ? "proved optimal" : "not proved optimal", static_cast<long long>(plan.lower_bound_bytes),
                seconds);
    std::printf(
        "%s in use at most (moment %lld), %.4f of that in the arena; %s free below something in use at worst "
        "(moment %lld), %.1f %% over all moments\n",
        neap::readable_bytes(static_cast<double>(report.largest_load)).c_str(),
        static_cast<long long>(report.load_moment), report.ratio(),
        neap::readable_bytes(static_cast<double>(report.worst_free)).c_str(),
        static_cast<long long>(report.worst_moment), 100 * (1 - report.used_share));
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
  command->add_option("--picture", o->picture, "SVG: the records over time and address");
  command->add_option("--fragmentation", o->fragmentation, "CSV by moment: in use, highest byte, free below it");
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
