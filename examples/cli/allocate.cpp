// neap allocate: offsets for usage records, of a file in MiniMalloc's CSV form or of a graph in its given order.
#include "allocate_pools.hpp"
#include "graph_input.hpp"
#include "offsets_svg.hpp"

#include <neap/core/readable.hpp>
#include <neap/import/file.hpp>
#include <neap/import/file_kind.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/check/fragmentation.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/lifetimes.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/streams/waves.hpp>
#include <neap/report/text_file.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_map>

namespace cli {
namespace {

struct allocate_options {
  graph_input graph;
  neap::bytes_t alignment = 64;
  std::string takeover = "on";
  std::optional<std::int64_t> at_once;
  std::string of_graphs;  // an option given that bears on graphs alone
  std::string problem, capacity, algorithm = "best", planner, budget = "10s", out, picture, fragmentation;
  pool_options pools;
  std::string alone;  // an option given that goes with one memory in one piece
  unsigned threads = 1;
  bool json = false;
  /// What places the records: the algorithm; of multi-stream, which says only what lives at once, the planner.
  std::string const& placed_by() const { return algorithm == "multi-stream" ? planner : algorithm; }
};

neap::memory_plan solve(allocate_options const& o, neap::memory_problem const& p, neap::bytes_t capacity,
                        double seconds) {
  neap::exact exact;
  exact.capacity = capacity;
  exact.budget = {INT64_MAX, seconds};
  exact.threads = o.threads;
  auto const& by = o.placed_by();
  if (by == "greedy-by-size") return neap::greedy_by_size{}(p);
  if (by == "naive") return neap::naive{}(p);
  return exact(p);
}

/// The file's name, for people.
std::string name_of(std::string const& path) { return printable(path.substr(path.find_last_of('/') + 1)); }

struct problem_file {
  neap::allocation_file file;
  neap::bytes_t resident_bytes = 0;  // of a graph, beside the records
  std::string time = "time, in moments of the problem", unit = "moment";
};

/// A name that can stand in a CSV.
std::string csv_name(std::string_view name) {
  auto out = printable(name);
  for (char& c : out)
    if (c == ',' || c == '"') c = '_';
  return out;
}

/// The storages and workspaces of a graph as records, in its given order or in waves.
problem_file records_of(allocate_options const& given, std::string const& text) {
  auto const g = given.graph.parse(text);
  neap::flow_facts const facts(g.program, neap::no_cost{},
                               {.alignment = given.alignment, .takeover = given.takeover == "on"});
  problem_file out;
  out.resident_bytes = facts.resident_bytes();
  bool const in_waves = given.algorithm == "multi-stream";
  auto l = in_waves ? neap::lifetimes(facts, g.order,
                                      value_or_refuse(neap::waves(facts, g.order, given.at_once.value_or(INT64_MAX))))
                    : neap::lifetimes(facts, g.order, neap::simulator{}(facts, g.order));
  out.time = in_waves ? "time, in waves of ops that may run at once" : "position in the graph's order";
  out.unit = in_waves ? "wave" : "position";
  out.file.ids.resize(l.records.size());
  auto const call = [&](std::uint32_t record, std::string const& name) {
    if (record != neap::lifetime_records::none && out.file.ids[record].empty()) out.file.ids[record] = name;
  };
  for (auto o : g.order) {  // by producer; sources by their number
    std::size_t k = 0;
    for (auto s : facts.makes(o))
      call(l.record_of[s], csv_name(g.program.name(o)) + (k++ ? "." + std::to_string(k) : ""));
  }
  for (auto s : facts.given_storages()) call(l.record_of[s], "storage " + std::to_string(index(s)));
  for (std::size_t p = 0; p < g.order.size(); ++p)
    call(l.workspace_of[p], "workspace of " + csv_name(g.program.name(g.order[p])));
  out.file.records = std::move(l.records);
  return out;
}

/// Why there is no plan, with the records by name.
std::string why_none(neap::memory_problem const& p, neap::memory_plan const& plan, neap::allocation_file const& file) {
  if (auto const i = plan.why.record; i >= 0 && plan.why.other < 0)
    if (auto const j = neap::colliding_fixed_record(p, static_cast<std::size_t>(i)); j < p.count())
      return message_of({"fixed at ", i, static_cast<std::int64_t>(j)}, file) +
             std::to_string(p.fixed_of(static_cast<std::size_t>(i))) + " and " + std::to_string(p.fixed_of(j)) +
             ", they collide";
  return message_of(plan.why, file);
}

problem_file read_problem(allocate_options const& o) {
  auto const text = value_or_refuse(neap::io::read_file(o.problem));
  auto const fail = [&](std::string_view what) {
    return refused{o.problem + ": " + std::string(what) + "; " + std::string(neap::io::wanted_file::records)};
  };
  if (auto const kind = neap::io::unsupported_kind(text); !kind.empty()) throw fail(kind);
  auto const first = text.find_first_not_of(" \t\r\n", text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  if (first == text.npos) throw fail(text.empty() ? "empty" : "blanks alone");
  if (text[first] == '[') throw fail("a JSON list");
  if (text[first] == '{') return records_of(o, text);
  if (o.algorithm == "multi-stream" || o.at_once)
    throw refused{o.problem + ": what may run at once is known of graphs only, not of records"};
  if (!o.of_graphs.empty())
    throw refused{o.of_graphs + ": says how a graph is read, and " + o.problem + " is a list of records"};
  auto file = neap::read_minimalloc_csv(text);
  if (!file && !neap::io::is_records_csv(text))
    throw fail(file.message() + ", begins with \"" + neap::io::first_line(text) + "\"");
  if (!file) throw refused{o.problem + ": " + file.message()};
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < file->ids.size(); ++i)
    if (auto const [first_one, is_new] = seen.try_emplace(file->ids[i], file->lines[i]); !is_new)
      throw refused{o.problem + ": two records have the id '" + file->ids[i] + "': lines " +
                    std::to_string(first_one->second) + " and " + std::to_string(file->lines[i])};
  return {.file = std::move(*file)};
}

int run(allocate_options const& o) {
  if (o.at_once && o.algorithm != "multi-stream")
    throw refused{"--max-parallel-ops: goes with --algorithm multi-stream"};
  if (!o.planner.empty() && o.algorithm != "multi-stream")
    throw refused{"--planner: goes with --algorithm multi-stream; otherwise --algorithm is the planner"};
  check_outputs({{"problem", o.problem}},
                {{"--out", o.out}, {"--picture", o.picture}, {"--fragmentation", o.fragmentation}});
  double const budget = parse_seconds("--time-budget", o.budget);
  if (o.pools.any()) {
    if (!o.alone.empty()) throw refused{o.alone + ": does not go with --pool and --largest-piece"};
    auto const pools = named_pools(o.pools, o.capacity);
    auto problem = read_problem(o);
    return allocate_in_pools(std::move(problem.file), pools, o.problem, o.out, o.json, problem.resident_bytes);
  }
  auto const given = read_problem(o);
  for (std::size_t i = 0; i < given.file.records.size(); ++i)
    if (auto const pool = given.file.records[i].pool; pool >= 0)
      throw refused{o.problem + ": " + record_name(given.file, i) + " asks for the pool '" +
                    given.file.pools[static_cast<std::size_t>(pool)].substr(0, 80) + "', which --pool does not name"};
  auto const* const file = &given.file;
  neap::bytes_t capacity = -1;
  if (!o.capacity.empty()) { capacity = parse_bytes("--capacity", o.capacity); }
  auto const begin = std::chrono::steady_clock::now();
  neap::memory_problem const problem(file->records);
  auto const elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  auto plan = solve(o, problem, capacity, budget);
  if (capacity >= 0 && !neap::has_offsets(plan)) {  // then the smallest arena that the rest of the time finds
    auto const proved = plan.lower_bound_bytes;
    plan = solve(o, problem, -1, std::max(0.0, budget - elapsed()));
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, proved);
  }
  double const seconds = elapsed();
  bool const placed = neap::has_offsets(plan);
  bool const fits = placed && (capacity < 0 || plan.arena_bytes <= capacity);
  if (placed) or_refuse(neap::verify(problem, plan));
  if (placed && !o.out.empty()) or_refuse(neap::write_file(o.out, neap::write_minimalloc_csv(*file, &plan)));
  auto const report = neap::fragmentation(problem, plan);
  if (placed && !o.picture.empty())
    or_refuse(neap::write_file(o.picture, neap::offsets_svg({.title = "Offsets over time: " + name_of(o.problem),
                                                             .time = given.time,
                                                             .unit = given.unit,
                                                             .names = file->ids,
                                                             .resident_bytes = given.resident_bytes},
                                                            problem, plan)));
  if (placed && !o.fragmentation.empty()) or_refuse(neap::write_file(o.fragmentation, neap::fragmentation_csv(report)));
  bool const optimal = plan.status == neap::plan_status::optimal;
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = o.problem;
    j["records"] = file->records.size();
    if (given.resident_bytes > 0) j["resident_bytes"] = given.resident_bytes;
    if (placed) j["arena_bytes"] = plan.arena_bytes;
    else j["arena_bytes"] = nullptr;
    j["lower_bound_bytes"] = plan.lower_bound_bytes;
    j["optimal"] = optimal;
    j["fits"] = fits;
    bool const none = fits     ? false
                      : placed ? plan.lower_bound_bytes > capacity
                               : plan.status == neap::plan_status::infeasible;
    j["status"] = none ? "infeasible" : !fits ? "budget spent" : optimal ? "optimal" : "feasible";
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
    std::printf("%s: %s, arena %lld bytes, %s (lower bound %lld), %.3f s\n", o.problem.c_str(),
                neap::detail::counted(file->records.size(), "record").c_str(), static_cast<long long>(plan.arena_bytes),
                optimal ? "proved optimal" : "not proved optimal", static_cast<long long>(plan.lower_bound_bytes),
                seconds);
    std::printf(
        "%s in use at most (%s %lld), %.4f of that in the arena; %s free below something in use at worst "
        "(%s %lld), %.1f %% over all %ss\n",
        neap::readable_bytes(static_cast<double>(report.largest_load)).c_str(), given.unit.c_str(),
        static_cast<long long>(report.load_moment), report.ratio(),
        neap::readable_bytes(static_cast<double>(report.worst_free)).c_str(), given.unit.c_str(),
        static_cast<long long>(report.worst_moment), 100 * (1 - report.used_share), given.unit.c_str());
  }
  if (!fits)
    complain(o.problem + ": no plan fits: " +
             (placed ? "the capacity is " + std::to_string(capacity) + " bytes, the best arena found takes " +
                           std::to_string(plan.arena_bytes) + ", proved to be at least " +
                           std::to_string(plan.lower_bound_bytes)
                     : why_none(problem, plan, *file)));
  return fits ? fine : no_plan_fits;
}

}  // namespace

void add_allocate(CLI::App& app, int& exit) {
  auto* command =
      app.add_subcommand("allocate", "offsets for usage records (MiniMalloc's CSV, or a graph in its given order)");
  auto o = std::make_shared<allocate_options>();
  command
      ->add_option("PROBLEM", o->problem,
                   "CSV: id,lower,upper,size[,alignment][,gaps][,offset][,pool][,piece]; or a graph "
                   "file")
      ->required();
  command->add_option("--capacity", o->capacity,
                      "bytes (2GiB, 1048576) that the arena may have; without it, the smallest arena is sought");
  command->add_option("--algorithm", o->algorithm)
      ->check(CLI::IsMember({"best", "exact", "greedy-by-size", "multi-stream", "naive"}))
      ->capture_default_str();
  command->add_option("--planner", o->planner, "of multi-stream: what places the buffers; best unless given")
      ->check(CLI::IsMember({"best", "exact", "greedy-by-size", "naive"}));
  command->add_option("--max-parallel-ops", o->at_once, "of a graph, with multi-stream: ops that run at once")
      ->check(whole_number_from(1));
  command->add_option("--alignment", o->alignment, "of a graph's buffers, in bytes")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--takeover", o->takeover, "of a graph: elementwise results may overwrite inputs that die")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  o->pools.add_to(*command);
  o->graph.add_options_to(*command);
  command->add_option("--time-budget", o->budget, "for the search")->capture_default_str();
  command->add_option("--threads", o->threads)->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--out", o->out, "the problem with offsets, in the same form");
  command->add_option("--picture", o->picture, "SVG: the records over time and address");
  command->add_option("--fragmentation", o->fragmentation, "CSV by moment: in use, highest byte, free below it");
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, command, &exit] {
    o->graph.path = o->problem;
    for (auto const* name : {"--alignment", "--takeover", "--optimizer", "--gradients", "--magis-memory", "--losses"})
      if (command->count(name)) o->of_graphs = name;
    for (auto const* name : {"--algorithm", "--time-budget", "--threads", "--planner", "--picture", "--fragmentation"})
      if (command->count(name)) o->alone = name;
    exit = run(*o);
  });
}

}  // namespace cli
