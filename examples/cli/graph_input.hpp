// The graph argument of the commands, and the options that say how it is read.
#pragma once

#include "common.hpp"

#include <neap/import/file.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/ir/donate.hpp>
#include <neap/ir/pin_rules.hpp>

namespace cli {

struct graph_input {
  std::string path;
  bool optimizer = false;
  std::string magis = "magis", losses = "apart", gradients = "kept";
  std::vector<std::string> donated;
  neap::pin_rules pins;

  void add_to(CLI::App& command) {
    command.add_option("GRAPH", path, "neap-graph 1 or a testing net of MAGIS, JSON, gzip or not")->required();
    add_options_to(command);
  }
  void add_options_to(CLI::App& command) {
    add_claims_to(command);
    command.add_option("--magis-memory", magis, "how memory of a MAGIS file is counted")
        ->check(CLI::IsMember({"magis", "aliased"}))
        ->capture_default_str();
    command
        .add_option(
            "--losses", losses,
            "how mean losses of PyTorch's are read: apart, so that a whole step can run in parts (the total weight "
            "is an op of its own), or whole, as they stand")
        ->check(CLI::IsMember({"apart", "whole"}))
        ->capture_default_str();
  }
  /// What holds beside what the file says.
  void add_claims_to(CLI::App& command) {
    command.add_flag("--optimizer", optimizer, "with the optimizer's update nodes, where the file has them");
    command
        .add_option("--gradients", gradients,
                    "with --optimizer: kept to the end of the step, or used-up: a gradient is dead after "
                    "the update that reads it, so that weights can be updated early")
        ->check(CLI::IsMember({"kept", "used-up"}))
        ->capture_default_str();
    command
        .add_option(
            "--donate", donated,
            "inputs by name, * for any characters, whose memory may be freed after their last use or overwritten; "
            "may be given several times")
        ->option_text("PATTERN")
        ->allow_extra_args(false);
  }
  void add_pin_to(CLI::App& command, char const* option, neap::pin p, char const* what) {
    command
        .add_option_function<std::vector<std::string>>(
            option,
            [this, p](std::vector<std::string> const& patterns) {
              for (auto const& pattern : patterns) pins.emplace_back(p, pattern);
            },
            what)
        ->option_text("PATTERN")
        ->allow_extra_args(false);
  }
  void add_run_again_to(CLI::App& command) {
    add_pin_to(command, "--run-again", neap::pin::run_again,
               "ops that may run again although the file says that they have effects");
  }
  /// What a planner may not do, by patterns of names.
  void add_pins_to(CLI::App& command) {
    add_pin_to(command, "--keep", neap::pin::keep,
               "ops or values by name or operator, * for any characters; what they make is computed once, as a whole, "
               "and stays in memory until its last use. May be given several times, as the following may");
    add_pin_to(command, "--run-once", neap::pin::run_once, "ops that run exactly once, as a whole: collectives, logs");
    add_run_again_to(command);
    add_pin_to(command, "--never-in-parts", neap::pin::never_in_parts, "ops that no fission cuts");
    add_pin_to(command, "--never-out", neap::pin::never_out, "what these ops make is never swapped out");
  }
  /// The graph is to be read as it was when a plan was made.
  template <class PlanFile>
  void read_as(PlanFile const& p) {
    optimizer = p.optimizer;
    gradients = p.gradients_used_up ? "used-up" : "kept";
    donated = p.donated;
    pins.clear();
    read_in_form_of(p, true);
  }
  /// The same but for what the options claim: those of the plan count only where they forbid something.
  template <class PlanFile>
  void read_in_form_of(PlanFile const& p, bool all_pins = false) {
    magis = p.magis;
    losses = p.losses_apart ? "apart" : "whole";
    for (auto const& r : p.pins)
      if (all_pins || !r.pins.has(neap::pin::run_again)) pins.push_back(r);
  }
  /// The options that claim what the file does not say; empty if there are none.
  std::string claims() const {
    std::string s;
    auto const add = [&](std::string const& option) { s += (s.empty() ? "" : " ") + option; };
    if (optimizer) add("--optimizer");
    if (gradients == "used-up") add("--gradients used-up");
    for (auto const& d : donated) add("--donate '" + d + "'");
    for (auto const& r : pins)
      if (r.pins.has(neap::pin::run_again)) add("--run-again '" + r.pattern + "'");
    return printable(s);
  }
  neap::io::imported_graph read() const { return parse(value_or_refuse(neap::io::read_file(path))); }
  /// The graph of the file whose text this is.
  neap::io::imported_graph parse(std::string const& text) const {
    if (gradients == "used-up" && !optimizer) throw refused{"--gradients used-up needs --optimizer"};
    neap::io::graph_file_options o;
    o.neap_graph.optimizer = optimizer;
    o.neap_graph.gradients_used_up = gradients == "used-up";
    o.neap_graph.for_parts = losses == "apart";
    o.magis = magis == "aliased" ? neap::io::magis_memory::aliased : neap::io::magis_memory::as_magis;
    auto g = value_or_refuse(neap::io::parse_graph(text, path, o));
    g.name = printable(g.name.empty() ? path : g.name);
    try {
      g.program = neap::donated(std::move(g.program), donated);
    } catch (neap::error const& e) { throw refused{path + ": --donate: " + e.what()}; }
    try {
      g.program = neap::pinned(std::move(g.program), pins);
    } catch (neap::error const& e) { throw refused{path + ": " + e.what()}; }
    return g;
  }
};

}  // namespace cli
