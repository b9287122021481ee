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

TEST_CASE("parts of a step: what reads updated weights and leads nowhere comes after the updates") {
  graph_editor edit{operator_table(standard_operators::facets)};
  tensor_layout const t = tensor_layout::dense({dtype::f32, {8}});
  auto const add = [&](char const* name, std::vector<value_id> in, alias_kind alias, int of) {
    output_rule const rule[] = {{t, alias, of, -1}};
    return edit.output(edit.add_opaque(name, {}, in, rule, name));
  };
  auto const w = edit.add_source_at(role::weight, t, "w"), x = edit.add_source_at(role::input, t, "x"),
             steps = edit.add_source_at(role::state, t, "steps"),
             average = edit.add_source_at(role::buffer, t, "average");
  auto const y = add("y", {x, w}, alias_kind::fresh, -1), loss = add("loss", {y}, alias_kind::fresh, -1);
  auto const counted = add("steps.new", {steps}, alias_kind::update, 0);
  auto const rate = add("rate", {counted}, alias_kind::fresh, -1);
  auto const g = add("g", {y}, alias_kind::fresh, -1);
  auto const updated = add("w.new", {w, g, rate}, alias_kind::update, 0);
  auto const averaged = add("average.new", {average, updated}, alias_kind::update, 0);
  auto const rows = add("rows", {updated}, alias_kind::view, 0);
  edit.keep(add("norm", {rows}, alias_kind::fresh, -1), role::output);
  edit.keep(add("distance", {averaged, x}, alias_kind::fresh, -1), role::output);
  edit.keep(loss, role::loss);
  graph const made(std::move(edit).finish());
  auto const parts = parts_of(made, given_order{}(made));
  for (auto o : made.ops()) {
    std::string const name(made.name(o));
    auto const expected = name == "y" || name == "loss"   ? step_part::forward
                          : name == "g" || name == "rate" ? step_part::backward
                                                          : step_part::update;
    CHECK_MESSAGE(parts[o] == expected, name);
  }
}
