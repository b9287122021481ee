// libFuzzer over what reads files: graphs, plans, allocation problems, tables of costs, chains. Whatever the bytes are, the answer
// is a value or one line; a graph that is read is sound, and a plan that is read can be judged. Plans are sealed anew, for
// nobody guesses a checksum.
//
//   cmake --workflow --preset fuzz           60 s from the seeds beside this file
//   build/fuzz/bin/fuzz_readers -max_total_time=600 -dict=tests/fuzz/words corpus tests/fuzz/seeds
#include <neap/blocks/chain_simulator.hpp>
#include <neap/blocks/rotor.hpp>
#include <neap/import/chain.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/ir/verify.hpp>
#include <neap/memory/csv.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_table.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void need(bool ok) {
  if (!ok) std::abort();
}
void one_line(std::string const& message) { need(!message.empty() && message.find('\n') == message.npos); }

void read_graph(std::string const& text) {
  auto const g = neap::io::parse_graph(text, "f");
  if (!g) return one_line(g.message());
  need(neap::verify(g->program).ok());
  need(neap::check_order(g->program, g->order).ok());
}

/// A chain that is read is solved within a small table, and its plan fits.
void read_chain(std::string const& text) {
  auto const c = neap::io::parse_chain(text, "f");
  if (!c) return one_line(c.message());
  neap::slots_t const budget = 100;
  auto const r = neap::rotor::solve(c->profile, budget, {.max_table_bytes = 1 << 24});
  if (!r) return one_line(r.message());
  if (!r->feasible(budget)) return;
  auto const seen = neap::simulate(c->profile, r->sequence(budget));
  need(seen.ok() && seen->peak <= budget + c->profile.input(0));
}

void read_plan(std::string text) {
  auto const at = text.rfind("\"checksum\":\"");
  if (at == text.npos) return;
  text.resize(at);
  text += "\"checksum\":\"" + to_hex(neap::digest{}.mix(std::string_view(text))) + "\"}\n";
  auto p = neap::io::parse_plan(text, "f");
  if (!p) return one_line(p.message());
  auto const& g = p->planned.graph;
  need(neap::verify(g).ok());
  if (p->durations) (void)neap::verify_plan(g, p->planned, neap::stated_durations(*p->durations)).message();
  else (void)neap::verify_plan(g, p->planned).message();
  neap::io::complete(*p, neap::graph(g));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::string const text(reinterpret_cast<char const*>(data), size);
  if (text.find("neap.plan") != text.npos) read_plan(text);
  else if (text.find("nb_sol") != text.npos) read_chain(text);
  else if (!text.empty() && (text[0] == '{' || text[0] == '[')) read_graph(text);
  else if (text.starts_with("neap-costs")) (void)neap::cost_table::from_text(text);
  else if (auto const problem = neap::read_minimalloc_csv(text); !problem) one_line(problem.message());
  return 0;
}
