// neap plan: the best plan for a graph under a memory limit, a latency limit, or both.
#include "device_input.hpp"
#include "explain.hpp"
#include "graph_input.hpp"
#include "pareto.hpp"

#include <neap/blocks/solver_seeds.hpp>
#include <neap/core/readable.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/lift.hpp>
#include <neap/mutate/magis_moves.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/rules_in_parts.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/beam.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/optimize/warm_start.hpp>
#ifdef NEAP_HAS_HIGHS
#include <neap/blocks/checkmate_milp.hpp>
#include <neap/blocks/highs.hpp>
#endif
#include <neap/report/labels.hpp>
#include <neap/report/memory_svg.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/report/results_csv.hpp>
#include <neap/report/text_file.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>

#include <sys/ioctl.h>
#include <unistd.h>

namespace cli {
namespace {

struct plan_options {
  graph_input input;
  std::vector<std::string> starts;
  std::string memory, latency, budget = "30s", moves = "all", solver = "all", strategy = "best", device, costs,
                               takeover = "on", out, csv, svg, pareto;
  neap::bytes_t alignment = 64;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::size_t iterations = SIZE_MAX;
  bool json = false, profile = false, explain = false;
  bool timed = true;  // a clock runs: not where candidates alone are counted
};

using moves_t = neap::any_mutator;

/// Whether any op is one that rules could be about: of a file's operators, those that are known to compute what one of
/// neap's does.
bool has_known_ops(neap::graph const& g) {
  for (auto o : g.ops())
    if (g.meaning(o).facets != &neap::facets_of<neap::op::opaque>) return true;
  return false;
}

moves_t pipeline(std::string const& names, double link, neap::graph const& g, std::string const& file) {
  bool remat = false, swap = false, fission = false, rules = false, undo = false, order = false, factor = false,
       lift = false;
  for (std::size_t at = 0; at <= names.size();) {
    auto const end = std::min(names.find(',', at), names.size());
    auto const name = names.substr(at, end - at);
    at = end + 1;
    if (name == "all") remat = swap = fission = order = true;
    else if (name == "remat") remat = true;
    else if (name == "swap") swap = true;
    else if (name == "fission") fission = true;
    else if (name == "rules") rules = true;
    else if (name == "undo") undo = true;
    else if (name == "reorder") order = true;
    else if (name == "factor") factor = true;
    else if (name == "lift") lift = true;
    else
      throw refused{"--moves: \"" + name +
                    "\" is not known: all, remat, swap, fission, factor, lift, rules, undo, reorder"};
  }
  using namespace neap;
  std::optional<moves_t> moves;
  auto const with = [&](moves_t const& more) { moves = moves ? moves_t(chain(*moves, more)) : more; };
  if (remat && swap) with(default_moves_at(link));
  else if (swap) with(neap::swap{link} | truncate(32));
  else if (remat) with(rematerialize{} | truncate(32));
  if (fission && moves) with(fission_later);
  else if (fission) with(neap::fission{} | truncate(32));
  if (factor) with(fission_factor{} | truncate(8));
  if (lift) with(neap::lift{} | truncate(8));
  if (undo) with(undo_moves | truncate(8));
  if (order) with(reorder{} | truncate(8));
  if (rules) {
    auto const none =
        file + ": no rule applies to any op: all are operators of the file's own, of which neap knows none";
    bool const known = has_known_ops(g);
    if (known) with(taso_rules{} | truncate(32));
    else if (moves) complain(none);
    else throw refused{none};
    if (known && fission) with(in_parts(taso_rules{}) | truncate(16) | later);
  }
  return *moves;
}

/// The solvers that a name stands for; none for "search".
neap::solver_choice solvers_of(std::string const& name) {
  if (name == "all") return neap::all_solvers;
  if (name == "milp") return {.checkmate = true, .max_values = 60};
  return {.rotor = name == "rotor", .checkmate = name == "checkmate", .hierarchy = name == "hierarchy"};
}
/// What milp solves its block by.
neap::block_program program_of(std::string const& name) {
  if (name != "milp") return {};
#ifdef NEAP_HAS_HIGHS
  return [](neap::remat_problem const& p, neap::remat_limits const& limits, double seconds) {
    return neap::checkmate<neap::highs>{{.seconds = seconds}}(p, limits);
  };
#else
  throw refused{"--solver milp: this neap was built without HiGHS: pip install highsbox, and build again"};
#endif
}

/// "best": the search's own; "beam:K": K candidates a round.
neap::any_search_strategy strategy_of(std::string const& name) {
  if (name == "best") return {};
  auto const width = name.starts_with("beam:") ? parse_quantity(name.substr(5)) : std::nullopt;
  if (!width || !width->unit.empty() || !(width->number >= 1 && width->number <= 1000) ||
      width->number != std::floor(width->number))
    throw refused{"--search: \"" + name + "\" is not known: best, or beam:K with K from 1 to 1000"};
  return neap::beam{.width = static_cast<std::size_t>(width->number)};
}

/// Set by SIGINT: the search ends with the best plan so far. A second one ends the program.
std::stop_source& interrupted() {
  static std::stop_source source;
  return source;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

/// One line on standard error, written anew in its place; short enough to stay on one line of the terminal.
void show_progress(neap::search_progress const& p) {
  char text[200];
  std::snprintf(text, sizeof text, "%6.1f s  peak %s (bound %s)  latency %s  %s  %zu candidates", p.elapsed,
                neap::readable_bytes(static_cast<double>(p.peak_bytes)).c_str(),
                neap::readable_bytes(static_cast<double>(p.lower_bound_bytes)).c_str(),
                neap::readable_seconds(p.latency).c_str(), p.fits ? "fits" : "does not fit yet", p.candidates);
  ::winsize size{};
  int const columns = ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
  std::fprintf(stderr, "\r%.*s\033[K", columns, text);
}

/// Where the time of a plan went, `total` seconds from the start of the program's work to now.
void show_profile(neap::search_outcome const& found, double reading, double verifying, double total) {
  auto const& p = found.profile;
  auto const row = [&](char const* what, std::size_t count, double seconds, char const* note) {
    std::string const number = count == SIZE_MAX ? "" : std::to_string(count);
    std::printf("  %-12s %10s %12s %7.1f %%   %s\n", what, number.c_str(), neap::readable_seconds(seconds).c_str(),
                total > 0 ? 100 * seconds / total : 0.0, note);
  };
  row("read", 1, reading, "the graph file");
  row("drawn", p.drawn, p.drawing, "mutations");
  row("built", p.built, p.applying, "graphs by mutations");
  row("duplicates", p.duplicates, p.checking, "of those built");
  row("evaluated", found.candidates, p.judging,
      ("candidates, " + std::to_string(p.outlined) + " of them before they were built").c_str());
  row("placed", p.placed, p.placing, "given addresses");
  row("verified", 1, verifying, "the plan");
  row("other", SIZE_MAX, std::max(total - reading - p.timed() - verifying, 0.0), "seeds, queues, descriptions");
  print_stages(found);
}

/// Refuses a file that is written and read, and one that cannot be written.
void check_files(plan_options const& o) {
  std::vector<named_file> reads{{"graph", o.input.path}, {"device", file_of_device(o.device)}, {"costs", o.costs}};
  for (auto const& s : o.starts) reads.push_back({"--start", s});
  check_outputs(reads, {{"--out", o.out}, {"--csv", o.csv}, {"--svg", o.svg}, {"--pareto", o.pareto}});
  if (!o.csv.empty()) or_refuse(neap::can_append_results(o.csv));
}

/// The plan of a file for a search to begin with. Refuses one that is not right, or of another graph.
neap::plan read_start(std::string const& path, neap::io::imported_graph const& g, std::string const& of) {
  auto file = value_or_refuse(neap::io::read_plan(path));
  neap::io::complete(file, g.program);
  if (file.planned.original != g.program.digest())
    throw refused{"--start: " + path + ": was made for another graph than " + of +
                  ", or with other options of reading it (--optimizer, --keep, ...)"};
  if (auto const verdict = neap::verify_plan(g.program, file.planned); !verdict.ok())
    throw refused{"--start: " + path + ": " + verdict.message()};
  return std::move(file.planned);
}

/// What plans are made of and begin with; the time of reading it is of the budget.
struct plan_job {
  neap::io::imported_graph graph;
  device_cost device;
  neap::warm_start given;  // by the user
  neap::warm_start start;  // and the last plan
  std::chrono::steady_clock::time_point began;
  double reading = 0;  // seconds
};

/// The plan under the limits of the options. It becomes the start of what comes after it.
int plan_once(plan_options const& o, plan_job& job) {
  std::chrono::duration<double> const budget(parse_seconds("--time-budget", o.budget));
  auto const& g = job.graph;
  auto const& device = job.device;
  auto const began = job.began;
  double const reading = job.reading;
  auto const elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  neap::search_options search;
  search.warm = job.start;
  if (!o.memory.empty()) {
    auto const m = parse_size_or_ratio("--memory-limit", o.memory);
    search.memory_at_most = m.bytes ? neap::memory_limit(*m.bytes) : neap::memory_limit::of_original(*m.ratio);
  }
  if (!o.latency.empty()) {
    auto const l = parse_time_or_ratio("--latency-limit", o.latency);
    search.latency_at_most =
        l.seconds ? neap::latency_limit::in_seconds(*l.seconds) : neap::latency_limit::of_original(*l.ratio);
  }
  // Reading has taken its part of the time; a twentieth is left for checking and writing.
  search.time = neap::time_budget(
      std::max(0.95 * budget - std::chrono::duration<double>(std::chrono::steady_clock::now() - began),
               std::chrono::duration<double>::zero()));
  if (!o.timed) search.time = neap::time_budget(std::chrono::hours(24 * 365));
  // Checking and writing an op takes about as long as reading one.
  search.seconds_an_op_afterwards =
      (o.out.empty() ? 0.1 : 0.6) * reading / static_cast<double>(g.program.op_count() + 1);
  search.memory = {o.alignment, o.takeover == "on"};
  search.seed = o.seed;
  search.iterations = o.iterations;
  search.threads = o.threads;
  search.strategy = strategy_of(o.strategy);
  search.stop = interrupted().get_token();
  std::signal(SIGINT, [](int) {
    std::signal(SIGINT, SIG_DFL);
    interrupted().request_stop();
  });
  search.profile = o.profile;
  bool const terminal = !o.json && ::isatty(2) == 1;
  if (terminal) search.progress = show_progress, search.progress_every = 0.1;
  // A solver of its own is judged and placed, and nothing is changed in its plan; with all of them a search goes on.
  auto moves = pipeline(o.moves, device.model.to_device_bytes_per_second, g.program, o.input.path);
  auto solvers = solvers_of(o.solver);
  if (solvers.hierarchy) solvers.link = moves.allows().swap;
  if (o.solver == "milp" && !o.timed) throw refused{"--solver milp: takes a time budget"};
  if (o.solver != "search" && moves.allows().recompute)
    search.starts = neap::solver_seeds(solvers, program_of(o.solver));
  if (o.solver != "all" && o.solver != "search") {
    if (o.moves != "all") throw refused{"--moves: --solver " + o.solver + " makes none: take all or search"};
    if (auto const can = neap::can_solve(g.program, g.order, solvers); !can)
      throw refused{o.input.path + ": --solver " + o.solver + ": " + can.message()};
    moves = moves_t(neap::no_moves{});
  }
  auto const found = neap::optimize(g.program, moves, device, g.order, search);
  if (terminal) std::fprintf(stderr, "\n");
  auto const& p = found.placed;

  double const before_verifying = elapsed();
  auto const verdict = neap::verify_plan(g.program, p, device);
  double const verifying = elapsed() - before_verifying;
  if (!verdict.ok()) throw refused{"internal: the plan found is not right: " + verdict.message()};

  neap::bytes_t const memory_limit =
      search.memory_at_most.resolve(found.original.peak_bytes) == INT64_MAX ? -1 : found.memory_limit_bytes;
  neap::seconds_t const latency_limit = o.latency.empty() ? -1 : found.latency_limit_seconds;
  if (!o.out.empty()) {
    neap::plan_source const from{g.name,          o.input.optimizer, o.input.magis,   o.input.losses == "apart",
                                 memory_limit,    latency_limit,     device.source(), o.input.gradients == "used-up",
                                 o.input.donated, o.input.pins};
    or_refuse(neap::write_file(o.out, neap::plan_json(p, from)));
  }
  if (!o.svg.empty())
    or_refuse(neap::write_file(
        o.svg, neap::memory_svg(
                   "Memory of one training step: " + g.name,
                   {neap::curve_of("as it came", g.program, g.order, found.original, search.memory),
                    neap::curve_of("planned", found.best.graph, found.best.order, found.best.result, search.memory)},
                   memory_limit)));
  if (!o.pareto.empty()) {
    neap::pareto_report const front{found.front,
                                    {found.original.peak_bytes, found.original.latency},
                                    {p.peak_bytes, p.latency},
                                    memory_limit,
                                    latency_limit,
                                    found.lower_bound_bytes};
    or_refuse(neap::write_file(o.pareto, o.pareto.ends_with(".svg")
                                             ? neap::pareto_svg("What memory costs in time: " + g.name, front)
                                             : neap::pareto_csv(front)));
  }
  if (!o.csv.empty()) {
    neap::results_row row;
    row.name = g.name;
    if (!o.memory.empty()) row.memory_limit = found.memory_limit_bytes;
    if (!o.latency.empty()) row.latency_limit = found.latency_limit_seconds;
    if (search.memory_at_most.ratio >= 0) row.memory_limit_ratio = search.memory_at_most.ratio;
    if (search.latency_at_most.ratio >= 0) row.latency_limit_ratio = search.latency_at_most.ratio;
    for (auto s : g.program.storages())
      if (g.program.is_resident(s) && g.program.role(g.program.record(s).first) == neap::role::weight)
        row.weight_bytes += g.program.bytes(s);
    row.simulated_optimized = {found.best.result.latency, found.best.result.peak_bytes};
    row.simulated_original = {found.original.latency, found.original.peak_bytes};
    or_refuse(neap::append_results(o.csv, row));
  }

  double const memory_ratio =
      static_cast<double>(p.peak_bytes) / static_cast<double>(std::max<neap::bytes_t>(found.original.peak_bytes, 1));
  double const latency_ratio = found.original.latency > 0 ? found.best.result.latency / found.original.latency : 1;
  std::size_t copies = 0, stores = 0, loads = 0, waits = 0, cut = 0;
  std::int64_t max_parts = 1;
  for (bool const again : neap::recomputed_ops(p.graph, p.order())) copies += again;
  for (auto x : p.graph.ops()) {
    stores += p.graph.as<neap::op::store>(x) != nullptr, loads += p.graph.as<neap::op::load>(x) != nullptr;
    waits += p.graph.as<neap::op::wait>(x) != nullptr;
    if (auto const part = p.graph.record(x).part; part != neap::nothing<neap::part_id>) {
      cut += p.graph.part(part).number == 0 && !neap::flow::is_view(p.graph, x);
      max_parts = std::max(max_parts, p.graph.part(part).count);
    }
  }
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = g.name;
    j["original_peak_bytes"] = found.original.peak_bytes;
    j["original_latency_us"] = found.original.latency * 1e6;
    j["peak_bytes"] = p.peak_bytes;
    j["latency_us"] = p.latency * 1e6;
    j["arena_bytes"] = p.arena_bytes;
    j["resident_bytes"] = p.resident_bytes;
    j["lower_bound_bytes"] = found.lower_bound_bytes;
    j["memory_ratio"] = memory_ratio;
    j["latency_ratio"] = latency_ratio;
    j["fits"] = found.fits;
    j["verified"] = true;
    j["recomputed_ops"] = copies;
    j["ops_in_parts"] = cut;
    j["most_parts"] = max_parts;
    j["stores"] = stores;
    j["loads"] = loads;
    j["waits"] = waits;
    j["candidates"] = found.candidates;
    j["seconds"] = found.seconds;
    j["seed"] = o.seed;
    if (o.profile) {
      auto const& w = found.profile;
      j["profile"] = {{"drawn", w.drawn},           {"outlined", w.outlined},     {"built", w.built},
                      {"duplicates", w.duplicates}, {"judged", found.candidates}, {"placed", w.placed},
                      {"reading_s", reading},       {"drawing_s", w.drawing},     {"applying_s", w.applying},
                      {"checking_s", w.checking},   {"judging_s", w.judging},     {"placing_s", w.placing},
                      {"verifying_s", verifying},   {"total_s", elapsed()}};
      for (auto const& [sum, runs, gains] : stage_totals(found)) {
        auto const cost = [](neap::plan_cost const& c) {
          return nlohmann::ordered_json{{"peak_bytes", c.peak_bytes}, {"latency_us", c.latency * 1e6}};
        };
        j["profile"]["stages"].push_back({{"stage", sum.stage},
                                          {"within", sum.within},
                                          {"runs", runs},
                                          {"gains", gains},
                                          {"candidates", sum.candidates},
                                          {"work_s", sum.work},
                                          {"seconds", sum.seconds},
                                          {"before", cost(sum.before)},
                                          {"after", cost(sum.after)}});
      }
    }
    if (!found.fits) j["why_not"] = found.why_not();
    print_json(j);
  } else {
    using neap::readable_bytes;
    using neap::readable_seconds;
    using neap::detail::counted;
    auto const bytes = [](neap::bytes_t b) { return readable_bytes(static_cast<double>(b)); };
    std::printf("%-12s %14s %14s\n", g.name.c_str(), "as it came", "planned");
    std::printf("%-12s %14s %14s   %s\n", "peak", bytes(found.original.peak_bytes).c_str(), bytes(p.peak_bytes).c_str(),
                percent(memory_ratio).c_str());
    std::printf("%-12s %14s %14s   %s\n", "latency", readable_seconds(found.original.latency).c_str(),
                readable_seconds(p.latency).c_str(), percent(latency_ratio).c_str());
    std::printf("%-12s %14s %14s   resident %s\n", "arena", "", bytes(p.arena_bytes).c_str(),
                bytes(p.resident_bytes).c_str());
    std::printf("%-12s %14s %14s   no order, recomputation or swapping gets below\n", "bound", "",
                bytes(found.lower_bound_bytes).c_str());
    std::printf("%s recomputed, %zu in parts (up to %lld), %s, %s, %s; %s in %.2f s; verified\n",
                counted(copies, "op").c_str(), cut, static_cast<long long>(max_parts), counted(stores, "store").c_str(),
                counted(loads, "load").c_str(), counted(waits, "wait").c_str(),
                counted(found.candidates, "candidate").c_str(), found.seconds);
    std::fputs(found.summary().c_str(), stdout);
    if (o.explain) print_explanation(found);
    if (o.profile) show_profile(found, reading, verifying, elapsed());
  }
  std::vector<std::string> lines;
  if (!found.fits) lines.push_back(found.why_not());
  if (auto const took = elapsed(); o.timed && took > 1.2 * budget.count() + 0.2) {  // what has to be done takes longer
    using neap::readable_seconds;
    lines.push_back("took " + readable_seconds(took) + " of a budget of " + readable_seconds(budget.count()) + ": " +
                    readable_seconds(reading) + " to read " + neap::detail::counted(g.program.op_count(), "op") + ", " +
                    readable_seconds(found.seconds) + " to search, " + readable_seconds(verifying) + " to verify");
  }
  if (!lines.empty()) complain(o.input.path + ": " + lines[0] + (lines.size() > 1 ? "; " + lines[1] : ""));
  job.start = job.given;
  job.start.add(neap::warm_start(found));
  return found.fits ? fine : no_plan_fits;
}

/// The texts of `--memory-limit`, which commas separate. Refuses limits that do not rise.
std::vector<std::string> limits_in(std::string const& text) {
  std::vector<std::string> limits;
  for (std::size_t at = 0; at <= text.size();) {
    auto const end = std::min(text.find(',', at), text.size());
    limits.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (std::size_t i = 1; i < limits.size(); ++i) {
    auto const a = parse_size_or_ratio("--memory-limit", limits[i - 1]),
               b = parse_size_or_ratio("--memory-limit", limits[i]);
    if (a.bytes.has_value() != b.bytes.has_value())
      throw refused{"--memory-limit: " + text + ": several limits are all bytes or all ratios"};
    if (a.bytes ? *b.bytes <= *a.bytes : *b.ratio <= *a.ratio)
      throw refused{"--memory-limit: " + text + ": several limits must rise"};
  }
  return limits;
}
/// The file for one limit of several: out.plan becomes out-0.4.plan.
std::string file_for(std::string const& path, std::string const& limit) {
  if (path.empty()) return path;
  auto const name = path.find_last_of('/') == path.npos ? 0 : path.find_last_of('/') + 1;
  auto const dot = path.find_last_of('.');
  auto const end = dot == path.npos || dot <= name ? path.size() : dot;
  return path.substr(0, end) + "-" + limit + path.substr(end);
}

int run(plan_options const& o) {
  auto const began = std::chrono::steady_clock::now();
  if (o.memory.empty() && o.latency.empty()) throw refused{"plan: give --memory-limit, --latency-limit or both"};
  static_cast<void>(parse_seconds("--time-budget", o.budget));
  auto const limits = limits_in(o.memory);
  std::vector<plan_options> runs;
  for (auto const& limit : limits) {
    auto& one = runs.emplace_back(o);
    one.memory = limit;
    if (limits.size() > 1)
      for (auto* file : {&one.out, &one.svg, &one.pareto}) *file = file_for(*file, limit);
    check_files(one);
  }
  plan_job job{o.input.read(), device_of(o.device), {}, {}, began, 0};
  if (!o.costs.empty()) job.device.measured = value_or_refuse(neap::cost_table::load(o.costs));
  for (auto const& path : o.starts) job.given.add(read_start(path, job.graph, o.input.path));
  job.start = job.given;
  job.reading = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  int worst = fine;
  for (auto const& one : runs) {
    worst = std::max(worst, plan_once(one, job));
    job.began = std::chrono::steady_clock::now(), job.reading = 0;
  }
  return worst;
}

}  // namespace

void add_plan(CLI::App& app, int& exit) {
  auto* command = app.add_subcommand("plan", "the best plan for a graph under limits");
  auto o = std::make_shared<plan_options>();
  o->input.add_to(*command);
  o->input.add_pins_to(*command);
  command->add_option("--memory-limit", o->memory,
                      "bytes (2GiB, 1048576) or a ratio of the original peak (0.4, 40%; 1 is all of it); several that "
                      "rise, with commas between: each plan is the start of the next, whose latency is no higher");
  command->add_option("--latency-limit", o->latency, "a time (250ms) or a ratio of the original latency (1.1, 110%)");
  auto* const time =
      command->add_option("--time-budget", o->budget,
                          "for each limit, in all; a twentieth of it is for checking and writing; with --iterations "
                          "and without this no clock runs");
  time->capture_default_str();
  command
      ->add_option(
          "--start", o->starts,
          "a plan of the graph, under other limits perhaps: what is found is no worse, if it meets the limits. May "
          "be given several times")
      ->option_text("PLAN")
      ->allow_extra_args(false);
  command
      ->add_option("--moves", o->moves,
                   "all (remat,swap,fission,reorder), or some of remat,swap,fission,factor,lift,reorder,undo,rules")
      ->capture_default_str();
  command
      ->add_option(
          "--solver", o->solver,
          "what plans: search; one solver alone: rotor (a chain of blocks, each saved whole or not at all), "
          "hierarchy (blocks with options, some to store what they save), checkmate (the graph as one block, if it is "
          "small), milp (the same as an integer program, if it is very small: needs HiGHS); all: the solvers' plans are "
          "where the search starts")
      ->check(CLI::IsMember({"all", "search", "rotor", "checkmate", "hierarchy", "milp"}))
      ->capture_default_str();
  command
      ->add_option("--search", o->strategy,
                   "best: best-first search with dives; beam:K: K candidates are expanded a round, as in MAGIS")
      ->capture_default_str();
  command->add_option("--device", o->device, "h100-like, host, or a JSON file; default: the graph's own latencies");
  command->add_option("--costs", o->costs, "measured costs, as neap::cost_table saves them: they take precedence");
  command->add_option("--takeover", o->takeover, "elementwise results may overwrite inputs that die")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command->add_option("--alignment", o->alignment, "of every buffer, in bytes")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of random choices")->check(whole_number_from(0))->capture_default_str();
  command
      ->add_option("--threads", o->threads,
                   "that evaluate candidates; with --iterations the plan does not depend on it")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option("--iterations", o->iterations,
                   "candidates evaluated at most (starting orders always are): repeatable to the byte; solvers take "
                   "at most 1,000 steps of their own searches a candidate")
      ->check(whole_number_from(0));
  command->add_option("--out", o->out, "the plan file");
  command->add_option("--csv", o->csv, "a row is appended, in MAGIS's columns");
  command->add_option("--svg", o->svg, "memory over time, before and after");
  command->add_option("--pareto", o->pareto, "the Pareto front of peak and latency: CSV, or a picture (FILE.svg)");
  command->add_flag("--profile", o->profile,
                    "numbers of mutations drawn, built and evaluated, and where the time went, by kind and by stage");
  auto* const explain = command->add_flag(
      "--explain", o->explain,
      "what holds the peak, what each recomputation saves and costs, what more memory would save, who found the plan");
  command->add_flag("--json", o->json, "one JSON object")->excludes(explain);
  command->callback([o, time, &exit] {
    o->timed = time->count() > 0 || o->iterations == SIZE_MAX;
    exit = run(*o);
  });
}

}  // namespace cli
