#include <neap/plan/step_parts.hpp>

#include <doctest/doctest.h>

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/schedule/order.hpp>

#include <string>
#include <vector>

using namespace neap;

TEST_CASE("parts of a step: what leads to the loss, what leads to gradients, what writes weights") {
  graph_editor edit{operator_table(standard_operators::facets)};
  tensor_layout const t = tensor_layout::dense({dtype::f32, {8}});
  auto const fresh = [&](char const* name, std::vector<value_id> in) {
    output_rule const rule[] = {{t, alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque(name, {}, in, rule, name));
  };
  auto const update = [&](char const* name, std::vector<value_id> in) {
    output_rule const rule[] = {{t, alias_kind::update, 0, -1}};
    return edit.output(edit.add_opaque(name, {}, in, rule, name));
  };
  auto const w = edit.add_source_at(role::weight, t, "w"), x = edit.add_source_at(role::input, t, "x"),
             running = edit.add_source_at(role::buffer, t, "running");
  auto const y = fresh("y", {x, w});
  update("running.new", {running, y});
  auto const loss = fresh("loss", {y});
  auto const again = fresh("y.again", {x, w});
  auto const g = fresh("g", {again, w});
  update("w.new", {w, g});
  edit.keep(loss, role::loss);
  graph const made(std::move(edit).finish());
  auto const parts = parts_of(made, given_order{}(made));
  for (auto o : made.ops()) {
    std::string const name(made.name(o));
    auto const expected = name == "g" || name == "y.again" ? step_part::backward
                          : name == "w.new"                ? step_part::update
                                                           : step_part::forward;
    CHECK_MESSAGE(parts[o] == expected, name);
  }
}
