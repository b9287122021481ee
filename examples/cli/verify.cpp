// neap verify: whether a plan is right, by a checker that shares no code with what makes plans.
#include "plan_input.hpp"

#include <memory>

namespace cli {
namespace {

struct verify_options {
  graph_input from;
  std::string plan_path, costs;
  bool json = false;
};

int run(verify_options const& o) {
  auto const input = plan_input::read_with_claims(o.plan_path, o.from);
  auto const& [p, g] = input;
  if (!p.durations) throw refused{o.plan_path + ": does not say what its times come from (\"durations\")"};
  auto const costs = o.costs.empty() ? neap::cost_table{} : value_or_refuse(neap::cost_table::load(o.costs));
  if (p.durations->table && (o.costs.empty() || costs.digest() != *p.durations->table))
    throw refused{o.plan_path + ": its times come from the table of costs " + to_hex(*p.durations->table) +
                  (o.costs.empty() ? ": give it with --costs" : ", which " + o.costs + " is not")};
  auto const verdict = input.verify(*p.durations, p.durations->table ? costs : neap::cost_table{});
  if (o.json) {
    nlohmann::ordered_json j;
    j["name"] = g.name;
    j["right"] = verdict.ok();
    j["claims"] = o.from.claims();
    j["peak_bytes"] = p.planned.peak_bytes;
    j["arena_bytes"] = p.planned.arena_bytes;
    j["violations"] = nlohmann::ordered_json::array();
    for (auto const& v : verdict.violations()) j["violations"].push_back(v.message);
    print_json(j);
  } else if (verdict.ok()) {
    std::printf("%s: right%s: %s, peak %lld bytes, arena %lld bytes\n", o.plan_path.c_str(),
                o.from.claims().empty() ? "" : (" with " + o.from.claims()).c_str(),
                neap::detail::counted(p.planned.steps.size(), "step").c_str(),
                static_cast<long long>(p.planned.peak_bytes), static_cast<long long>(p.planned.arena_bytes));
  }
  if (!verdict.ok()) complain(o.plan_path + ": " + verdict.message());
  return verdict.ok() ? fine : bad_input;
}

}  // namespace

void add_verify(CLI::App& app, int& exit) {
  auto* command = app.add_subcommand("verify", "the independent check of a plan; exit 0 only if it is right");
  auto o = std::make_shared<verify_options>();
  command->add_option("GRAPH", o->from.path, "the graph that the plan was made for")->required();
  command->add_option("PLAN", o->plan_path, "a plan file, as neap plan --out writes it")->required();
  o->from.add_claims_to(*command);
  o->from.add_run_again_to(*command);
  command->add_option("--costs", o->costs, "the table of costs that the plan was made with");
  command->add_flag("--json", o->json, "one JSON object");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
