// Right plans, changed in every field that has a meaning, singly and in pairs, with their tables worked out again so that
// a file is consistent in itself: the reader and the verifier judge each as a second checker does (slow_plan_check.hpp),
// which plays the step byte by byte.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/plan_reader.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"
#include "../support/sanitized.hpp"
#include "../support/slow_plan_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace neap;
using json = nlohmann::json;

namespace {

/// A document with a checksum that fits.
std::string sealed(json document) {
  document.erase("checksum");
  auto text = document.dump();
  text.back() = ',';
  return text + "\"checksum\":\"" + to_hex(digest{}.mix(std::string_view(text))) + "\"}\n";
}

/// What the reader and the verifier say of a document; empty if it is right.
std::string neap_check(graph const& g, json const& document) {
  auto const r = io::parse_plan(sealed(document), "p");
  if (!r) return r.message();
  if (!r->durations) return "no durations";  // as `neap verify` says
  return verify_plan(g, r->planned, stated_durations(*r->durations)).message();
}

struct sample {
  graph original;
  json plan;
};
/// A right plan with copies, stores and loads.
sample sample_plan(std::uint64_t seed) {
  auto const original = testing::opaque_graph(seed, 3 + seed % 6);
  op_graph edited = original;
  random_stream draw(seed, 5);
  for (std::uint64_t i = 0; i < 1 + seed % 4; ++i) testing::detail::copy_or_swap(edited, draw, i % 3 != 2);
  graph const g(std::move(edited));
  memory_options const options{.alignment = seed % 4 ? 64 : 1, .takeover = seed % 5 != 0};
  given_or const cost{roofline::h100_like()};
  auto order = testing::random_order(g, seed);
  if (seed % 2) order = refine{}(flow_facts(g, cost, options), order);
  auto const p = make_plan(candidate{g, order, simulate(g, order, cost, options)}, original, options);
  plan_source from{"sample"};
  from.durations = duration_source{{}, true, roofline::h100_like()};
  return {original, json::parse(plan_json(p, from))};
}

// ---------------------------------------------------------------------------------------------- tables worked out again

double duration(json const& plan, json const& node) {
  if (!node.contains("attributes")) return node.at("seconds").get<double>() * 1e6;
  if (node.at("op") == "neap.wait") return 0;
  auto const& device = plan.at("durations").at("device");
  bool const store = node.at("op") == "neap.store";
  auto const& t = plan.at("tensors").at((store ? node.at("in") : node.at("out")).at(0).get<std::size_t>());
  double bytes = t.at("dtype") == "bf16" ? 2 : 4;
  for (auto const& n : t.at("shape")) bytes *= n.get<double>();
  return device.at("link_latency_us").get<double>() +
         bytes / device.at("link_bytes_per_s").at(store ? "to_host" : "to_device").get<double>() * 1e6;
}
void times_again(json& plan) {
  std::array<double, 3> free{};
  double latency = 0;
  std::vector<double> ended;
  for (std::size_t i = 0; i < plan.at("steps").size(); ++i) {
    auto& s = plan.at("steps").at(i);
    auto& node = plan.at("nodes").at(s.at("node").get<std::size_t>());
    auto const stream = s.at("stream").get<std::size_t>();
    double start = std::max(free.at(stream), stream ? free[0] : 0);
    for (auto const& w : plan.at("waits"))
      if (w.at(0) == i && w.at(1).get<std::size_t>() < i) start = std::max(start, ended.at(w.at(1).get<std::size_t>()));
    double const takes = duration(plan, node), end = start + takes;
    node.at("latency_us") = takes, s.at("start") = start, s.at("end") = end;
    node.erase("latency_s"), s.erase("start_s"), s.erase("end_s");
    ended.push_back(end);
    free[stream] = end;
    latency = std::max(latency, end);
  }
  plan.at("latency_us") = latency, plan.erase("latency_s");
}
/// First and last steps of buffers, from who touches their storage and who waits.
void lives_again(json& plan) {
  auto const n = plan.at("steps").size();
  auto const storage = [&](json const& t) { return plan.at("tensors").at(t.get<std::size_t>()).at("buf"); };
  for (auto& b : plan.at("buffers")) {
    auto const s = storage(b.at("value"));
    std::size_t first = n, last = 0;
    for (std::size_t i = 0; i < n; ++i) {
      auto const& step = plan.at("steps").at(i);
      auto const& node = plan.at("nodes").at(step.at("node").get<std::size_t>());
      bool touches = false;
      for (auto const* list : {&node.at("in"), &node.at("out")})
        for (auto const& t : *list) touches |= storage(t) == s;
      if (!touches) continue;
      first = std::min(first, i), last = std::max(last, i);
      if (step.at("stream") == 0) continue;
      std::size_t until = n;
      for (auto const& w : plan.at("waits"))
        if (w.at(1) == i && w.at(0).get<std::size_t>() < n &&
            plan.at("steps").at(w.at(0).get<std::size_t>()).at("stream") == 0)
          until = std::min(until, w.at(0).get<std::size_t>());
      last = std::max(last, until - 1);
    }
    bool stays = b.at("resident").get<bool>();
    for (auto const& o : plan.at("outputs")) stays |= storage(o.at("tensor")) == s;
    b.at("first") = b.at("resident").get<bool>() ? 0 : std::min(first, n - 1);
    b.at("last") = stays ? n - 1 : std::max(last, b.at("first").get<std::size_t>());
  }
}
void figures_again(json& plan) {
  std::int64_t arena = 0, resident = 0, peak = 0;
  for (auto const& b : plan.at("buffers")) {
    arena = std::max(arena, b.at("offset").get<std::int64_t>() + b.at("bytes").get<std::int64_t>());
    if (b.at("resident").get<bool>()) resident += b.at("bytes").get<std::int64_t>();
  }
  for (std::size_t i = 0; i < plan.at("steps").size(); ++i) {
    std::int64_t sum = 0;
    for (auto const& b : plan.at("buffers"))
      if (b.at("first").get<std::size_t>() + b.contains("takes_over") <= i && i <= b.at("last").get<std::size_t>())
        sum += b.at("bytes").get<std::int64_t>();
    peak = std::max(peak, sum);
  }
  plan.at("arena_bytes") = arena, plan.at("resident_bytes") = resident, plan.at("peak_bytes") = peak;
}
/// As far as the document allows: what was broken beyond that stays broken.
void work_out_again(json& plan, std::uint32_t which) {
  try {
    json again = plan;
    if (which & 1) times_again(again);
    if (which & 2) lives_again(again);
    if (which & 4) figures_again(again);
    plan = again;
  } catch (std::exception const&) {}
}

// ---------------------------------------------------------------------------------------------- mutants

/// The fields of a document by what they are: "/steps/*/start".
std::map<std::string, std::vector<json::json_pointer>> fields_of(json const& plan) {
  std::map<std::string, std::vector<json::json_pointer>> fields;
  auto const walk = [&](auto const& self, json const& at, json::json_pointer const& here,
                        std::string const& kind) -> void {
    if (!at.is_structured()) return void(fields[kind].push_back(here));
    std::size_t i = 0;
    for (auto const& [key, value] : at.items()) {
      if (at.is_array()) self(self, value, here / i++, kind + "/*");
      else if (key != "checksum") self(self, value, here / key, kind + "/" + key);
    }
    if (at.is_array() && !at.empty()) fields[kind].push_back(here);  // the list itself
  };
  walk(walk, plan, json::json_pointer{}, "");
  return fields;
}
std::uint32_t below(random_stream& draw, std::size_t n) { return draw.below(static_cast<std::uint32_t>(n)); }

/// Changes one field, drawn by kind first: rows are many, header fields few. What was changed.
std::string mutate(json& plan, random_stream& draw) {
  auto const fields = fields_of(plan);
  auto const& [kind, all] = *std::next(fields.begin(), below(draw, fields.size()));
  auto const& where = all[below(draw, all.size())];
  auto const& other = all[below(draw, all.size())];
  auto& x = plan[where];
  switch (below(draw, 3)) {
    case 0:  // exchanged with another of its kind
      if (x.is_array()) {
        auto const a = below(draw, x.size()), b = below(draw, x.size());
        std::swap(x[a], x[b]);
      } else {
        std::swap(x, plan[other]);
      }
      return kind;
    case 1:  // like another of its kind
      if (x.is_array()) {
        if (draw.below(2)) x.erase(below(draw, x.size()));
        else x.push_back(x[below(draw, x.size())]);
      } else {
        x = json(plan[other]);
      }
      return kind;
    default: break;
  }
  if (x.is_array()) {  // a row moves
    json const row = x[below(draw, x.size())];
    x.erase(below(draw, x.size()));
    x.insert(x.begin() + below(draw, x.size() + 1), row);
  } else if (x.is_boolean()) {
    x = !x.get<bool>();
  } else if (x.is_number_integer()) {
    std::int64_t const by[] = {-1, 1, 64, -64, 2, 1024, -x.get<std::int64_t>(), below(draw, 12)};
    x = x.get<std::int64_t>() + by[draw.below(8)];
  } else if (x.is_number()) {
    double const by[] = {0.5, 1.001, 1e-3, 0, 2};
    x = x.get<double>() * by[draw.below(5)];
  } else if (x.is_string()) {
    x = x.get<std::string>() + (draw.below(2) ? "1" : "");
  }
  return kind;
}

/// Where a change may leave a plan right, and why. Kinds of fields, by how they begin.
struct harmless {
  std::string_view kind, why;
};
constexpr harmless may_stay_right[] = {
    {"/version", "versions 2 and 3 lack the axes of parts, and these plans have none"},
    {"/name", "what the graph is called: nobody binds by it"},
    {"/source/", "says how a graph file is read: another graph would have another fingerprint"},
    {"/durations/device/", "another device: the ops bring their latencies, so transfers alone take other times"},
    {"/latency_us", "follows from another device, order or wait"},
    {"/steps/*/start", "follows from another device, order or wait"},
    {"/steps/*/end", "follows from another device, order or wait"},
    {"/order/", "another order that is right too"},
    {"/steps/*/kind", "another order that is right too"},
    {"/steps/*/stream", "another order that is right too"},
    {"/waits", "a wait that others imply, or one more than is needed"},
    {"/options/alignment", "everything happens to be aligned so"},
    {"/options/takeover", "nothing is taken over, or nothing need be"},
    {"/buffers/*/first", "a life may be longer than it must, where there is room"},
    {"/buffers/*/last", "a life may be longer than it must, where there is room"},
    {"/buffers/*/offset", "another free place"},
    {"/arena_bytes", "follows from places"},
    {"/peak_bytes", "follows from lives"},
    {"/nodes/*/name", "a transfer stands for no op of the original: its name binds nothing"},
    {"/tensors/*/buf", "what is stored outside takes no bytes: which storage it is called is all the same"},
};
/// What a document says, apart from the order of rows that say the same in any order.
json normal(json plan) {
  json order = json::array(), nodes = json::array(), waits = json::array();
  for (auto& s : plan["steps"]) {
    auto const& node = plan["nodes"][s["node"].get<std::size_t>()];
    order.push_back(node["op"].get<std::string>() + node["out"].dump());
    s.erase("node");
  }
  for (auto node : plan["nodes"]) {
    node.erase("latency_us");
    if (node.contains("flags")) {
      std::set<json> const flags(node["flags"].begin(), node["flags"].end());
      node["flags"] = flags;
    }
    nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), [](json const& a, json const& b) { return a["out"] < b["out"]; });
  std::sort(plan["buffers"].begin(), plan["buffers"].end(),
            [](json const& a, json const& b) { return a["value"] < b["value"]; });
  std::sort(plan["waits"].begin(), plan["waits"].end());
  plan["order"] = order, plan["nodes"] = nodes;
  plan.erase("checksum");
  return plan;
}
bool same_number(json const& x, json const& y) {
  return x.is_number() && y.is_number() &&
         std::abs(x.get<double>() - y.get<double>()) <= 1e-9 * std::abs(x.get<double>());
}
/// The kinds of fields in which two documents differ.
void find_differences(json const& x, json const& y, std::string const& kind, std::set<std::string>& kinds) {
  if (x == y || same_number(x, y)) return;
  if (x.is_object() && y.is_object()) {
    for (auto const& [key, value] : x.items())
      if (y.contains(key)) find_differences(value, y[key], kind + "/" + key, kinds);
      else kinds.insert(kind + "/" + key);
    for (auto const& [key, value] : y.items())
      if (!x.contains(key)) kinds.insert(kind + "/" + key);
  } else if (x.is_array() && y.is_array() && x.size() == y.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) find_differences(x[i], y[i], kind + "/*", kinds);
  } else {
    kinds.insert(kind);
  }
}

}  // namespace

TEST_CASE("mutants of right plans are judged as a plain checker judges them") {
  int wrong = 0, right = 0, unchanged = 0, another_view = 0;
  std::set<std::string_view> met;
  int const enough = testing::sanitized ? 1'000 : 10'000;
  for (std::uint64_t seed = 0; wrong + right < enough; ++seed) {
    auto s = sample_plan(seed);
    REQUIRE(neap_check(s.original, s.plan) == "");
    REQUIRE(testing::slow_plan_check(s.original, s.plan) == "");
    work_out_again(s.plan, 7);
    REQUIRE(neap_check(s.original, s.plan) == "");
    auto const good = normal(s.plan);
    for (std::uint64_t k = 0; k < 100; ++k) {
      random_stream draw(seed, 1000 + k);
      auto mutant = s.plan;
      auto what = mutate(mutant, draw);
      if (k % 2) what += " and " + mutate(mutant, draw);
      work_out_again(mutant, draw.below(8));
      if (mutant == s.plan) continue;
      CAPTURE(seed);
      CAPTURE(k);
      CAPTURE(what);
      auto const slow = testing::slow_plan_check(s.original, mutant), fast = neap_check(s.original, mutant);
      if (fast.find('\n') != fast.npos) CHECK(fast == "one line");
      if (slow == "" && what.find("/in") != what.npos && fast.find("input-changed") != fast.npos) {
        ++another_view;  // two views of the same bytes: the verifier asks for the very tensor that the original's op reads
        continue;
      }
      if ((slow == "") != (fast == "")) CHECK(fast == slow);  // the texts differ: both are told
      if (fast != "") {
        ++wrong;
        continue;
      }
      std::set<std::string> kinds;
      find_differences(good, normal(mutant), "", kinds);
      ++(kinds.empty() ? unchanged : right);
      for (auto const& kind : kinds) {
        auto const* const known = std::find_if(std::begin(may_stay_right), std::end(may_stay_right),
                                               [&](harmless const& h) { return kind.starts_with(h.kind); });
        CAPTURE(kind);
        if (known == std::end(may_stay_right)) CHECK(kind == "harmless");
        else met.insert(known->kind);
      }
    }
  }
  MESSAGE(wrong << " wrong, " << right << " right, " << unchanged << " say the same");
  CHECK(wrong > enough * 9 / 10);
  CHECK(right > enough / 100);
  CHECK(another_view * 1'000 < enough);
  CHECK(met.size() > std::size(may_stay_right) / 2);  // the list is not idle
}
