// The bodies of <neap/train/differentiate.hpp>.
#pragma once

#include <neap/train/differentiate.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC plain_vector<bool> summed_in_f32(op_graph const& g, value_id loss, plain_vector<bool> const& needed,
                                           plain_vector<bool> const& stops) {
  struct edge {  // of a part along an axis: where it begins (1) or ends (-1)
    value_id of;
    std::int32_t axis, step;
    std::int64_t place;
  };
  plain_vector<edge> edges;
  plain_vector<std::int64_t> uses(g.value_count(), 0);
  plain_vector<bool> reached(g.value_count());
  reached[index(loss)] = true;
  for (std::size_t i = g.op_count(); i-- > 0;) {
    op_id const o = id_at<op_id>(i);
    bool any = false;
    for (auto v : g.outputs(o)) any |= reached[index(v)] && !stops[index(v)];
    if (!any) continue;
    auto const* const part = g.as<op::slice>(o);
    for (auto v : g.inputs(o)) {
      if (!needed[index(v)]) continue;
      reached[index(v)] = true;
      if (!is_low(g.type(v).element)) continue;
      if (!part) {
        ++uses[index(v)];
        continue;
      }
      int const axis = op::detail::plain_axis(part->axis, g.type(v).rank());
      edges.push_back({v, axis, 1, part->start}), edges.push_back({v, axis, -1, part->stop});
    }
  }
  sort_list(edges, [](edge const& a, edge const& b) {
    return a.of != b.of         ? a.of < b.of
           : a.axis != b.axis   ? a.axis < b.axis
           : a.place != b.place ? a.place < b.place
                                : a.step < b.step;
  });
  std::int64_t open = 0, most = 0;  // parts over one place
  for (std::size_t i = 0; i < edges.size(); ++i) {
    most = std::max(most, open += edges[i].step);
    if (i + 1 < edges.size() && edges[i].of == edges[i + 1].of && edges[i].axis == edges[i + 1].axis) continue;
    uses[index(edges[i].of)] += most;
    open = most = 0;
  }
  plain_vector<bool> in_f32(g.value_count());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    auto const p = g.producer(id_at<value_id>(i));
    bool const goes_on =
        uses[i] == 2 && p != nothing<op_id> && g.as<op::cast>(p) && !is_low(g.type(g.inputs(p)[0]).element);
    in_f32[i] = uses[i] > 2 || goes_on;
  }
  return in_f32;
}

}  // namespace detail

NEAP_FUNC std::vector<value_id> differentiate(graph_editor& edit, value_id loss, std::span<value_id const> wanted,
                                              bool zeros, std::span<value_id const> fixed,
                                              std::span<std::pair<value_id, value_id> const> outdated) {
  std::size_t const ops = edit.graph().op_count(), values = edit.graph().value_count();
  plain_vector<bool> needed(values), stops(values);  // depends on a wanted value; is fixed
  for (auto v : fixed) stops[index(v)] = true;
  for (auto v : wanted) needed[index(v)] = true;
  std::size_t next = 0;  // of `outdated`, which stands in the order of the ops
  for (std::size_t i = 0; i < ops; ++i) {
    op_id const o = id_at<op_id>(i);
    bool any = false;
    for (auto v : edit.graph().inputs(o)) {
      auto const p = edit.graph().producer(v);
      if (p != nothing<op_id> && index(p) >= i)
        throw_error({"differentiate: the ops are not numbered in an order in which they can run"});
      any |= needed[index(v)];
    }
    if (any)
      for (auto v : edit.graph().outputs(o))
        needed[index(v)] |= is_floating(edit.graph().type(v).element) && !stops[index(v)];
    for (; next != outdated.size() && edit.graph().producer(outdated[next].second) == o; ++next)
      needed[index(outdated[next].second)] |= needed[index(outdated[next].first)];
  }

  plain_vector<bool> const in_f32 = detail::summed_in_f32(edit.graph(), loss, needed, stops);
  plain_vector<value_id> gradient(values, nothing<value_id>);
  auto const type_of = [&](value_id v) { return edit.graph().type(v); };
  // Ops without a name from `first` on, which belong to an op or a value of that name.
  auto const name_from = [&](std::size_t first, std::string_view owner, char const* what) {
    for (std::size_t k = first; !owner.empty() && k < edit.graph().op_count(); ++k)
      if (edit.graph().name(id_at<op_id>(k)).empty()) edit.set_name(id_at<op_id>(k), std::string(owner) + what);
  };
  auto const name_of_value = [&](value_id v) {
    auto const p = edit.graph().producer(v);
    return std::string(p == nothing<op_id> ? edit.graph().name(v) : edit.graph().name(p));
  };
  if (!is_floating(type_of(loss).element))
    throw_error({"differentiate: the loss is ", type_of(loss), ", not a floating tensor"});
  auto const filled = [&](value_id like, double x) {
    auto const t = type_of(like);
    op::fill f;
    f.dims = t.dims;
    f.element = t.element;
    f.value = x;
    return edit.add(f, std::initializer_list<value_id>{})[0];
  };
  // A gradient in the type of its value v, where it is the sum of many in f32.
  auto const in_type_of = [&](value_id v, value_id g) {
    if (g == nothing<value_id> || type_of(g) == type_of(v)) return g;
    std::size_t const casts = edit.graph().op_count();
    g = edit.add(op::cast{type_of(v).element}, {g})[0];
    name_from(casts, name_of_value(v), ".grad_sum");
    return g;
  };
  gradient[index(loss)] = filled(loss, 1);
  name_from(ops, name_of_value(loss), ".seed");

  for (std::size_t i = ops; i-- > 0;) {
    op_id const o = id_at<op_id>(i);
    std::vector<value_id> const in(edit.graph().inputs(o).begin(), edit.graph().inputs(o).end());
    std::vector<value_id> const out = edit.outputs_of(o);
    std::vector<value_id> out_gradient;
    bool reached = false, wants = false;
    for (auto v : out) {
      value_id const g = stops[index(v)] ? nothing<value_id> : gradient[index(v)];
      out_gradient.push_back(edit.graph().as<op::cast>(o) ? g : in_type_of(v, g));
      reached |= out_gradient.back() != nothing<value_id>;
    }
    plain_vector<bool> flags(in.size());
    for (std::size_t k = 0; k < in.size(); ++k)
      wants |= flags[k] = needed[index(in[k])] && is_floating(type_of(in[k]).element);
    if (!reached || !wants) continue;

    auto const& facets = edit.graph().facets(o);
    std::string const who = std::string(facets.name) + " #" + std::to_string(i);
    for (auto v : out)
      if (edit.graph().record(v).alias == alias_kind::update)
        throw_error({"differentiate: ", who, " updates in place, which has no gradient"});
    if (!facets.gradient) throw_error({"differentiate: ", who, " has no gradient"});
    // Attributes may move while ops are added: the rule reads a copy.
    plain_vector<std::max_align_t> attributes(facets.size / sizeof(std::max_align_t) + 1);
    if (facets.size) std::memcpy(attributes.data(), edit.graph().attributes(o), facets.size);
    std::size_t const before = edit.graph().op_count();
    std::string const name(edit.graph().name(o));
    gradient_context c(edit, span_of(in), span_of(out), span_of(out_gradient), span_of(flags));
    try {
      facets.gradient(attributes.data(), c);
    } catch (error const& e) { throw_error({"differentiate: ", who, ": ", e.what()}); }
    name_from(before, name, ".grad");
    if (int const j = c.unused_gradient(); j >= 0)
      throw_error({"differentiate: ", who, ": its output ", j, " has no gradient"});
    for (std::size_t k = 0; k < in.size(); ++k) {
      value_id const g = c.gradients()[k];
      if (g == nothing<value_id> || !flags[k]) continue;
      if (!(type_of(g) == type_of(in[k])))
        throw_error({"differentiate: ", who, " gives a gradient ", type_of(g), " for an input ", type_of(in[k])});
      auto& sum = gradient[index(in[k])];
      std::size_t const adds = edit.graph().op_count();
      value_id const term = in_f32[index(in[k])] ? edit.add(op::cast{dtype::f32}, {g})[0] : g;
      sum = sum == nothing<value_id> ? term : edit.add(op::add{}, {sum, term})[0];
      if (!name.empty()) name_from(adds, name_of_value(in[k]), ".grad_sum");
    }
  }

  for (auto const& [meant, read] : outdated)
    if (needed[index(meant)] && gradient[index(read)] != nothing<value_id>)
      throw_error({"grad: ", type_of(meant), " was changed in place after an earlier use"});
  std::vector<value_id> result;
  for (auto v : wanted)
    result.push_back(zeros && gradient[index(v)] == nothing<value_id> ? filled(v, 0)
                                                                      : in_type_of(v, gradient[index(v)]));
  return result;
}

}}  // namespace neap::v0
