// neap verify: whether a plan is right, by a checker that shares no code with what makes plans.
#include "graph_input.hpp"

#include <neap/import/plan_file.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <memory>

namespace cli {
namespace {

struct options {
  std::string graph_path, plan_path;
  bool json = false;
};

int run(options const& o) {
  auto const p = value_or_refuse(neap::io::read_plan(o.plan_path));
  graph_input input;
  input.path = o.graph_path;
  input.read_as(p);
  auto const g = input.read();
  if (p.planned.original != g.program.digest())
    throw refused{o.plan_path + ": was made for another graph than " + o.graph_path};
  auto const verdict = neap::verify_plan(g.program, p.planned);
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = g.name;
    j["right"] = verdict.ok();
    j["peak_bytes"] = p.planned.peak_bytes;
    j["arena_bytes"] = p.planned.arena_bytes;
    j["violations"] = nlohmann::ordered_json::array();
    for (auto const& v : verdict.violations()) j["violations"].push_back(v.message);
    print_json(j);
  } else if (verdict.ok()) {
    std::printf("%s: right: %zu steps, peak %lld bytes, arena %lld bytes\n", o.plan_path.c_str(),
                p.planned.steps.size(), static_cast<long long>(p.planned.peak_bytes),
                static_cast<long long>(p.planned.arena_bytes));
  }
  if (!verdict.ok()) complain(o.plan_path + ": " + verdict.message());
  return verdict.ok() ? fine : bad_input;
}

}  // namespace

void add_verify(CLI::App& app, int& exit) {
  auto* command = app.add_subcommand("verify", "the independent check of a plan; exit 0 only if it is right");
  auto o = std::make_shared<options>();
  command->add_option("GRAPH", o->graph_path, "the graph that the plan was made for")->required();
  command->add_option("PLAN", o->plan_path, "a plan file, as neap plan --out writes it")->required();
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
