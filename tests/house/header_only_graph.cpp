// The second file of the program: it builds a graph and runs nothing. No other file uses its operators.
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <utility>

neap::graph built_elsewhere() {
  neap::graph_editor edit{neap::table_of<neap::standard_operators>()};
  auto const x = edit.add_source(neap::role::input, {neap::dtype::f32, {4}});
  auto const sums = edit.add(neap::op::cumsum{}, {x})[0];
  edit.keep(edit.add(neap::op::floor{}, {sums})[0], neap::role::output);
  return neap::graph(std::move(edit).finish());
}
