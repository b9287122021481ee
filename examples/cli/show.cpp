// neap show: pictures of a graph and of a plan.
#include "block_dot.hpp"
#include "dot.hpp"
#include "offsets_svg.hpp"
#include "plan_input.hpp"

#include <neap/memory/check/fragmentation.hpp>
#include <neap/report/memory_svg.hpp>
#include <neap/report/text_file.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <memory>

namespace cli {
namespace {

struct show_options {
  graph_input input;
  std::string plan, format = "svg", graph, out;
  std::int64_t block = -1;
  std::size_t boxes = neap::dot_options{}.max_boxes;
};

/// One of the graphs that blocks are made with.
std::string drawn(neap::io::imported_graph const& g, show_options const& o) {
  using enum neap::block_drawing;
  auto const all = neap::make_all_graphs(g.program, g.order);
  if (o.block >= static_cast<std::int64_t>(all.blocks.blocks.size()))
    throw refused{"--block " + std::to_string(o.block) + ": " + o.input.path + " has " +
                  std::to_string(all.blocks.blocks.size()) + " blocks, from 0 on"};
  neap::block_dot_options how{.title = "One training step: " + g.name, .max_boxes = o.boxes};
  if (o.block >= 0) how.block = static_cast<std::uint32_t>(o.block);
  for (auto what : {basic, dataflow, simplified, blocks, kernels})
    if (o.graph == name_of(what)) return neap::to_dot(g.program, all, what, how);
  throw refused{"--graph " + o.graph + ": is not known"};
}

int run(show_options const& o) {
  if (!o.graph.empty() && (o.format != "dot" || !o.plan.empty()))
    throw refused{"--graph: needs --format dot, and no plan"};
  if (o.block >= 0 && o.graph.empty()) throw refused{"--block: needs --graph"};
  check_outputs({{"graph", o.input.path}, {"plan", o.plan}}, {{"--out", o.out}});
  std::optional<neap::io::plan_file> p;
  neap::io::imported_graph g;
  if (o.plan.empty()) {
    g = o.input.read();
  } else {
    auto planned = plan_input::read(o.plan, o.input);
    if (auto const verdict = planned.verify(); !verdict)  // pictures trust what they draw
      throw refused{o.plan + ": is not right: " + verdict.message()};
    p = std::move(planned.file);
    g = std::move(planned.graph);
  }
  std::string picture;
  if (!o.graph.empty()) {
    picture = drawn(g, o);
  } else if (o.format == "dot") {
    auto const order = p ? p->planned.order() : g.order;
    picture = neap::to_dot(
        p ? p->planned.graph : g.program, &order,
        {.title = (p ? "One planned training step: " : "One training step: ") + g.name, .max_boxes = o.boxes});
  } else if (o.format == "offsets") {
    if (!p) throw refused{"--format offsets: needs a plan of the graph"};
    picture = neap::offsets_svg(p->planned, "Offsets in one training step: " + g.name, p->memory_limit_bytes);
  } else {
    neap::given_or<neap::roofline> const given{neap::roofline::h100_like()};
    neap::table<neap::op_id, double> known(g.program.op_count(), -1.0);  // a plan knows the times it was made with
    if (p)
      for (auto const& s : p->planned.steps)
        if (auto const from = p->planned.graph.origin(s.op);
            s.stream == neap::op_stream::compute && index(from) < known.size() &&
            p->planned.graph.record(s.op).part == neap::nothing<neap::part_id>)  // of a part, not of the op
          known[from] = s.end - s.start;
    auto const cost = [&](auto const& graph, neap::op_id x) {
      auto const from = graph.origin(x);
      return index(from) < known.size() && known[from] >= 0 ? known[from] : given(graph, x);
    };
    auto const options = p ? p->planned.options : neap::memory_options{};
    std::vector<neap::memory_curve> curves{
        neap::curve_of("as it came", g.program, g.order, neap::simulate(g.program, g.order, cost, options), options)};
    if (p) {
      auto const order = p->planned.order();
      auto s = neap::simulate(p->planned.graph, order, cost, options);
      for (std::size_t i = 0; i < s.start.size(); ++i) {  // the plan's own times
        s.start[i] = p->planned.steps[i].start;
        s.end[i] = p->planned.steps[i].end;
      }
      curves.push_back(neap::curve_of("planned", p->planned.graph, order, s, options));
    }
    picture = neap::memory_svg("Memory of one training step: " + g.name, curves, p ? p->memory_limit_bytes : -1);
  }
  if (o.out.empty()) std::fwrite(picture.data(), 1, picture.size(), stdout);
  else or_refuse(neap::write_file(o.out, picture));
  return fine;
}

}  // namespace

void add_show(CLI::App& app, int& exit) {
  auto* command =
      app.add_subcommand("show", "pictures: the graph (dot), memory over time (svg), addresses over time (offsets)");
  auto o = std::make_shared<show_options>();
  o->input.add_to(*command);
  command->add_option("PLAN", o->plan, "a plan of the graph");
  command->add_option("--format", o->format)->check(CLI::IsMember({"dot", "svg", "offsets"}))->capture_default_str();
  command
      ->add_option("--boxes", o->boxes,
                   "of dot: at most about so many ops as boxes of their own, else neighbours as one")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command
      ->add_option("--graph", o->graph,
                   "of dot: the forward part as it came (basic), with types and aliases (dataflow), folded to one "
                   "computation a box (simplified), cut into blocks, or with what lies in memory, forward and backward "
                   "(kernels)")
      ->check(CLI::IsMember({"basic", "dataflow", "simplified", "blocks", "kernels"}));
  command
      ->add_option(
          "--block", o->block,
          "of --graph: this block alone, in the chain of blocks with what it shares data with; default: all, or beyond "
          "--boxes one of each class of equal blocks")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  command->add_option("--out", o->out, "the file; default: standard output");
  command->callback([o, &exit] { exit = run(*o); });
}

}  // namespace cli
