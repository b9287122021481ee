// The plan argument of the commands: a plan file with the graph that it was made for, judged.
#pragma once

#include "device_input.hpp"
#include "graph_input.hpp"

#include <neap/import/plan_reader.hpp>
#include <neap/verify/plan_verifier.hpp>

namespace cli {

struct plan_input {
  neap::io::plan_file file;
  neap::io::imported_graph graph;

  /// Refuses a plan of another graph.
  static plan_input read(std::string const& path, graph_input from) {
    auto file = value_or_refuse(neap::io::read_plan(path));
    from.read_as(file);
    return complete(path, from, std::move(file), from.read());
  }
  /// The same with what `from` claims of the graph beside its file. Refuses a plan that takes something else for granted.
  static plan_input read_with_claims(std::string const& path, graph_input from) {
    auto file = value_or_refuse(neap::io::read_plan(path));
    auto as_planned = from;
    as_planned.read_as(file);
    auto const text = value_or_refuse(neap::io::read_file(from.path));
    from.read_in_form_of(file);
    if (from.claims() == as_planned.claims())  // nearly always: the graph is read once
      return complete(path, as_planned, std::move(file), as_planned.parse(text));
    auto graph = from.parse(text);
    auto const said = [](graph_input const& x) { return x.claims().empty() ? std::string("nothing") : x.claims(); };
    if (file.planned.original != graph.program.digest() &&
        file.planned.original == as_planned.parse(text).program.digest())
      throw refused{path + ": takes for granted beside what " + from.path + " says: " + said(as_planned) +
                    "; verify was given: " + said(from)};
    return complete(path, from, std::move(file), std::move(graph));
  }

 private:
  static plan_input complete(std::string const& path, graph_input const& from, neap::io::plan_file file,
                             neap::io::imported_graph graph) {
    bool const old = file.version == 1;
    neap::io::complete(file, graph.program);
    if (file.planned.original != graph.program.digest())
      throw refused{path + ": was made for another graph than " + from.path};
    // A file of version 1 says nothing of durations: it can only be right if they are those of a plan without --device.
    if (old) file.durations = device_of("").source();
    return {std::move(file), std::move(graph)};
  }

 public:
  /// Everything but how long ops take.
  neap::verification verify() const { return neap::verify_plan(graph.program, file.planned); }
  /// Everything, durations too; `costs` is the table that the file names, if it names one.
  neap::verification verify(neap::duration_source const& said, neap::cost_table const& costs) const {
    neap::measured_or const cost{costs, neap::stated_durations(said)};
    return neap::verify_plan(graph.program, file.planned, cost);
  }
};

}  // namespace cli
