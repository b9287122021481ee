// Rescheduling near an edit beside scheduling all of the edited graph again: random rewrites of training graphs, one after
// another as a search makes them, each ordered both ways. Memory counts as the peers' figures do (takeover off, alignment
// 1). Every order is checked. One CSV row a graph, a scheduler and a kind of rewrite.
//
//   bench_reschedule [--rewrites N] [--seed S] [--exact] GRAPH...      N: of each kind (default 25)
//
// The last rows are of models traced here, whose ops rules are about: gpt, resnet and random programs. --exact: beside
// memory_greedy a scheduler that makes its order better by exact windows.
//
// at_most and equal: how many of the rewrites have a peak at most that, or just that, of the order made from nothing;
// repaired: at_most of the old order with the new ops put in and nothing else moved; lowered: how many are below that;
// worst, mean: the quotients of peaks. full_us, near_us: processor time of one rewrite's order, facts given; faster: their
// quotient.
#include <neap/import/graph_file.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/resnet.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reschedule.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/taso_rules.hpp>
#include <neap/schedule/exact_windows.hpp>
#include <neap/train/training_step.hpp>

#include "../tests/support/random_algebra.hpp"
#include "graph_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace neap;

struct settings {
  std::size_t rewrites = 25;
  std::uint64_t seed = 1;
  bool exact = false;
};
constexpr memory_options plainly{.alignment = 1, .takeover = false};

struct greedy_and_exact {
  schedule operator()(flow_facts const& facts) const { return exact_windows{}(facts, memory_greedy{}(facts)); }
};

double processor_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}
/// The better of two runs.
template <class Work>
schedule timed(double& us, Work const& work) {
  double best = 1e300;
  schedule s;
  for (int k = 0; k < 2; ++k) {
    auto const begin = processor_us();
    s = work();
    best = std::min(best, processor_us() - begin);
  }
  us += best;
  return s;
}

enum class kind { recompute_peak, recompute_any, swap_peak, swap_any, rule };
constexpr char const* names[] = {"recompute at the peak", "recompute anywhere", "swap at the peak", "swap anywhere",
                                 "rule"};

/// A random rewrite of a kind; nothing if what was drawn cannot be done.
std::optional<edited> rewritten(candidate const& c, kind what, double link, random_stream& draw) {
  if (what == kind::rule) {
    std::vector<rewrite> found;
    auto stream = taso_rules{}(c);
    while (found.size() < 256) {
      auto m = stream.next();
      if (!m) break;
      found.push_back(*m);
    }
    if (found.empty()) return std::nullopt;
    return found[draw.below(static_cast<std::uint32_t>(found.size()))].apply(c);
  }
  bool const at_peak = what == kind::recompute_peak || what == kind::swap_peak;
  auto const at = at_peak ? c.result.peak_position : draw.below(static_cast<std::uint32_t>(c.order.size()));
  auto const gaps = detail::gaps_at(c.graph, c.order, c.result, at);
  if (gaps.empty()) return std::nullopt;
  auto const g = gaps[draw.below(static_cast<std::uint32_t>(gaps.size()))];
  if (what == kind::recompute_peak || what == kind::recompute_any)
    return apply_mutation(recompute{g.storage, g.resume}, c);
  return apply_mutation(swap_out{g.storage, g.left, g.resume, link}, c);
}

/// The order without the ops that a rewrite has added: they have the last ids among those of their origin.
schedule old_ops(graph const& before, edited const& e) {
  std::vector<std::uint32_t> left(before.origin_count());
  for (auto o : before.ops()) ++left[index(before.origin(o))];
  std::vector<bool> is_old(e.graph.op_count());
  for (auto o : e.graph.ops())
    if (auto const from = index(e.graph.origin(o)); from < left.size() && left[from] > 0)
      --left[from], is_old[index(o)] = true;
  schedule s;
  for (auto o : e.order)
    if (is_old[index(o)]) s.order.push_back(o);
  return s;
}

struct sums {
  std::size_t rewrites = 0, at_most = 0, equal = 0, repaired = 0, lowered = 0;
  double worst = 0, quotients = 0, full_us = 0, near_us = 0;
};

template <class Full, class Cost>
bool report(std::string const& name, graph const& program, schedule const& given, char const* scheduler,
            Full const& full, kind what, Cost const& cost, double link, settings const& how) {
  random_stream draw(how.seed, static_cast<std::uint64_t>(what));
  simulator sim;
  flow_facts facts(program, cost, plainly);
  auto const start_order = [&] {
    auto made = full(facts);
    return sim.peak(facts, made) <= sim.peak(facts, given) ? made : given;
  }();
  auto const start = candidate{program, start_order, sim(facts, start_order)};
  auto now = start;
  reschedule<Full> const near{full};
  sums t;
  std::size_t depth = 0;
  for (std::size_t tries = 0; t.rewrites < how.rewrites && tries < 20 * how.rewrites; ++tries) {
    auto e = rewritten(now, what, link, draw);
    if (!e || !check_order(e->graph, e->order)) continue;
    facts.assign(e->graph, cost, plainly);
    auto const old = old_ops(now.graph, *e);
    auto const all = timed(t.full_us, [&] { return full(facts); });
    auto order = timed(t.near_us, [&] { return near(facts, old); });
    for (auto const* s : {&all, static_cast<schedule const*>(&order)})
      if (auto const ok = check_order(facts, *s); !ok)
        return std::fprintf(stderr, "%s: %s\n", name.c_str(), ok.message().c_str()), false;
    auto const from_nothing = sim.peak(facts, all), repaired = sim.peak(facts, complete_order(facts, old));
    auto result = sim(facts, order);
    if (result.peak_bytes > repaired)
      return std::fprintf(stderr, "%s: a peak above that of the repaired order\n", name.c_str()), false;
    ++t.rewrites;
    t.at_most += result.peak_bytes <= from_nothing, t.equal += result.peak_bytes == from_nothing;
    t.repaired += repaired <= from_nothing, t.lowered += result.peak_bytes < repaired;
    double const quotient = static_cast<double>(result.peak_bytes) / static_cast<double>(from_nothing);
    t.worst = std::max(t.worst, quotient), t.quotients += quotient;
    if (++depth == 8) now = start, depth = 0;
    else now = {std::move(e->graph), std::move(order), std::move(result)};
  }
  if (t.rewrites == 0) return true;
  auto const n = static_cast<double>(t.rewrites);
  std::printf("%s,%zu,%s,%s,%zu,%zu,%zu,%zu,%zu,%.4f,%.4f,%.1f,%.1f,%.1f\n", name.c_str(), program.op_count(),
              scheduler, names[static_cast<std::size_t>(what)], t.rewrites, t.at_most, t.equal, t.repaired, t.lowered,
              t.worst, t.quotients / n, t.full_us / n, t.near_us / n, t.full_us / t.near_us);
  std::fflush(stdout);
  return true;
}

template <class Cost>
bool report_all(std::string const& name, graph const& program, schedule const& given, Cost const& cost, double link,
                std::initializer_list<kind> kinds, settings const& how) {
  bool right = true;
  for (auto k : kinds) {
    right &= report(name, program, given, "memory_greedy", memory_greedy{}, k, cost, link, how);
    if (how.exact)
      right &= report(name, program, given, "memory_greedy and exact_windows", greedy_and_exact{}, k, cost, link, how);
  }
  return right;
}

template <class Model>
graph traced(Model model, tensor const& x, tensor const& y) {
  return training_step(model, std::pair{x, y}, cross_entropy{}, sgd{}).program;
}

}  // namespace

int main(int count, char** arguments) {
  settings how;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    std::string const a = arguments[i];
    if (a == "--rewrites" && i + 1 < count) how.rewrites = static_cast<std::size_t>(std::atoll(arguments[++i]));
    else if (a == "--seed" && i + 1 < count) how.seed = static_cast<std::uint64_t>(std::atoll(arguments[++i]));
    else if (a == "--exact") how.exact = true;
    else if (a.starts_with("--")) return std::fprintf(stderr, "bench_reschedule: %s is not known\n", a.c_str()), 2;
    else files.push_back(a);
  }
  std::puts("graph,nodes,scheduler,rewrite,rewrites,at_most,equal,repaired,lowered,worst,mean,full_us,near_us,faster");
  bool right = true;
  for (auto const& file : files) {
    auto const read = io::read_graph(file);
    if (!read) return std::fprintf(stderr, "%s\n", read.message().c_str()), 2;
    auto const device = bench::device_of(*read);
    right &= report_all(read->name, read->program, read->order, given_or<roofline>{device},
                        device.to_device_bytes_per_second,
                        {kind::recompute_peak, kind::recompute_any, kind::swap_peak, kind::swap_any}, how);
  }
  auto const host = roofline::host(2);
  auto const rules = [&](std::string const& name, graph const& g) {
    right &= report_all(name, g, given_order{}(g), given_or<roofline>{host}, host.to_device_bytes_per_second,
                        {kind::rule, kind::recompute_peak}, how);
  };
  rules("gpt traced", traced(zoo::gpt(zoo::gpt_config{}), tensor::lazy({dtype::i64, {8, 256}}),
                             tensor::lazy({dtype::i64, {8, 256}})));
  rules("resnet50 traced", traced(zoo::resnet(zoo::resnet_config::resnet50()),
                                  tensor::lazy({dtype::f32, {16, 3, 64, 64}}), tensor::lazy({dtype::i64, {16}})));
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    rules("random program " + std::to_string(seed), testing::random_algebra(seed).make(300));
  return right ? 0 : 1;
}
