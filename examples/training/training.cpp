#include "training.hpp"

#include <neap/core/readable.hpp>
#include <neap/report/memory_svg.hpp>
#include <neap/report/results_csv.hpp>
#include <neap/report/text_file.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <cstdlib>
#include <map>
#include <string_view>

using namespace neap;

namespace training {

char const* const help =
    "          [--backend host|cuda] [--precision f32|bf16|f16] [--memory-limit RATIO|BYTES] [--batch N] [--steps N]\n"
    "          [--compare N] [--rate X] [--search-seconds N] [--threads N] [--out FOLDER] [--costs FOLDER]\n"
    "          [--spill FOLDER]\n"
    "The ratio is of what training takes without a plan beyond weights and optimizer states; bytes (90MiB,\n"
    "1GB) are of all memory. What ops cost is measured in a few steps first, and kept in a file of this machine's\n"
    "in the folder of --costs (that of --out, if it is not given). Of the steps, --compare are repeated in turn\n"
    "without a plan.";

long number(std::string const& option, std::string const& value, long least, long most) {
  char* end = nullptr;
  long const n = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end || n < least || n > most)
    throw_error({option, ": \"", value, "\" is not a number from ", least, " to ", most});
  return n;
}

namespace {

double rate(std::string const& value) {
  char* end = nullptr;
  double const x = std::strtod(value.c_str(), &end);
  if (value.empty() || *end || !(x >= 0 && x <= 1e6))
    throw_error({"--rate: \"", value, "\" is not a number from 0 to 1e6"});
  return x;
}

std::optional<mixed> precision(std::string const& value) {
  if (value == "f32") return std::nullopt;
  if (value == "bf16") return mixed{dtype::bf16};
  if (value == "f16") return mixed{dtype::f16};
  throw_error({"--precision: \"", value, "\" is none of f32, bf16 and f16"});
}

/// What --memory-limit states, in bytes of all memory.
bytes_t limit_of(std::string const& text, bytes_t resident, bytes_t unplanned_peak) {
  char* end = nullptr;
  double const x = std::strtod(text.c_str(), &end);
  std::string const unit = end;
  if (end == text.c_str() || !(x > 0)) throw_error({"--memory-limit: \"", text, "\" is neither a ratio nor bytes"});
  if (unit.empty() && (x <= 1 || (x <= 100 && text.find('.') != std::string::npos)))
    return resident + static_cast<bytes_t>(x * static_cast<double>(unplanned_peak - resident));
  for (auto [name, scale] : {std::pair{"", 1.0},
                             {"B", 1.0},
                             {"KiB", 1024.0},
                             {"MiB", 1048576.0},
                             {"GiB", 1073741824.0},
                             {"kB", 1e3},
                             {"MB", 1e6},
                             {"GB", 1e9}})
    if (unit == name) {
      if (x * scale > 1e18) throw_error({"--memory-limit: \"", text, "\" is more than any machine has"});
      return static_cast<bytes_t>(x * scale);
    }
  throw_error({"--memory-limit: \"", unit, "\" is not a unit that is known (MiB, GiB, MB, GB)"});
}

/// How often each operator is computed again, as one line.
std::string recomputed(graph const& planned, graph const& original) {
  std::map<std::string, int> count;
  std::vector<int> seen(original.op_count());
  for (auto x : planned.ops()) {
    if (planned.as<op::store>(x) || planned.as<op::load>(x) || flow::is_view(planned, x)) continue;
    if (++seen[index(planned.origin(x))] > 1) ++count[std::string(planned.facets(x).name)];
  }
  std::string line;
  for (auto const& [name, n] : count) line += (line.empty() ? "" : ", ") + std::to_string(n) + " " + name;
  return line.empty() ? "nothing" : line;
}

constexpr memory_options plainly{.alignment = 64, .takeover = false};

}  // namespace

bool read(options& o, std::string const& option, std::string const& value) {
  if (option == "--backend") o.backend = value;
  else if (option == "--precision") o.precision = precision(value);
  else if (option == "--memory-limit") o.memory_limit = value;
  else if (option == "--out") o.out = value;
  else if (option == "--spill") o.spill = value;
  else if (option == "--costs") o.costs = value;
  else if (option == "--steps") o.steps = static_cast<int>(number(option, value, 1, 1000000));
  else if (option == "--compare") o.compare = static_cast<int>(number(option, value, 1, 1000000));
  else if (option == "--threads") o.threads = static_cast<int>(number(option, value, 1, 1024));
  else if (option == "--search-seconds") o.search_seconds = static_cast<int>(number(option, value, 0, 100000));
  else if (option == "--batch") o.batch = number(option, value, 1, 65536);
  else if (option == "--rate") o.rate = rate(value);
  else return false;
  if (o.backend != "host" && o.backend != "cuda")
    throw_error({"--backend: \"", o.backend, "\" is neither host nor cuda"});
  return true;
}

planned_step plan_step(options const& o, graph const& program, any_cost const& cost, swap_link link) {
  // Without a plan: the program's own order, every result in memory of its own, freed after its last reader.
  planned_step p;
  p.order = given_order{}(program);
  p.plain = simulate(program, p.order, cost, plainly);
  p.unplanned = make_plan(candidate{program, p.order, p.plain}, program, plainly);
  p.limit = limit_of(o.memory_limit, p.plain.resident_bytes, p.plain.peak_bytes);
  for (auto v : program.sources())
    if (program.role(v) == role::weight) p.weights += program.bytes(program.storage(v));

  any_mutator const recompute(rematerialize{} | truncate(32));
  any_mutator const all(chain(rematerialize{} | truncate(32), neap::swap{link.bytes_per_second} | truncate(4)));
  time_budget const budget(std::chrono::seconds(o.search_seconds));
  auto const search = [&](any_mutator const& m) { return optimize(program, m, memory_limit{p.limit}, cost, budget); };
  p.found = search(link.takes_compute_time ? recompute : all);
  if (!p.found.fits && link.takes_compute_time) p.found = search(all);
  if (auto const verdict = verify_plan(program, p.found.placed); !verdict.ok())
    throw_error({"the plan is not right: ", verdict.message()});

  std::size_t stores = 0;
  for (auto x : p.found.placed.graph.ops()) stores += p.found.placed.graph.as<op::store>(x) != nullptr;
  auto const beyond = p.beyond_residents(p.found.placed.peak_bytes), before = p.beyond_residents(p.plain.peak_bytes);
  std::printf("\nplan (%zu candidates in %.1f s, verified):\n", p.found.candidates, p.found.seconds);
  std::printf("  weights, states, batch    %s, always there\n", mib(p.plain.resident_bytes).c_str());
  std::printf("  peak beyond them          %s without a plan, %s planned: %.3f of it\n", mib(before).c_str(),
              mib(beyond).c_str(), static_cast<double>(beyond) / static_cast<double>(before));
  std::printf("  computed again            %s\n", recomputed(p.found.placed.graph, program).c_str());
  std::printf("  swapped                   %zu tensors\n", stores);
  std::printf("  predicted slowdown        %.3f\n", p.found.best.result.latency / p.plain.latency);
  if (!p.found.fits) std::printf("  %s\n", p.found.why_not().c_str());
  return p;
}

void require_writable(options const& o) {
  can_append_results(o.out + "/results.csv").value(std::source_location{});
  can_write_file(o.out + "/memory.svg").value(std::source_location{});
}

void write_results(options const& o, planned_step const& p, graph const& program, outcome const& measured) {
  auto const& best = p.found.best;
  results_row row;
  row.name = o.name;
  row.memory_limit = p.limit;
  row.weight_bytes = p.weights;
  row.optimized = results_row::measured{measured.step, measured.peak};
  row.original = results_row::measured{measured.unplanned_step, measured.unplanned_peak};
  row.simulated_optimized = {best.result.latency, best.result.peak_bytes};
  row.simulated_original = {p.plain.latency, p.plain.peak_bytes};
  append_results(o.out + "/results.csv", row).value(std::source_location{});
  auto const picture = memory_svg("Memory of one training step of " + o.name,
                                  {curve_of("without a plan", program, p.order, p.plain, plainly),
                                   curve_of("planned", best.graph, best.order, best.result, p.found.placed.options)},
                                  p.limit);
  write_file(o.out + "/memory.svg", picture).value(std::source_location{});
  std::printf("  written                   %s/results.csv, %s/memory.svg\n", o.out.c_str(), o.out.c_str());
}

seconds_t seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
seconds_t median(std::vector<seconds_t> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}
std::string mib(bytes_t b) { return readable_bytes(static_cast<double>(b)); }

}  // namespace training
